"""Posteriors and recommendations made up without sampling."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.advice import (
    Alternative,
    Budget,
    CostModel,
    NextPilot,
    Objective,
    Recommendation,
    default_lattice,
)
from advisor.advice.support import beyond_pilots
from advisor.forecast import Forecaster, Target, final_reward, interval_of, stability
from advisor.model import Posterior
from advisor.runs import Settings, Trainer

Pilot = Plan

PILOTS = tuple(replace(plan, collapse=plan.collapse and 7) for plan in PLANS)


def make_posterior(pilots: Sequence[Pilot] = PILOTS) -> Posterior:
    """Posterior made up around the middle of the priors."""
    return made_up_posterior(pilots, seed=zlib.crc32(b"demo"), draws=150)


def make_advice(
    posterior: Posterior,
    pilot: Pilot = PILOTS[1],
    kind: str = "recommendation",
) -> Recommendation:
    """Advise 180 steps of the settings of ``pilot``, without a search."""
    steps, target = 180, Target(pilot.task, pilot.model, pilot.parameters)
    forecaster = Forecaster(posterior, target)
    chosen = pilot.completed.planned_over(steps)
    last = forecaster.reward(chosen, steps)[:, 0]
    recipes = [
        (name, chosen.model_copy(update=values)) for name, values in Trainer.all_recipes().items()
    ]
    pilot_ahead = chosen.model_copy(update={"learning_rate": 6e-4})
    price = CostModel(source="made up")

    def other(name: str, of: Settings) -> Alternative:
        return Alternative(
            name=name,
            settings=of,
            reward=forecaster.reward(of, steps).mean(),
            stability=stability(forecaster, of, steps),
            cost=price(of, steps),
            steps_to_95=None,
        )

    return Recommendation(
        kind=kind,
        settings=chosen,
        target=target,
        objective=Objective(),
        budget=Budget(steps=steps),
        steps=steps,
        level=0.9,
        measure="reward",
        reward=interval_of(final_reward(forecaster, chosen, steps), mean=float(last.mean())),
        peak=interval_of(last),
        stability=stability(forecaster, chosen, steps),
        steps_to_95=90.0,
        binding="P(stable)",
        cost=price(chosen, steps),
        cost_model=price,
        alternatives=(),
        recipes=tuple(other(name, recipe) for name, recipe in recipes),
        best_piloted=other("best pilot", chosen),
        informed={},
        outside=None,
        beyond_pilots=beyond_pilots(chosen, forecaster),
        next_pilot=None
        if kind == "recommendation"
        else NextPilot(
            settings=pilot_ahead,
            steps=60,
            stability=stability(forecaster, pilot_ahead, 60),
            gain=0.02,
            cost=price(pilot_ahead, 60),
            reason="Nothing was piloted here.",
        ),
        pilots=len(posterior.meta.runs),
        collapsed=sum(run.collapse_step is not None for run in posterior.meta.runs),
        pilots_cost=float(sum(run.completions for run in posterior.meta.runs)),
        longest_pilot=posterior.meta.longest,
        cautions=(),
        assumptions=posterior.meta.notes,
        devices=1,
        choices={
            "learning_rate": (pilot.learning_rate,),
            "group_size": default_lattice(posterior, chosen).axes["group_size"],
        },
        priors=posterior.meta.priors.name,
        seed=0,
        provenance=posterior.meta.provenance,
    )


@pytest.fixture(scope="session")
def posterior() -> Posterior:
    return make_posterior()


@pytest.fixture(scope="session")
def advice(posterior: Posterior) -> Recommendation:
    return make_advice(posterior)


@pytest.fixture(scope="session")
def build() -> Callable[..., Posterior]:
    return make_posterior


@pytest.fixture(scope="session")
def advise() -> Callable[..., Recommendation]:
    return make_advice
