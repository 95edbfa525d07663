"""A growing run as arrays: what its log shows so far, on the scale of the pilots' posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.errors import InputError
from advisor.forecast.laws import scored_steps
from advisor.model import (
    CLOCK_EXPONENTS,
    WANDER_SHARE,
    Meta,
    build_cohort,
    clock_polynomial,
    planned_factors,
)
from advisor.runs import Collapse, PilotRun, Settings, find_final_fall
from advisor.theory import FloatArray, cumulative_clock


@dataclass(frozen=True)
class ObservedRun:
    """Rows of one run as the likelihood sees them, and its clock up to the planned end.

    Attributes
    ----------
    settings : Settings
        Completed, at the highest learning rate logged so far.
    fall : Collapse
        Whether it has fallen for good so far, by more than noise does.
    reward, step : ndarray of shape (bins,)
        Mean reward as a share of floor to ceiling, and mean optimizer step.
    noise : tuple of ndarray of shape (bins,)
        Sampling variance that is known, per completion and per prompt (`runs.cohort.Cohort`).
    clock : ndarray of shape (bins, 4)
        Polynomial of the clock in the learning-rate exponent.
    correlation_steps : float
        Correlation time of the AR(1) residual, in optimizer steps.
    exposure, exposure_left : float
        Steps survived, and those to come, weighted by (rate / peak)^2.
    last, end : int
        Optimizer steps done and planned.
    ahead : ndarray of shape (end + 1, 4)
        Polynomial of the clock after 0, 1, ... optimizer steps.
    """

    settings: Settings
    fall: Collapse
    reward: FloatArray
    step: FloatArray
    noise: tuple[FloatArray, FloatArray, FloatArray]
    clock: FloatArray
    correlation_steps: float
    exposure: float
    exposure_left: float
    last: int
    end: int
    ahead: FloatArray

    def clock_at(self, steps: FloatArray) -> FloatArray:
        """Polynomial of the clock of the rows at such steps, shape (steps, 4).

        A logged reward scores the policy of the latest refresh.
        """
        scored = scored_steps(self.settings, steps)
        return np.asarray(self.ahead[np.minimum(scored.astype(int), self.end)])


def observe(run: PilotRun, meta: Meta, planned_steps: int) -> ObservedRun:
    """Turn what a log shows so far into arrays; after a final fall, only the part before it."""
    _check_scale(run, meta)
    settings = run.hyperparameters.model_copy(update={"learning_rate": peak_rate(run)})
    own = run.with_updates(
        hyperparameters=settings, reward_floor=meta.floor, reward_ceiling=meta.ceiling
    )
    fall, _ = find_final_fall(run.step, run.reward, meta.floor)
    # A collapse is claimed so that a beginning without any gain is not refused; of what depends on
    # it only the exposure up to that step is used.
    cohort = build_cohort(
        [own],
        {run.id: float(run.step[-1])},
        {run.id: fall.healthy_until if fall.unstable else None},
    )
    completed = cohort.settings[0]
    last = int(run.step[-1])
    end = max(planned_steps, last)
    factors = _factors(own, completed, end)
    table = np.stack([cumulative_clock(factors, float(a)) for a in CLOCK_EXPONENTS], axis=1)
    return ObservedRun(
        settings=completed,
        fall=fall,
        reward=cohort.reward,
        step=cohort.step,
        noise=(cohort.noise_known, cohort.noise_per_completion, cohort.noise_per_prompt),
        clock=clock_polynomial(cohort.clock),
        correlation_steps=WANDER_SHARE * max(float(cohort.step[-1]), 1.0),
        exposure=float(cohort.exposure[0]),
        exposure_left=float(np.sum(factors[last:] ** 2)),
        last=last,
        end=end,
        ahead=clock_polynomial(table),
    )


def peak_rate(run: PilotRun) -> float | None:
    """Highest learning rate: that of the settings, or a higher one that was logged."""
    given = run.hyperparameters.learning_rate
    logged = run.series.get("learning_rate", np.zeros(0))
    logged = logged[np.isfinite(logged)]
    if given is None or not logged.size:
        return given
    return max(given, float(logged.max()))


def residual_correlation(
    observed: ObservedRun, steps: FloatArray, others: FloatArray
) -> FloatArray:
    """Correlation of the AR(1) residual between steps, shape (steps, others)."""
    return np.asarray(
        np.exp(-np.abs(steps[:, None] - others[None, :]) / observed.correlation_steps)
    )


def _factors(run: PilotRun, settings: Settings, end: int) -> FloatArray:
    """Learning rate over its peak for each optimizer step: logged so far, then as scheduled."""
    factors = planned_factors(settings.or_planned_over(end), end)
    logged = run.series.get("learning_rate")
    known = None if logged is None else np.isfinite(logged)
    if logged is None or known is None or known.sum() < 2:
        return factors
    last = int(run.step[known][-1])
    grid = np.arange(1, last + 1, dtype=float)
    past = np.interp(grid, run.step[known], logged[known]) / settings.learning_rate
    # What differs from the schedule now, such as a rate changed by hand, stays.
    stays = past[-1] / factors[last - 1] if factors[last - 1] > 0 else 1.0
    return np.asarray(np.clip(np.concatenate([past, stays * factors[last:]]), 0.0, 1.0))


def _check_scale(run: PilotRun, meta: Meta) -> None:
    reward = run.reward[np.isfinite(run.reward)]
    if not reward.size:
        raise InputError(
            "no finite reward is logged yet", path=run.path, key="reward", advice="Wait for a row"
        )
    low, high = float(reward.min()), float(reward.max())
    if low < meta.floor or high > meta.ceiling:
        raise InputError(
            f"rewards run from {low:g} to {high:g}, the pilots' bounds are "
            f"[{meta.floor:g}, {meta.ceiling:g}]",
            path=run.path,
            key="reward",
            advice="Use a posterior of pilots with the same reward function",
        )
