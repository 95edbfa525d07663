"""Where a forecast takes a run's own effects from: a fresh seed, a fitted pilot, or an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.model import RUN_EFFECTS, Posterior
from advisor.theory import FloatArray, IntArray


@dataclass(frozen=True)
class RunEffect:
    """Strategy for the seed noise of a run on plateau and stiffness and the shape of its curve.

    This is the `Luck` of a run: what differs between two runs of the same settings.

    Attributes
    ----------
    values : callable
        From the posterior and the indices of the draws in use to an array of shape (3, ..., draws),
        in standard deviations, by the names of `parameters.RUN_EFFECTS`.
    draws : ndarray of shape (size,), optional
        Which of the forecaster's draws are used, with repeats [default: each once].
    """

    values: Callable[[Posterior, IntArray], FloatArray]
    draws: IntArray | None = None

    @classmethod
    def fresh(cls, seed: int | Sequence[int]) -> RunEffect:
        """Effects of a run that nobody has begun, drawn with this seed."""
        return cls(
            lambda _, kept: np.random.default_rng(seed).standard_normal(
                (len(RUN_EFFECTS), kept.size)
            )
        )

    @classmethod
    def of_pilot(cls, index: int) -> RunEffect:
        """Effects that were fitted to a pilot, by its index in ``posterior.meta.runs``."""
        return cls(
            lambda posterior, kept: np.stack(
                [posterior.flat(name)[kept, index] for name in RUN_EFFECTS]
            )
        )

    @classmethod
    def given(cls, effect: FloatArray, draws: IntArray | None = None) -> RunEffect:
        """Effects of shape (3, ..., draws), of all draws or of those with these indices."""
        return cls(lambda _posterior, _kept: effect, draws)
