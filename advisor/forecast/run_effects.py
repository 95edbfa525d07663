"""What a run has of its own, given each draw of what all runs share: Laplace, then importance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.forecast.forecaster import Forecaster
from advisor.forecast.observed_run import Seen, correlation
from advisor.model import equations as eq
from advisor.run.pilot_run import Hyperparameters
from advisor.theory.arrays import FloatArray, IntArray

DEGREES = 5.0
"""Degrees of freedom of a run's residuals, as in `posterior.kernel`."""

LEAST_VARIANCE = 1e-6
"""Variance of a bin below which no noise is believed, as in `posterior.kernel`."""

ITERATIONS = 6
"""Gauss-Newton steps; what they leave is corrected by importance."""

LONGEST_STEP = 1.5
"""Standard deviations of luck that one of them may move."""

DIFFERENCE = 1e-3
"""Of luck, for the derivative of the curve."""

COPIES = 4
"""Luck drawn per draw, in two mirrored pairs."""


@dataclass(frozen=True)
class Laws:
    """What the laws give a run under each draw, before its own luck.

    Attributes
    ----------
    population : mapping of str to ndarray of shape (draws,)
    group : GroupLevel
    log_rate_factor, log_loss, log_onset, is_oscillator : ndarray of shape (draws,)
    uncorrected : ndarray of shape (draws,)
        Share of staleness that no ratio corrects.
    settings : Hyperparameters
        Completed.
    """

    population: Mapping[str, FloatArray]
    group: eq.GroupLevel
    log_rate_factor: FloatArray
    log_loss: FloatArray
    log_onset: FloatArray
    is_oscillator: FloatArray
    uncorrected: FloatArray
    settings: Hyperparameters

    def taken(self, index: IntArray) -> Laws:
        """Return the laws of some of the draws."""
        return Laws(
            {name: values[index] for name, values in self.population.items()},
            eq.GroupLevel(*(values[index] for values in self.group)),
            self.log_rate_factor[index],
            self.log_loss[index],
            self.log_onset[index],
            self.is_oscillator[index],
            self.uncorrected[index],
            self.settings,
        )

    def reward(self, luck: FloatArray, polynomial: FloatArray) -> FloatArray:
        """Curve of a run, as a share of floor to ceiling.

        Parameters
        ----------
        luck : ndarray of shape (3, ..., draws)
            Plateau, stiffness, shape, in standard deviations.
        polynomial : ndarray of shape (times, 4)
            Of the clock.

        Returns
        -------
        reward : ndarray of shape (..., draws, times)
        """
        run = eq.run_level(
            self.population,
            self.group,
            self.log_rate_factor,
            self.log_loss,
            (luck[0], luck[1], luck[2]),
            self.log_onset,
            float(self.settings.refresh_interval or 1),
            float(bool(self.settings.importance_ratio)),
        )
        exponent = self.population["rate.learning_rate"]
        clock = np.stack([exponent**power for power in range(4)], axis=1) @ polynomial.T
        return np.asarray(
            eq.expected_reward(
                clock,
                eq.RunLevel(*(np.asarray(value)[..., None] for value in run)),
                self.settings.momentum or 0.0,
                self.settings.mean_age or 0.0,
                self.uncorrected[:, None],
                self.is_oscillator[:, None],
            )
        )


def laws_of(forecaster: Forecaster, settings: Hyperparameters) -> Laws:
    """Laws of a configuration under the draws of a forecaster."""
    x = forecaster.covariates(settings)
    task = forecaster.posterior.meta.tasks.index(forecaster.target.task)
    return Laws(
        forecaster.population,
        forecaster.group,
        forecaster.laws["rate"] @ eq.rate_design(x),
        forecaster.laws["plateau_loss"] @ eq.plateau_loss_design(x),
        forecaster.draw("log_onset")[:, task],
        forecaster.draw("is_oscillator"),
        forecaster.uncorrected_share(settings),
        settings,
    )


@dataclass(frozen=True)
class Residuals:
    """Covariance of a run's bins under each draw, and the density of what is left of them.

    Attributes
    ----------
    whitening : ndarray of shape (draws, bins, bins)
        Inverse of the lower Cholesky factor of the covariance.
    log_determinant : ndarray of shape (draws,)
        Half the logarithm of the covariance's determinant.
    """

    whitening: FloatArray
    log_determinant: FloatArray

    def squares(self, left: FloatArray) -> FloatArray:
        """Whitened sum of squares of residuals of shape (..., draws, bins)."""
        return np.asarray((self.white(left) ** 2).sum(axis=-1))

    def white(self, left: FloatArray) -> FloatArray:
        """Whitened residuals, shape (..., draws, bins)."""
        return np.asarray(np.matmul(self.whitening, left[..., None])[..., 0])

    def log_likelihood(self, squares: FloatArray) -> FloatArray:
        """Joint Student t density, up to a constant, shape of ``squares``."""
        rows = self.whitening.shape[-1]
        return np.asarray(
            -self.log_determinant - 0.5 * (DEGREES + rows) * np.log1p(squares / DEGREES)
        )


def residuals_of(laws: Laws, seen: Seen) -> Residuals:
    """Slow wander plus the sampling noise of each bin, under each draw."""
    known, per_completion, per_prompt = seen.noise
    within = eq.sigmoid(laws.population["within_log_odds"])[:, None]
    sampling = known + per_prompt + within * (per_completion - per_prompt)
    noise = np.exp(2 * laws.population["log_noise_scale"])[:, None] * sampling + LEAST_VARIANCE
    wander = np.exp(2 * laws.population["log_misfit"])[:, None, None]
    covariance = wander * correlation(seen, seen.step, seen.step)
    bins = np.arange(seen.step.size)
    covariance[:, bins, bins] += noise
    factor = np.linalg.cholesky(covariance)
    return Residuals(
        np.linalg.inv(factor), np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    )


@dataclass(frozen=True)
class Own:
    """Luck drawn from its Laplace approximation, and what corrects for the approximation.

    Attributes
    ----------
    luck : ndarray of shape (3, copies, draws)
    log_ratio : ndarray of shape (copies, draws)
        Log of likelihood times prior over the density that the luck was drawn from.
    """

    luck: FloatArray
    log_ratio: FloatArray


def own_effects(laws: Laws, seen: Seen, residuals: Residuals, noise: FloatArray) -> Own:
    """Draw the luck of a run under each draw of the population.

    Parameters
    ----------
    laws : Laws
    seen : Seen
    residuals : Residuals
    noise : ndarray of shape (3, COPIES // 2, draws)
        Standard normal; kept from step to step, so that what moves is the data's doing.

    Returns
    -------
    own : Own
    """
    mode, curvature = _mode(laws, seen, residuals)
    factor = np.linalg.cholesky(curvature)
    # H = L L', so u = mode + L'^-1 z has covariance H^-1.
    back = np.linalg.inv(factor).swapaxes(1, 2)
    mirrored = np.concatenate([noise, -noise], axis=1)
    luck = mode[:, None, :] + np.einsum("dij,jcd->icd", back, mirrored)
    value = residuals.log_likelihood(
        residuals.squares(seen.reward - laws.reward(luck, seen.clock))
    ) - 0.5 * (luck**2).sum(axis=0)
    log_density = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1) - 0.5 * (
        mirrored**2
    ).sum(axis=0)
    return Own(luck, value - log_density)


def _mode(laws: Laws, seen: Seen, residuals: Residuals) -> tuple[FloatArray, FloatArray]:
    """Mode of the luck, shape (3, draws), and the curvature there, shape (draws, 3, 3)."""
    draws, rows = laws.log_onset.size, seen.reward.size
    luck = np.zeros((3, draws))
    best = kept_gradient = luck
    curvature = np.broadcast_to(np.eye(3), (draws, 3, 3))
    lowest = np.full(draws, np.inf)
    damping = np.zeros(draws)
    # One evaluation gives the curve and its derivatives by each of the three kinds of luck.
    moved = np.concatenate([np.zeros((3, 1)), DIFFERENCE * np.eye(3)], axis=1)[:, :, None]
    for _ in range(ITERATIONS):
        curves = residuals.white(seen.reward - laws.reward(luck[:, None, :] + moved, seen.clock))
        white = curves[0]
        slopes = (curves[1:] - white) / DIFFERENCE
        squares = (white**2).sum(axis=-1)
        value = -residuals.log_likelihood(squares) + 0.5 * (luck**2).sum(axis=0)
        # A draw whose step went uphill returns to its best and steps less from there.
        better = value < lowest
        weight = (DEGREES + rows) / (DEGREES + squares)
        hessian = weight[:, None, None] * np.einsum("idb,jdb->dij", slopes, slopes) + np.eye(3)
        gradient = weight * np.einsum("idb,db->id", slopes, white) + luck
        lowest = np.where(better, value, lowest)
        best = np.where(better, luck, best)
        curvature = np.where(better[:, None, None], hessian, curvature)
        kept_gradient = np.where(better, gradient, kept_gradient)
        damping = np.where(better, damping / 4, 4 * damping + 1.0)
        damped = curvature * (1 + damping[:, None, None] * np.eye(3))
        step = np.linalg.solve(damped, kept_gradient.T[..., None])[..., 0].T
        length = np.sqrt((step**2).sum(axis=0))
        luck = best - step * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-12))
    return best, curvature
