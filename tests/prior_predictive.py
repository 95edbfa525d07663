"""What a preset believes of one run before any log: curves drawn from its priors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.model import POPULATION, RUN_EFFECTS, Priors
from advisor.model import equations as eq
from advisor.theory import FloatArray, inertial_time

GROUP_SIZE, REFRESH_INTERVAL, MOMENTUM = 8, 1, 0.9
"""Reference configuration of a curve; its learning rate, prompts and model size are the
reference's as well, so no exponent of a law has anything to act on."""

BANDS = (0.5, 0.8, 0.95)  # Probabilities of the central bands
GAIN = 0.95  # Share of the gain whose time is asked for
COLLAPSE_STEPS = 1000  # Optimizer steps within which the share of collapses is stated

TIMES = 160
LONGEST = 1e6  # Points of a curve; optimizer steps at which it ends at the latest
_LARGEST_LOG = 700.0  # Below the logarithm of the largest float


@dataclass(frozen=True)
class PriorPredictive:
    """Prior draws of a run of a new model on a new task, at the reference configuration."""

    preset: str
    steps: FloatArray
    reward: FloatArray
    start: FloatArray
    plateau: FloatArray
    time: FloatArray
    collapsed: float

    def bands(self, name: str) -> dict[float, tuple[float, float]]:
        """Central bands of ``start``, ``plateau`` or ``time`` by probability."""
        values = getattr(self, name)
        ends = {s: np.quantile(values, [(1 - s) / 2, (1 + s) / 2]) for s in BANDS}
        return {share: (float(low), float(high)) for share, (low, high) in ends.items()}

    def median(self, name: str) -> float:
        """Median of ``start``, ``plateau`` or ``time``."""
        return float(np.median(getattr(self, name)))


def prior_predictive(priors: Priors, *, draws: int = 4000, seed: int = 0) -> PriorPredictive:
    """Draw what a preset believes about a run at the reference configuration."""
    rng = np.random.default_rng(seed)
    names = (*POPULATION, "log_onset", "headroom_logit", "log_slope")
    population = {name: priors.drawn(name, rng, draws) for name in names}
    log_onset, headroom, slope = (population.pop(name) for name in names[-3:])
    stiffness = eq.task_log_stiffness(headroom[:, None], slope[:, None])
    population = eq.at_reference(population, stiffness)
    group = eq.group_level(
        population,
        headroom,
        slope,
        priors.drawn("start_logit", rng, draws),
        rng.standard_normal(draws),
        rng.standard_normal(draws),
        0.0,
    )
    luck = rng.standard_normal((len(RUN_EFFECTS), draws))
    run = eq.run_level(
        population,
        group,
        np.zeros(draws),
        population["plateau_loss.level"],
        (luck[0], luck[1], luck[2]),
        log_onset,
        float(REFRESH_INTERVAL),
        1.0,
    )
    time = _time_of(GAIN, run)
    horizon = min(10 ** np.ceil(np.log10(np.quantile(time, 0.9))), LONGEST)
    steps = np.geomspace(1.0, horizon, TIMES)
    reward = eq.expected_reward(
        steps,
        eq.RunLevel(*(np.asarray(value)[:, None] for value in run)),
        MOMENTUM,
        (REFRESH_INTERVAL - 1) / 2,
        eq.uncorrected(population, 1.0)[:, None],
    )
    return PriorPredictive(
        priors.name,
        steps,
        reward,
        np.asarray(run.start),
        np.asarray(run.plateau),
        time,
        float(1 - np.exp(-COLLAPSE_STEPS * eq.hazard(population["hazard.level"])).mean()),
    )


def _time_of(share: float, run: eq.RunLevel) -> FloatArray:
    """Steps to a share of the gain, (draws,): the curve inverted, by bisection for momentum."""
    log_left = np.minimum(-np.log1p(-share) * run.dispersion, _LARGEST_LOG)
    log_progress = np.log(np.expm1(log_left) / run.dispersion) / run.onset
    wanted = np.exp(np.minimum(log_progress - np.log(run.stiffness), _LARGEST_LOG / 2))
    low, high = wanted, wanted + MOMENTUM / (1 - MOMENTUM)
    for _ in range(60):
        middle = (low + high) / 2
        is_early = inertial_time(middle, MOMENTUM) < wanted
        low, high = np.where(is_early, middle, low), np.where(is_early, high, middle)
    return np.asarray((low + high) / 2)
