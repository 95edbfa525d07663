"""Median and central 80 % interval of draws."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from advisor.model.posterior import INTERVAL
from advisor.theory.arrays import FloatArray


class Span(NamedTuple):
    """Median and ends of the central 80 % interval."""

    lower: float
    median: float
    upper: float

    def written(self, digits: int) -> str:
        """Median and interval to so many significant digits."""
        low, mid, high = (f"{value:.{digits}g}" for value in self)
        return f"{mid} [{low}, {high}]"

    @property
    def exponential(self) -> Span:
        """Of a logarithm: the span of the quantity itself."""
        return Span(*(math.exp(value) for value in self))


def span_of(draws: FloatArray) -> Span:
    """Span of draws of shape (draws,)."""
    ends = np.quantile(draws, [(1 - INTERVAL) / 2, 0.5, (1 + INTERVAL) / 2])
    return Span(*ends.tolist())
