"""Run effects conditional on each population draw: a Laplace approximation, then importance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.forecast.laws import RunLaws
from advisor.forecast.observed_run import ObservedRun, residual_correlation
from advisor.model import DEGREES, LEAST_VARIANCE, sigmoid
from advisor.theory import FloatArray

ITERATIONS = 6
"""Gauss-Newton steps; what they leave is corrected by importance."""

LONGEST_STEP = 1.5
"""Standard deviations of an effect that one of them may move."""

DIFFERENCE = 1e-3
"""Of an effect, for the derivative of the curve."""

COPIES = 4
"""Effects drawn per draw, in two mirrored pairs."""


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


def residuals_of(laws: RunLaws, observed: ObservedRun) -> Residuals:
    """Slow AR(1) residual plus the sampling noise of each bin, under each draw."""
    known, per_completion, per_prompt = observed.noise
    within = sigmoid(laws.population["within_log_odds"])[:, None]
    sampling = known + per_prompt + within * (per_completion - per_prompt)
    noise = np.exp(2 * laws.population["log_noise_scale"])[:, None] * sampling + LEAST_VARIANCE
    power = np.exp(2 * laws.population["log_misfit"])[:, None, None]
    covariance = power * residual_correlation(observed, observed.step, observed.step)
    bins = np.arange(observed.step.size)
    covariance[:, bins, bins] += noise
    factor = np.linalg.cholesky(covariance)
    return Residuals(
        np.linalg.inv(factor), np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    )


@dataclass(frozen=True)
class RunEffects:
    """Effects of a run drawn from a Laplace approximation, and what corrects for it.

    Attributes
    ----------
    effect : ndarray of shape (3, copies, draws)
    log_ratio : ndarray of shape (copies, draws)
        Log of likelihood times prior over the density that the effects were drawn from.
    """

    effect: FloatArray
    log_ratio: FloatArray


def run_effects(
    laws: RunLaws, observed: ObservedRun, residuals: Residuals, noise: FloatArray
) -> RunEffects:
    """Draw the effects of a run under each draw of the population.

    From standard normal noise of shape (3, COPIES // 2, draws), kept from step to step, so that
    what moves is the data's doing.
    """
    mode, curvature = _mode(laws, observed, residuals)
    factor = np.linalg.cholesky(curvature)
    # H = L L', so u = mode + L'^-1 z has covariance H^-1.
    back = np.linalg.inv(factor).swapaxes(1, 2)
    mirrored = np.concatenate([noise, -noise], axis=1)
    effect = mode[:, None, :] + np.einsum("dij,jcd->icd", back, mirrored)
    value = residuals.log_likelihood(
        residuals.squares(observed.reward - laws.reward(effect, observed.clock))
    ) - 0.5 * (effect**2).sum(axis=0)
    log_density = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1) - 0.5 * (
        mirrored**2
    ).sum(axis=0)
    return RunEffects(effect, value - log_density)


def _mode(
    laws: RunLaws, observed: ObservedRun, residuals: Residuals
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
    for _ in range(ITERATIONS):
        curves = residuals.white(
            observed.reward - laws.reward(effect[:, None, :] + moved, observed.clock)
        )
        white = curves[0]
        slopes = (curves[1:] - white) / DIFFERENCE
        squares = (white**2).sum(axis=-1)
        value = -residuals.log_likelihood(squares) + 0.5 * (effect**2).sum(axis=0)
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
        effect = best - step * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-12))
    return best, curvature
