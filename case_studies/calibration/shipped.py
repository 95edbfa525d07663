"""Calibration of the fit that is shipped, with its gate and retries, on three to eight pilots.

Parameters are drawn from a preset, data from the parameters, and fitted as `advisor.fit` does. The
truth is ranked among the draws for the chance to live and the expected reward of a fixed
configuration and of the one that would be advised; and for the advised one what was said is set
beside what was true: the posterior of the best of many is where a model that is right on average
may be wrong. In the control the simulator has three times the collapses.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from typing import Any

import numpy as np
from ranks import coverage, difference, rank_of, uniform_band
from simulation import PLANS, Draws, design, draw_prior, simulate

from advisor.errors import NotConvergedError
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.run_effect import RunEffect
from advisor.forecast.stability import rate_tolerated
from advisor.model.cohort import Cohort
from advisor.model.families import SPECTRUM
from advisor.model.parameters import LAWS, POPULATION, RUN_EFFECTS
from advisor.model.posterior import Posterior, make_posterior
from advisor.model.priors import Priors, load_priors
from advisor.model.sampling import Sampling, converged
from advisor.run.progress import silent
from advisor.run.settings import PartialSettings, Settings
from advisor.theory.arrays import FloatArray

PRESETS = ("small_models", "full_finetuning", "theory")
CONTROL = "small_models, three times the collapses"
FEWEST, MOST = 3, 8
HORIZON = 180
"""Steps of the run that is advised: three times a pilot."""

RATES, GROUPS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3), (8, 16, 32)
LEVEL = 0.9
DRAWS = 99
FIXED = PartialSettings(
    learning_rate=3e-4,
    group_size=16,
    prompts_per_step=16.0,
    minibatches_per_refresh=1,
    epochs_per_refresh=1,
    planned_steps=HORIZON,
).completed()


class Truth:
    """Chance to live and expected reward of configurations, for every draw."""

    def __init__(self, posterior: Posterior, model: str, draws: int) -> None:
        plain = RunEffect(lambda _, kept: np.zeros((len(RUN_EFFECTS), kept.size)))
        target = Target("task", model, {"s": 1e5, "m": 4e5}[model])
        self.forecaster = Forecaster(posterior, target, draws=draws, run_effect=plain)

    def lives(self, settings: Settings) -> FloatArray:
        """Chance of no collapse by the horizon, shape (draws,)."""
        return rate_tolerated(self.forecaster, settings, HORIZON)

    def reward(self, settings: Settings) -> FloatArray:
        """Expected reward of a run that lives, as a share of the range, shape (draws,)."""
        return self.forecaster.scaled_reward(settings, [HORIZON])[:, 0]


def simulated(preset: str, number: int) -> dict[str, Any]:
    """Draw, fit, advise, rank."""
    priors = load_priors(preset.split(",")[0])
    rng = np.random.default_rng([number, *preset.encode()])
    count = int(rng.integers(FEWEST, MOST + 1))
    plans = [PLANS[i] for i in sorted(rng.choice(len(PLANS), count, replace=False))]
    empty = design(plans)
    parameters = draw_prior(empty, priors, SPECTRUM, rng)
    drawn = hotter(parameters) if preset == CONTROL else parameters
    cohort = simulate(empty, drawn, SPECTRUM, rng)
    cohort = replace(cohort, reward=np.clip(cohort.reward, 0.0, 1.0))
    record: dict[str, Any] = {"number": number, "pilots": count}
    record["collapsed"] = int(cohort.collapsed.sum())
    try:
        posterior = converged(
            cohort, priors, SPECTRUM, Sampling(seed=int(rng.integers(2**31))), silent
        )
    except NotConvergedError:
        return record | {"converged": False}
    model = plans[-1][0]
    found = Truth(posterior, model, DRAWS)
    true = Truth(of_one_draw(cohort, priors, drawn), model, 1)
    choices = [
        FIXED.model_copy(update={"learning_rate": rate, "group_size": group})
        for rate in RATES
        for group in GROUPS
    ]
    safe = [one for one in choices if found.lives(one).mean() >= LEVEL]
    advised = max(safe, key=lambda one: found.reward(one).mean()) if safe else None
    ranks = {
        "lives, fixed": rank_of(true.lives(FIXED)[0], found.lives(FIXED)),
        "reward, fixed": rank_of(true.reward(FIXED)[0], found.reward(FIXED)),
    }
    record |= {"converged": True, "ranks": ranks, "advised": None}
    if advised is not None:
        said = found.reward(advised)
        low, high = np.quantile(said, [0.1, 0.9])
        record["advised"] = {
            "learning_rate": advised.learning_rate,
            "said": float(found.lives(advised).mean()),
            "true": float(true.lives(advised)[0]),
            "reward_said": float(said.mean()),
            "reward_true": float(true.reward(advised)[0]),
            "holds_80": bool(low <= true.reward(advised)[0] <= high),
        }
    return record


def hotter(parameters: Draws) -> Draws:
    """Parameters with three times the collapse rate."""
    moved = parameters["population"].copy()
    moved[:, POPULATION.index(f"hazard.{LAWS['hazard'][0]}")] += np.log(3)
    return parameters | {"population": moved}


def of_one_draw(cohort: Cohort, priors: Priors, parameters: Draws) -> Posterior:
    """A posterior of one draw: the truth."""
    raw = {name: values[None] for name, values in parameters.items()}
    statistics = {name: np.zeros((1, 1)) for name in ("diverging", "n_steps")}
    sure = {name: (np.ones(v.shape[2:]), np.ones(v.shape[2:])) for name, v in raw.items()}
    return make_posterior(cohort, priors, SPECTRUM, raw, statistics, sure, {}, seed=0)


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What ranks and advised configurations say."""
    fitted = [one for one in records if one["converged"]]
    band = uniform_band(len(fitted), DRAWS)
    told: dict[str, Any] = {
        "simulations": len(records),
        "not_converged": len(records) - len(fitted),
        "with_a_collapse": sum(one["collapsed"] > 0 for one in records),
        "ranks": {},
    }
    for name in fitted[0]["ranks"]:
        own = np.array([one["ranks"][name] for one in fitted])
        told["ranks"][name] = {
            "largest_difference": round(float(np.abs(difference(own, DRAWS)).max()), 4),
            "chance": band.chance(own),
            "holds_80": round(coverage(own, DRAWS, 0.8), 4),
        }
    advised = [one["advised"] for one in fitted if one["advised"] is not None]
    said, true = (np.array([one[key] for one in advised]) for key in ("said", "true"))
    error = np.array([one["reward_true"] - one["reward_said"] for one in advised])
    told["advised"] = {
        "pieces": len(advised),
        "lives_said": float(said.mean()),
        "lives_true": float(true.mean()),
        "true_less_said_standard_error": float(np.std(true - said) / np.sqrt(said.size)),
        "reward_true_less_said": float(error.mean()),
        "reward_standard_error": float(np.std(error) / np.sqrt(error.size)),
        "reward_holds_80": float(np.mean([one["holds_80"] for one in advised])),
    }
    return told


def run_shipped(presets: Sequence[str], simulations: int) -> dict[str, Any]:
    """Summaries of simulations under each preset."""
    told = {}
    for preset in presets:
        with ProcessPoolExecutor(2) as pool:
            jobs = [pool.submit(simulated, preset, number) for number in range(simulations)]
            told[preset] = summary([job.result() for job in as_completed(jobs)])
        print(preset, told[preset], flush=True)
    return told
