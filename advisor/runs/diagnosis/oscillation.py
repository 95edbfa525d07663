"""Oscillation of the reward: a spectral peak that noise would not make."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.collapse import trailing_mean
from advisor.runs.diagnosis.levels import SMALLEST
from advisor.theory import FloatArray

FEWEST_ROWS = 40
FEWEST_CYCLES = 4
FEWEST_OTHERS = 3
LEAST_ROWS_A_CYCLE = 4
RARE = 1e-4
"""Chance that noise of the same colour has so high a peak anywhere."""


class Oscillation(NamedTuple):
    """A spectral peak: period in logged steps, chance of one so high in autoregressive noise."""

    period: float
    chance: float


def find_oscillation(step: FloatArray, reward: FloatArray) -> Oscillation | None:
    """Highest peak of the periodogram over the spectrum of first-order autoregressive noise.

    Rows are taken as evenly spaced, gaps closed, the trend taken off by a wide running mean. A peak
    is compared with the mean of the other frequencies but its neighbours, into which it leaks; in
    noise that ratio follows an F distribution. None where no peak is rarer than ``RARE``.
    """
    kept = np.isfinite(reward)
    values, times = reward[kept], step[kept]
    if values.size < FEWEST_ROWS:
        return None
    width = values.size // FEWEST_CYCLES | 1
    padded = np.pad(values, width // 2, mode="reflect")
    rest = values - trailing_mean(padded, width)
    rest = rest - rest.mean()
    largest = float(np.abs(rest).max())
    if largest <= SMALLEST * float(np.abs(values).max()):
        return None
    rest = rest / largest
    power = np.abs(np.fft.rfft(rest)) ** 2
    frequency = np.fft.rfftfreq(values.size)
    lag_one = float(np.clip(rest[1:] @ rest[:-1] / (rest @ rest), 0.0, 0.95))
    noise = 1 / (1 - 2 * lag_one * np.cos(2 * np.pi * frequency) + lag_one**2)
    looked = (frequency >= FEWEST_CYCLES / values.size) & (frequency <= 1 / LEAST_ROWS_A_CYCLE)
    scaled = power[looked] / noise[looked]
    top = int(np.argmax(scaled))
    others = np.delete(scaled, np.arange(max(0, top - 1), min(scaled.size, top + 2)))
    if scaled[top] <= 0 or others.size < FEWEST_OTHERS:
        return None
    # (1 + x / k)^-k is the tail of F(2, 2 k); any of the frequencies could have been the peak.
    share = others.sum() / (others.sum() + scaled[top])
    chance = float(min(1.0, scaled.size * share**others.size))
    if chance > RARE:
        return None
    spacing = float(np.median(np.diff(times)))
    return Oscillation(spacing / float(frequency[looked][top]), chance)
