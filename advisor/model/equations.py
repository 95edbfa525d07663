"""The structural equations, once: the PyMC model and every prediction evaluate these.

Each takes numbers and numpy arrays, or PyTensor variables with ``xp=pytensor.tensor``. A run is
described by log ratios to the cohort's reference configuration. From them and the
population parameters follow its stiffness, its plateau and its collapse rate, each a linear law in
the logs. Exponents are learned, not assumed: under AdamW in the noise-dominated regime the rate
grows like sqrt(P G), so group-size invariance (arXiv:2606.30789) is a hypothesis that the data may
reject.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from advisor.model.cohort import Covariates, Reference
from advisor.runs import Settings
from advisor.theory import FloatArray, Oscillator, decay, spectrum_decay

STALE_LIMIT = 0.9  # Largest s k A fed to the closed form: beyond it the damping would change sign

ANCHOR_STIFFNESS = 0.05
"""Stiffness per optimizer step at which the plateau loss is known beforehand: a learning rate is
hot or mild by how fast it moves this task and model, not by its own value."""

MOST_HAZARD = 0.1
"""Collapse rate per step that no run exceeds: no fall is seen in fewer than some ten steps."""

LOG_HAZARD_ENDS = (-600.0, 50.0)  # Ends of the law of the log collapse rate: exp must not overflow

HAZARD_PER_LOSS = 1.3
"""Power of the plateau loss D by which the collapse rate grows. The rate is known beforehand where
D is 1, for the same heat that depresses a plateau ends a run. Fitted apart, three tables of 40
tiny-transformer runs had half of their runs dead in 200 steps at D = 0.8, 1.3 and 2.4."""

LOG_LOSS_ENDS = (-30.0, 3.0)
"""Ends of log D: e^3 = 20 is far beyond a visible reward, and exp must not overflow."""

DEGREES = 5.0
"""Degrees of freedom of a run's residuals, which are jointly Student t, and of an evaluation's."""

LEAST_VARIANCE = 1e-6
"""Variance of a bin below which no noise is believed, in squared shares of the reward range."""

WANDER_SHARE = 0.5  # Correlation time of a run's AR(1) residual over the steps that it logged


def covariates_of(
    settings: Settings, reference: Reference, log_parameters: float = 0.0
) -> Covariates:
    """What the laws see of settings that may be stacked."""
    return Covariates(
        np.log(settings.learning_rate / reference.learning_rate),
        np.log(settings.group_size / reference.group_size),
        np.log(settings.prompts_per_step / reference.prompts_per_step),
        log_parameters,
        np.log(settings.minibatches_per_refresh),
        np.log(settings.epochs_per_refresh),
    )


def rate_design(x: Covariates) -> FloatArray:
    """Design matrix of the rate law, shape (..., 3)."""
    return _stack(x.log_rate, x.log_group, x.log_prompts)


def plateau_loss_design(x: Covariates) -> FloatArray:
    """Design matrix of the plateau loss, shape (..., 5); temperature falls with the batch P G."""
    return _stack(
        1.0,
        x.log_rate,
        -(np.asarray(x.log_group) + x.log_prompts),
        np.asarray(x.log_minibatches) + x.log_epochs,
        x.log_parameters,
    )


def hazard_design(x: Covariates) -> FloatArray:
    """Design matrix of the collapse rate, shape (..., 6); only epochs reuse samples."""
    return _stack(
        1.0,
        x.log_rate,
        -(np.asarray(x.log_group) + x.log_prompts),
        x.log_minibatches,
        x.log_epochs,
        x.log_parameters,
    )


def designs(x: Covariates) -> dict[str, FloatArray]:
    """Design matrices of all laws."""
    laws = {"rate": rate_design, "plateau_loss": plateau_loss_design, "hazard": hazard_design}
    return {law: design(x) for law, design in laws.items()}


def _stack(*columns: Any) -> FloatArray:
    arrays = np.broadcast_arrays(*(np.asarray(column, dtype=float) for column in columns))
    return np.stack(arrays, axis=-1)


def hazard(log_law: Any, xp: Any = np) -> Any:
    """Collapse rate per optimizer step: ``r / (1 + r / MOST_HAZARD)``, r the law's exponential."""
    rate = xp.exp(xp.clip(log_law, *LOG_HAZARD_ENDS))
    return rate / (1 + rate / MOST_HAZARD)


def task_log_stiffness(headroom_logit: Any, log_slope: Any, xp: Any = np) -> Any:
    """Mean over tasks of the log stiffness at the reference configuration."""
    return xp.mean(log_slope + xp.log1p(xp.exp(-headroom_logit)), axis=-1)


def at_reference(population: Mapping[str, Any], log_stiffness: Any) -> dict[str, Any]:
    """Levels of plateau loss and collapse at the reference, from those at the priors' anchors."""
    above = log_stiffness - np.log(ANCHOR_STIFFNESS)
    loss = population["plateau_loss.level"] + population["plateau_loss.learning_rate"] * above
    hazard = population["hazard.level"] + HAZARD_PER_LOSS * loss
    return {**population, "plateau_loss.level": loss, "hazard.level": hazard}


def anchor_shift(name: str, population: Mapping[str, Any], log_stiffness: Any) -> Any:
    """By how much the prior mean of a level moves from its anchor to the pilots' reference."""
    if name == "hazard.level":
        return HAZARD_PER_LOSS * population["plateau_loss.level"]
    above = log_stiffness - np.log(ANCHOR_STIFFNESS)
    return population["plateau_loss.learning_rate"] * above


def at_anchor(population: Mapping[str, Any], log_stiffness: Any) -> dict[str, Any]:
    """Undo :func:`at_reference`: levels as the priors speak of them."""
    above = log_stiffness - np.log(ANCHOR_STIFFNESS)
    loss = population["plateau_loss.level"]
    hazard = population["hazard.level"] - HAZARD_PER_LOSS * loss
    anchored = loss - population["plateau_loss.learning_rate"] * above
    return {**population, "plateau_loss.level": anchored, "hazard.level": hazard}


class GroupLevel(NamedTuple):
    """Start, cold plateau and log stiffness of a (task, model), at the reference configuration."""

    start: Any
    cold_plateau: Any
    log_stiffness: Any


class RunLevel(NamedTuple):
    """One run's curve: dispersion is the squared variation of stiffness, onset 1 no slow start."""

    start: Any
    plateau: Any
    stiffness: Any
    dispersion: Any
    onset: Any


def group_level(
    population: Mapping[str, Any],
    headroom_logit: Any,
    log_slope: Any,
    start_logit: Any,
    headroom_offset: Any,
    stiffness_offset: Any,
    log_parameters: Any,
    xp: Any = np,
) -> GroupLevel:
    """Combine task level, model size and the model's own offsets."""
    start = sigmoid(start_logit, xp)
    spread = xp.exp(population["log_headroom_spread"])
    headroom = sigmoid(headroom_logit + spread * headroom_offset, xp)
    log_stiffness = (
        log_slope
        - xp.log(headroom)
        + population["curvature_exponent"] * log_parameters
        + xp.exp(population["log_model_spread"]) * stiffness_offset
    )
    return GroupLevel(start, start + (1 - start) * headroom, log_stiffness)


def reference_plateau(
    population: Mapping[str, Any], group: GroupLevel, log_parameters: Any, xp: Any = np
) -> Any:
    """Plateau of a (task, model) at the reference configuration with one update per refresh."""
    log_loss = population["plateau_loss.level"] + population["plateau_loss.size"] * log_parameters
    return group.cold_plateau * xp.exp(-xp.exp(xp.clip(log_loss, *LOG_LOSS_ENDS)))


def run_level(
    population: Mapping[str, Any],
    group: GroupLevel,
    log_rate_factor: Any,
    log_loss: Any,
    offsets: tuple[Any, Any, Any],
    log_onset: Any,
    interval: Any,
    clipped: Any,
    xp: Any = np,
) -> RunLevel:
    """Apply the rate law, clipping, temperature and seed noise to a group.

    Many parameters because: a run departs from its group in each of these ways.
    """
    plateau_offset, stiffness_offset, shape_offset = offsets
    stiffness = xp.exp(
        group.log_stiffness
        + log_rate_factor
        + xp.exp(population["log_run_rate_spread"]) * stiffness_offset
    )
    noise = xp.exp(population["log_run_plateau_spread"]) * plateau_offset
    # Luck that lifts the plateau also lessens its loss, which no law tells exactly.
    luck = xp.exp(population["log_run_loss_spread"]) * plateau_offset
    loss = xp.exp(xp.clip(log_loss - luck, *LOG_LOSS_ENDS))
    return RunLevel(
        group.start,
        shifted_share(group.cold_plateau, noise, xp) * xp.exp(-loss),
        clipped_stiffness(stiffness, interval, xp.exp(population["log_progress_limit"]), clipped),
        xp.exp(
            population["log_dispersion"] + xp.exp(population["log_run_shape_spread"]) * shape_offset
        ),
        xp.exp(log_onset),
    )


def uncorrected(population: Mapping[str, Any], corrected: Any, xp: Any = np) -> Any:
    """Share s of staleness that no ratio corrects: learned where a ratio is used, 1 without."""
    return 1 - corrected * (1 - sigmoid(population["uncorrected_log_odds"], xp))


def clipped_stiffness(stiffness: Any, interval: Any, progress_limit: Any, clipped: Any) -> Any:
    """Stiffness per step where the trust region caps the progress k K of one refresh."""
    return stiffness / (1 + clipped * stiffness * (interval - 1) / progress_limit)


def expected_reward(
    clock: Any,
    run: RunLevel,
    momentum: Any,
    mean_age: Any,
    uncorrected_share: Any,
    is_oscillator: Any = 0.0,
    xp: Any = np,
) -> Any:
    """Closed-form reward curve on the clock; ``s k A`` is bent below ``STALE_LIMIT``."""
    stale = uncorrected_share * run.stiffness * mean_age
    damping = 1 - stale / (1 + (stale / STALE_LIMIT) ** 4) ** 0.25
    left = spectrum_decay(clock, run.stiffness, damping, momentum, run.dispersion, run.onset, xp)
    if np.any(is_oscillator):
        mass = (1 + momentum) / (2 * (1 - momentum)) + stale * mean_age / 2
        swinging = decay(clock + 0.5, Oscillator(mass, damping, run.stiffness))
        swinging = swinging / decay(0.5, Oscillator(mass, damping, run.stiffness))
        left = xp.where(is_oscillator, xp.where(clock > 0, swinging, 1.0), left)
    return run.plateau + (run.start - run.plateau) * left


def held_out(reward: Any, start: Any, eval_start: Any, odds_ratio: Any, xp: Any = np) -> Any:
    """Held-out reward of a policy whose train reward is known."""
    risen = xp.maximum(reward - start, 0.0) / (1 - start)
    gained = eval_start + (1 - eval_start) * risen * odds_ratio / (1 - risen + risen * odds_ratio)
    return xp.where(reward < start, eval_start * reward / start, gained)


def sigmoid(value: Any, xp: Any = np) -> Any:
    """Logistic function without overflow."""
    return 0.5 * (1 + xp.tanh(0.5 * value))


def shifted_share(share: Any, log_odds: Any, xp: Any = np) -> Any:
    """Move a share in (0, 1) by ``log_odds``: ``logit(result) = logit(share) + log_odds``."""
    odds = xp.exp(log_odds)
    return share * odds / (1 - share + share * odds)
