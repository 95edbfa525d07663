"""Posteriors and recommendations made up without sampling."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import pytest
from simulated_runs import Plan, made_up_posterior

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
from advisor.model import Posterior, load_priors
from advisor.runs import PartialSettings, Settings, Trainer

Pilot = Plan

PILOTS = (
    Pilot(1e-4, 16, 2),
    Pilot(3e-4, 8, 8),
    Pilot(3e-3, 8, 2, collapse=7),
    Pilot(3e-4, 16, 1, 2, model="tiny-m", parameters=4e5),
    Pilot(1e-3, 32, 4, model="tiny-m", parameters=4e5),
)


def settings(pilot: Pilot) -> Settings:
    given = PartialSettings(
        learning_rate=pilot.learning_rate,
        group_size=pilot.group_size,
        prompts_per_step=16.0,
        minibatches_per_refresh=pilot.minibatches,
        epochs_per_refresh=pilot.epochs,
        planned_steps=pilot.steps,
    )
    return given.completed()


def make_posterior(
    pilots: Sequence[Pilot] = PILOTS,
    *,
    name: str = "demo",
    floor: float = 0.0,
    ceiling: float = 1.0,
    moved: dict[str, float] | None = None,
) -> Posterior:
    """Posterior made up around the middle of the priors, shifted by ``moved``."""
    priors = load_priors("small_models")
    means = {k: getattr(priors, k.replace(".", "_")).mean for k in moved or {}}
    return made_up_posterior(
        pilots,
        seed=zlib.crc32(name.encode()),
        bounds=(floor, ceiling),
        moved={k: means[k] + shift for k, shift in (moved or {}).items()},
        draws=150,
    )


def make_advice(
    posterior: Posterior,
    pilot: Pilot = PILOTS[1],
    *,
    kind: str = "recommendation",
    target: Target | None = None,
    steps: int = 180,
    level: float = 0.9,
) -> Recommendation:
    """Advise the settings of ``pilot``, without a search."""
    target = target or Target(pilot.task, pilot.model, pilot.parameters)
    forecaster = Forecaster(posterior, target)
    chosen = settings(pilot).model_copy(update={"planned_steps": steps})
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
        level=level,
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
            "learning_rate": (settings(pilot).learning_rate,),
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
