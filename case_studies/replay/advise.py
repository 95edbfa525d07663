"""Advice in a world of finished runs: fit the pilots, ask the advisor, look up what came of it."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from tables import World

import advisor
from advisor.advice import Budget, CostModel, Objective
from advisor.advice.evaluate import Evaluator
from advisor.errors import AdvisorError
from advisor.forecast import Forecaster, fit
from advisor.model import Posterior, Priors, Sampling
from advisor.model import equations as eq
from advisor.runs import PilotRun

LEVEL = 0.9
"""P(stable) asked for: the command line's default."""

UNPRICED = CostModel(source="the tables hold no times")


class Advice(NamedTuple):
    """What the advisor said, and what it expected of every candidate.

    Attributes
    ----------
    advised : dict of str to int
        Run named, by method: the advisor, and the advisor without a part of it.
    p_stable, reward, lower, upper : list of float
        Of every candidate.
    candidates : list of int
    """

    advised: dict[str, int]
    p_stable: list[float]
    reward: list[float]
    lower: list[float]
    upper: list[float]
    candidates: list[int]


def fitted(
    world: World, pilots: list[int], cut: int, priors: Priors | str | None, seed: int
) -> Posterior | str:
    """Posterior of the pilots, or why there is none."""
    return fit_runs([world.pilot(index, cut) for index in pilots], priors, seed)


def fit_runs(runs: list[PilotRun], priors: Priors | str | None, seed: int) -> Posterior | str:
    """Posterior of runs, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(runs, priors=priors, sampling=Sampling(seed=seed + 1))
        except AdvisorError as error:
            return str(error)


def advise(world: World, posterior: Posterior) -> Advice:
    """Ask for advice among the runs of a world.

    Parameters
    ----------
    world : World
    posterior : Posterior
    """
    candidates = world.candidates()
    offered = [world.settings(index) for index in candidates]
    found = advisor.advise(
        posterior,
        task=world.target.task,
        model=world.target.model,
        parameters=world.target.parameters,
        level=LEVEL,
        choose_from=offered,
        indifference=0.0,
        weigh_pilots=False,
        trials=len(offered),
        seed=0,
        steps=world.steps,
    )
    named = _place(found.settings)
    advised = {"advisor": candidates[[_place(s) for s in offered].index(named)]}
    forecaster = Forecaster(posterior, world.target)
    evaluate = Evaluator(forecaster, Objective(), Budget(steps=world.steps), UNPRICED)
    every = [evaluate(settings) for settings in offered]
    advised["advisor without P(stable)"] = candidates[int(np.argmax([e.reward for e in every]))]
    draws = [forecaster.outcome(e.planned, [e.cost.steps])[:, 0] for e in every]
    others = [
        e.stability.probability / max(e.stability.tolerance, 1e-9) if e.stability.tolerance else 0.0
        for e in every
    ]
    untolerated = [(share >= LEVEL, e.reward) for share, e in zip(others, every, strict=True)]
    advised["advisor without tolerance"] = candidates[
        max(range(len(every)), key=lambda i: untolerated[i])
    ]
    return Advice(
        advised,
        [e.stability.probability for e in every],
        [e.reward for e in every],
        [float(np.quantile(d, 0.1)) for d in draws],
        [float(np.quantile(d, 0.9)) for d in draws],
        candidates,
    )


def _place(settings: object) -> tuple[object, ...]:
    names = ("learning_rate", "group_size", "minibatches_per_refresh", "epochs_per_refresh")
    return tuple(getattr(settings, name) for name in names)


def without_pilots(world: World, posterior: Posterior, seed: int) -> Posterior:
    """A posterior as it would be with no pilots: draws of the prior round the table's centre.

    Parameters
    ----------
    world : World
    posterior : Posterior
        Of any pilots of this world, for its names and shapes.
    seed : int
    """
    rng = np.random.default_rng(seed)
    meta = posterior.meta
    draws = {}
    for name, values in posterior.draws.items():
        prior = getattr(meta.priors, name.replace(".", "_"), None)
        noise = rng.standard_normal(values.shape)
        if prior is not None:
            draws[name] = prior.mean + prior.sd * noise
        elif name.startswith(("group_offset", "run_offset")):
            draws[name] = noise
        else:
            draws[name] = values
    stiffness = eq.task_log_stiffness(draws["headroom_logit"], draws["log_slope"])
    draws |= eq.at_reference(draws, stiffness)
    settings = [run.hyperparameters for run in world.runs]

    def centre(name: str) -> float:
        return float(np.exp(np.mean([np.log(getattr(s, name)) for s in settings])))

    reference = meta.reference.__class__(
        centre("learning_rate"),
        centre("group_size"),
        centre("prompts_per_step"),
        meta.reference.parameters,
    )
    return Posterior(draws, posterior.pilots, meta.model_copy(update={"reference": reference}))
