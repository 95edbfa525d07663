"""The likelihood of one run: its log as arrays, its residuals, its own effects, weights of draws.

What a curve leaves of the rewards is a slow AR(1) residual and the sampling noise of each bin,
jointly Student t: the density of `advisor.model`, which it has over a cohort of padded bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from advisor import model
from advisor.diagnosis import Collapse
from advisor.errors import InputError
from advisor.forecast.forecaster import Forecaster, RunLaws, scored_steps
from advisor.forecast.new_configuration import RunEffect
from advisor.forecast.survival import collapse_rate
from advisor.model import DEGREES
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, IntArray, cumulative_clock

DIFFERENCE = 1e-3  # Of an effect, for the derivative of the curve
COPIES = 4  # Effects drawn per draw, in two mirrored pairs


@dataclass(frozen=True)
class ObservedRun:
    """Rows of one run as the likelihood sees them, and its clock up to the planned end."""

    settings: Settings
    fall: Collapse
    reward: FloatArray  # (bins,)
    step: FloatArray  # (bins,)
    noise: tuple[FloatArray, FloatArray, FloatArray]  # (bins,)
    clock: FloatArray  # (bins, 4)
    correlation_steps: float
    logging_steps: int
    exposure: float
    exposure_left: float
    last: int
    end: int
    ahead: FloatArray  # (end + 1, 4)

    def clock_at(self, steps: FloatArray) -> FloatArray:
        """Polynomial of the clock of the rows at such steps, shape (steps, 4)."""
        scored = scored_steps(self.settings, steps)
        return np.asarray(self.ahead[np.minimum(scored.astype(int), self.end)])

    def correlation(self, steps: FloatArray) -> FloatArray:
        """Correlation of the AR(1) residual between bins and steps, shape (bins, steps)."""
        apart = np.abs(self.step[:, None] - steps[None, :])
        return np.asarray(np.exp(-apart / self.correlation_steps))


def observe(run: PilotRun, meta: model.Meta, planned_steps: int) -> ObservedRun:
    """Turn what a log shows so far into arrays; after a final fall, only the part before it."""
    reward = run.reward[np.isfinite(run.reward)]
    if not reward.size:
        raise InputError(
            "no finite reward is logged yet", path=run.path, key="reward", advice="Wait for a row"
        )
    if reward.min() < meta.floor or reward.max() > meta.ceiling:
        raise InputError(
            f"rewards run from {reward.min():g} to {reward.max():g}, the pilots' bounds are "
            f"[{meta.floor:g}, {meta.ceiling:g}]",
            path=run.path,
            key="reward",
            advice="Use a posterior of pilots with the same reward function",
        )
    settings = run.hyperparameters.model_copy(update={"learning_rate": peak_rate(run)})
    own = run.with_updates(
        hyperparameters=settings, reward_floor=meta.floor, reward_ceiling=meta.ceiling
    )
    fall = Collapse.of(run, meta.floor)
    # A collapse is claimed so that a beginning without any gain is not refused; of what depends on
    # it only the exposure up to that step is used.
    until = {run.id: fall.healthy_until if fall.unstable else None}
    cohort = model.build_cohort([own], {run.id: float(run.step[-1])}, until)
    completed, last = cohort.settings[0], int(run.step[-1])
    end = max(planned_steps, last)
    factors = _factors(own, completed, end)
    table = np.stack([cumulative_clock(factors, float(a)) for a in model.CLOCK_EXPONENTS], axis=1)
    return ObservedRun(
        settings=completed,
        fall=fall,
        reward=cohort.reward,
        step=cohort.step,
        noise=(cohort.noise_known, cohort.noise_per_completion, cohort.noise_per_prompt),
        clock=model.clock_polynomial(cohort.clock),
        correlation_steps=model.WANDER_SHARE * max(float(cohort.step[-1]), 1.0),
        logging_steps=run.logging_steps,
        exposure=float(cohort.exposure[0]),
        exposure_left=float(np.sum(factors[last:] ** 2)),
        last=last,
        end=end,
        ahead=model.clock_polynomial(table),
    )


def peak_rate(run: PilotRun) -> float | None:
    """Highest learning rate: that of the settings, or a higher one that was logged."""
    given = run.hyperparameters.learning_rate
    logged = run.series.get("learning_rate", np.zeros(0))
    logged = logged[np.isfinite(logged)]
    if given is None or not logged.size:
        return given
    return max(given, float(logged.max()))


def _factors(run: PilotRun, settings: Settings, end: int) -> FloatArray:
    """Learning rate over its peak for each optimizer step: logged so far, then as scheduled."""
    factors = model.planned_factors(settings.or_planned_over(end), end)
    logged = run.series.get("learning_rate", np.full(run.step.size, np.nan))
    known = np.isfinite(logged)
    if known.sum() < 2:
        return factors
    last = int(run.step[known][-1])
    grid = np.arange(1, last + 1, dtype=float)
    past = np.interp(grid, run.step[known], logged[known]) / settings.learning_rate
    # What differs from the schedule now, such as a rate changed by hand, stays.
    stays = past[-1] / factors[last - 1] if factors[last - 1] > 0 else 1.0
    return np.asarray(np.clip(np.concatenate([past, stays * factors[last:]]), 0.0, 1.0))


class BinResiduals(NamedTuple):
    """Covariance of a run's bins under each draw, and the density of what is left of them."""

    whitening: FloatArray  # (draws, bins, bins)
    log_determinant: FloatArray  # (draws,)

    def white(self, left: FloatArray) -> FloatArray:
        """Whitened residuals, shape (..., draws, bins)."""
        return np.asarray(np.matmul(self.whitening, left[..., None])[..., 0])

    def log_density(self, white: FloatArray) -> FloatArray:
        """Joint Student t density of whitened residuals, up to a constant, shape (..., draws)."""
        rows, squares = self.whitening.shape[-1], (white**2).sum(axis=-1)
        return np.asarray(
            -self.log_determinant - 0.5 * (DEGREES + rows) * np.log1p(squares / DEGREES)
        )


def residuals_of(laws: RunLaws, observed: ObservedRun) -> BinResiduals:
    """Slow AR(1) residual plus the sampling noise of each bin, under each draw."""
    known, per_completion, per_prompt = observed.noise
    within = model.sigmoid(laws.population["within_log_odds"])[:, None]
    sampling = known + per_prompt + within * (per_completion - per_prompt)
    scale = np.exp(2 * laws.population["log_noise_scale"])[:, None]
    noise = scale * sampling + model.LEAST_VARIANCE
    power = np.exp(2 * laws.population["log_misfit"])[:, None, None]
    covariance = power * observed.correlation(observed.step)
    bins = np.arange(observed.step.size)
    covariance[:, bins, bins] += noise
    factor = np.linalg.cholesky(covariance)
    log_determinant = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    return BinResiduals(np.linalg.inv(factor), log_determinant)


class RunEffects(NamedTuple):
    """Effects of a run drawn from a Laplace approximation, and what corrects for it."""

    effect: FloatArray  # (3, copies, draws)
    log_ratio: FloatArray  # (copies, draws)


def run_effects(
    laws: RunLaws, observed: ObservedRun, residuals: BinResiduals, noise: FloatArray
) -> RunEffects:
    """Draw the effects of a run under each draw of the population."""
    mode, curvature = _mode(laws, observed, residuals)
    factor = np.linalg.cholesky(curvature)
    # H = L L', so u = mode + L'^-1 z has covariance H^-1.
    back = np.linalg.inv(factor).swapaxes(1, 2)
    mirrored = np.concatenate([noise, -noise], axis=1)
    effect = mode[:, None, :] + np.einsum("dij,jcd->icd", back, mirrored)
    white = residuals.white(observed.reward - laws.reward(effect, observed.clock))
    value = residuals.log_density(white) - 0.5 * (effect**2).sum(axis=0)
    log_determinant = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    log_density = log_determinant - 0.5 * (mirrored**2).sum(axis=0)
    return RunEffects(effect, value - log_density)


def _mode(
    laws: RunLaws, observed: ObservedRun, residuals: BinResiduals
) -> tuple[FloatArray, FloatArray]:
    """Mode of the effects, shape (3, draws), and the curvature there, shape (draws, 3, 3)."""
    draws, rows = laws.log_onset.size, observed.reward.size
    effect = np.zeros((3, draws))
    best = kept_gradient = effect
    curvature = np.broadcast_to(np.eye(3), (draws, 3, 3))
    lowest = np.full(draws, np.inf)
    damping = np.zeros(draws)
    # One evaluation gives the curve and its derivatives by each of the three kinds of effects.
    moved = np.concatenate([np.zeros((3, 1)), DIFFERENCE * np.eye(3)], axis=1)[:, :, None]
    for _ in range(6):  # Gauss-Newton steps; what they leave is corrected by importance
        expected = laws.reward(effect[:, None, :] + moved, observed.clock)
        curves = residuals.white(observed.reward - expected)
        white = curves[0]
        slopes = (curves[1:] - white) / DIFFERENCE
        squares = (white**2).sum(axis=-1)
        value = -residuals.log_density(white) + 0.5 * (effect**2).sum(axis=0)
        # A draw whose step went uphill returns to its best and steps less from there.
        better = value < lowest
        weight = (DEGREES + rows) / (DEGREES + squares)
        hessian = weight[:, None, None] * np.einsum("idb,jdb->dij", slopes, slopes) + np.eye(3)
        gradient = weight * np.einsum("idb,db->id", slopes, white) + effect
        lowest = np.where(better, value, lowest)
        best = np.where(better, effect, best)
        curvature = np.where(better[:, None, None], hessian, curvature)
        kept_gradient = np.where(better, gradient, kept_gradient)
        damping = np.where(better, damping / 4, 4 * damping + 1.0)
        damped = curvature * (1 + damping[:, None, None] * np.eye(3))
        step = np.linalg.solve(damped, kept_gradient.T[..., None])[..., 0].T
        length = np.sqrt((step**2).sum(axis=0))
        # Standard deviations of an effect that one of them may move.
        effect = best - step * np.minimum(1.0, 1.5 / np.maximum(length, 1e-12))
    return best, curvature


class EqualDraws(NamedTuple):
    """Population draws with effects of the run, resampled so that all count the same."""

    draw: IntArray  # (size,), of the population
    effect: FloatArray  # (3, size)
    laws: RunLaws
    residuals: BinResiduals

    def residual_at(
        self, step: float, observed: ObservedRun
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and variance of the residual at a step given the rows, and the rows' squares."""
        expected = self.laws.reward(self.effect, observed.clock)
        white = self.residuals.white(observed.reward - expected)
        power = np.exp(2 * self.laws.population["log_misfit"])
        lean = self.residuals.white(observed.correlation(np.array([float(step)]))[:, 0])
        pulled = power[:, None] * lean
        variance = np.maximum(power - (pulled**2).sum(axis=1), 0.0)
        return (pulled * white).sum(axis=1), variance, (white**2).sum(axis=1)


@dataclass(frozen=True)
class ReweightedDraws:
    """Population draws, effects of the run under each, and how much each pair counts."""

    laws: RunLaws
    residuals: BinResiduals
    effect: FloatArray  # (3, copies, draws)
    weight: FloatArray  # (copies, draws)
    log_marginal: FloatArray  # (draws,)
    pareto_k: float

    def resampled(self, size: int) -> EqualDraws:
        """Draw pairs by their weights, at evenly spaced quantiles of their order."""
        edges = np.cumsum(self.weight.ravel())
        places = np.searchsorted(edges, (np.arange(size) + 0.5) / size * edges[-1])
        copy, index = np.unravel_index(np.minimum(places, edges.size - 1), self.weight.shape)
        index = index.astype(np.int64)
        residuals = BinResiduals(*(values[index] for values in self.residuals))
        return EqualDraws(index, self.effect[:, copy, index], self.laws.taken(index), residuals)


def reweighted(
    forecaster: Forecaster,
    observed: ObservedRun,
    *,
    has_fallen: bool,
    counted: FloatArray | float = 0.0,
) -> ReweightedDraws:
    """Weigh the draws of a forecaster by the marginal likelihood of a run."""
    laws = forecaster.laws_of(observed.settings)
    residuals = residuals_of(laws, observed)
    rng = np.random.default_rng((forecaster.seed, 4))  # apart from the draws of a new model
    noise = rng.standard_normal((3, COPIES // 2, forecaster.size))
    effects = run_effects(laws, observed, residuals, noise)
    own = forecaster.with_run_effect(RunEffect.given(effects.effect))
    rate = collapse_rate(own, observed.settings)
    log_ratio = effects.log_ratio - rate * observed.exposure + has_fallen * np.log(rate)
    top = log_ratio.max(axis=0)
    within = np.exp(log_ratio - top)
    total = within.sum(axis=0)
    log_marginal = top + np.log(total)
    shared, k = model.smoothed_weights(log_marginal - counted)
    weight = shared * within / total
    return ReweightedDraws(laws, residuals, effects.effect, weight, log_marginal, k)
