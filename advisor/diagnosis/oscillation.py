"""Oscillation of the reward: a spectral peak that noise would not make."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

FEWEST_ROWS = 40
FEWEST_CYCLES = 4
LEAST_ROWS_A_CYCLE = 4
RARE = 1e-4
"""Chance that noise of the same colour has so high a peak anywhere."""


class Oscillation(NamedTuple):
    """A spectral peak.

    Attributes
    ----------
    period : float
        Logged steps.
    chance : float
        That autoregressive noise has a peak so high at any frequency looked at.
    """

    period: float
    chance: float


def find_oscillation(step: FloatArray, reward: FloatArray) -> Oscillation | None:
    """Highest peak of the periodogram over the spectrum of first-order autoregressive noise.

    Parameters
    ----------
    step, reward : ndarray of shape (rows,)
        Evenly spaced rows; gaps are closed.

    Returns
    -------
    oscillation : Oscillation or None
        None where there are too few rows or no peak is rarer than ``RARE``. The trend is a
        straight line plus an exponential rise, taken off by a wide running mean.
    """
    kept = np.isfinite(reward)
    values, times = reward[kept], step[kept]
    if values.size < FEWEST_ROWS:
        return None
    width = values.size // FEWEST_CYCLES | 1
    padded = np.pad(values, width // 2, mode="reflect")
    rest = values - np.convolve(padded, np.ones(width) / width, mode="valid")
    rest = rest - rest.mean()
    power = np.abs(np.fft.rfft(rest)) ** 2
    frequency = np.fft.rfftfreq(values.size)
    lag_one = float(np.clip(rest[1:] @ rest[:-1] / max(rest @ rest, 1e-300), 0.0, 0.95))
    noise = 1 / (1 - 2 * lag_one * np.cos(2 * np.pi * frequency) + lag_one**2)
    looked = (frequency >= FEWEST_CYCLES / values.size) & (frequency <= 1 / LEAST_ROWS_A_CYCLE)
    if not looked.any() or not power[looked].any():
        return None
    scaled = power[looked] / noise[looked]
    # The median of an exponential variable is ln 2 of its mean, and does not feel the peak.
    scaled = scaled / (np.median(scaled) / np.log(2))
    top = int(np.argmax(scaled))
    chance = float(-np.expm1(looked.sum() * np.log1p(-np.exp(-scaled[top]))))
    if chance > RARE:
        return None
    spacing = float(np.median(np.diff(times)))
    return Oscillation(spacing / float(frequency[looked][top]), chance)
