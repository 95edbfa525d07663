"""Posteriors and recommendations made up without sampling."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from advisor.advice import Budget, CostModel, Objective, Recommendation
from advisor.advice.answer_fields import Alternative, NextPilot
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.interval import interval_of
from advisor.forecast.predictive import final_reward
from advisor.forecast.stability import stability
from advisor.model import equations as eq
from advisor.model.cohort import Reference
from advisor.model.parameters import LEVELS, POPULATION, RUN_EFFECTS
from advisor.model.posterior import Convergence, Meta, Posterior, Provenance, RunSummary
from advisor.model.priors import load_priors
from advisor.run.settings import PartialSettings, Settings
from advisor.trainers.registry import recipes as trainer_recipes

CHAINS, DRAWS = 2, 150
WIDTH = 0.3
"""Standard deviation of a made-up posterior over that of its prior."""


@dataclass(frozen=True)
class Pilot:
    """A pilot to make up; ``collapse`` is the step at which it collapsed."""

    learning_rate: float
    group_size: int = 8
    minibatches: int = 1
    epochs: int = 1
    model: str = "tiny-s"
    parameters: float = 1e5
    task: str = "sort"
    steps: int = 60
    collapse: float | None = None


PILOTS = (
    Pilot(1e-4, 16, 2),
    Pilot(3e-4, 8, 8),
    Pilot(3e-3, 8, 2, collapse=7.0),
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
    """Draws around the prior means (shifted by ``moved``), with the shapes that a fit leaves."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    priors = load_priors("small_models")
    groups = tuple(dict.fromkeys((p.task, p.model) for p in pilots))
    tasks = tuple(dict.fromkeys(task for task, _ in groups))
    sizes = tuple(next(p.parameters for p in pilots if (p.task, p.model) == g) for g in groups)
    of = tuple(tasks.index(task) for task, _ in groups)
    reference = Reference(
        *(
            float(np.exp(np.mean(np.log([getattr(p, key) for p in pilots]))))
            for key in ("learning_rate", "group_size")
        ),
        16.0,
        float(np.exp(np.mean(np.log(sizes)))),
    )

    def draw(key: str, *shape: int) -> Any:
        prior = getattr(priors, key.replace(".", "_"))
        mean = prior.mean + (moved or {}).get(key, 0.0)
        return mean + WIDTH * prior.sd * rng.standard_normal((CHAINS, DRAWS, *shape))

    draws = {key: draw(key) for key in POPULATION}
    draws |= {key: draw(key, len(tasks)) for key in LEVELS[:3]}
    draws |= {key: draw(key, len(groups)) for key in LEVELS[3:]}
    draws["is_oscillator"] = np.zeros((CHAINS, DRAWS))
    for key in ("group_offset.headroom", "group_offset.stiffness"):
        draws[key] = WIDTH * rng.standard_normal((CHAINS, DRAWS, len(groups)))
    for key in RUN_EFFECTS:
        draws[key] = WIDTH * rng.standard_normal((CHAINS, DRAWS, len(pilots)))
    level = eq.group_level(
        {key: draws[key][..., None] for key in POPULATION},
        draws["headroom_logit"][..., list(of)],
        draws["log_slope"][..., list(of)],
        draws["start_logit"],
        draws["group_offset.headroom"],
        draws["group_offset.stiffness"],
        np.log(np.array(sizes) / reference.parameters),
    )
    scale = ceiling - floor
    draws["start"] = floor + scale * level.start
    population = {key: draws[key][..., None] for key in POPULATION}
    log_parameters = np.log(np.array(sizes) / reference.parameters)
    draws["plateau"] = floor + scale * eq.reference_plateau(population, level, log_parameters)
    draws["stiffness"] = np.exp(level.log_stiffness)

    bins = [np.linspace(2, p.collapse or p.steps - 1, 6 if p.collapse else 20) for p in pilots]
    curve = [
        np.where(p.collapse is None, 0.8 - 0.7 * np.exp(-step / 20), 0.1)
        for p, step in zip(pilots, bins, strict=True)
    ]
    noise = 0.02 * rng.standard_normal(sum(step.size for step in bins))
    meta = Meta(
        tasks=tasks,
        groups=groups,
        group_parameters=sizes,
        task_of_group=of,
        reference=reference,
        floor=floor,
        ceiling=ceiling,
        evaluated=(False,) * len(groups),
        eval_floor=floor,
        eval_ceiling=ceiling,
        families={"spectrum": 1.0},
        longest=float(max(p.steps for p in pilots)),
        runs=tuple(
            RunSummary(
                id=f"run{index}",
                task=p.task,
                model=p.model,
                parameters=p.parameters,
                settings=settings(p),
                steps=float(p.steps),
                completions=float(p.steps * 16 * p.group_size),
                first_reward=floor + 0.1 * scale,
                last_reward=floor + (0.8 if p.collapse is None else 0.05) * scale,
                collapse_step=p.collapse,
                fingerprint=f"{index:064x}",
                seconds_per_step=None,
                completion_tokens=None,
            )
            for index, p in enumerate(pilots)
        ),
        notes=("lag = 0.0 assumed (synchronous rollouts)",),
        convergence=Convergence(
            rhat=1.003,
            ess=812.0,
            worst="population",
            divergent_share=0.0,
            draws=CHAINS * DRAWS,
            steps_per_draw=31.0,
        ),
        priors=priors,
        provenance=Provenance(
            schema_version=1,
            package="0.1.0",
            created="2026-11-21T00:00:00+00:00",
            data_sha256="0" * 64,
            seed=1,
            versions={"pymc": "6.4.0"},
        ),
    )
    return Posterior(
        draws,
        {
            "run": np.repeat(np.arange(len(pilots), dtype=float), [b.size for b in bins]),
            "step": np.concatenate(bins),
            "reward": floor + scale * np.clip(np.concatenate(curve) + noise, 0, 1),
        },
        meta,
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
        (name, chosen.model_copy(update=values)) for name, values in trainer_recipes().items()
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
        equal_completions=(),
        recipes=tuple(other(name, recipe) for name, recipe in recipes),
        best_piloted=other("best pilot", chosen),
        frontier=(),
        informed={},
        outside=None,
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
        choices={"learning_rate": (settings(pilot).learning_rate,)},
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
