"""Intervals of forecasts: one number, or a band along a run."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Interval(BaseModel):
    """Mean and central 80 % interval, in reward units."""

    model_config = ConfigDict(frozen=True)

    mean: float
    low: float
    high: float


class Band(BaseModel):
    """Reward to come: mean and central 80 % interval at each of some optimizer steps.

    With the slow wander of the run, without the noise of single batches, given that it stays
    stable.
    """

    model_config = ConfigDict(frozen=True)

    step: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
