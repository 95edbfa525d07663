"""From the laws to the curve of a run: the one place where they are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.model import RUN_EFFECTS, Posterior
from advisor.model import equations as eq
from advisor.runs import Settings
from advisor.theory import FloatArray, IntArray, policy_steps


@dataclass(frozen=True)
class RunLaws:
    """What the laws give a run under each draw, before its own effects."""

    population: Mapping[str, FloatArray]  # (draws,)
    group: eq.GroupLevel
    log_rate_factor: FloatArray  # (draws,)
    log_loss: FloatArray  # (draws,)
    log_onset: FloatArray  # (draws,)
    is_oscillator: FloatArray  # (draws,)
    uncorrected: FloatArray  # (draws,)
    settings: Settings

    def taken(self, index: IntArray) -> RunLaws:
        """Return the laws of some of the draws."""
        return RunLaws(
            {name: values[index] for name, values in self.population.items()},
            eq.GroupLevel(*(values[index] for values in self.group)),
            self.log_rate_factor[index],
            self.log_loss[index],
            self.log_onset[index],
            self.is_oscillator[index],
            self.uncorrected[index],
            self.settings,
        )

    def run(self, effect: FloatArray) -> eq.RunLevel:
        """Start, plateau and shape of a run with effects of shape (3, ..., draws)."""
        return eq.run_level(
            self.population,
            self.group,
            self.log_rate_factor,
            self.log_loss,
            (effect[0], effect[1], effect[2]),
            self.log_onset,
            float(self.settings.refresh_interval),
            float(self.settings.importance_ratio),
        )

    def reward(self, effect: FloatArray, polynomial: FloatArray) -> FloatArray:
        """Curve of a run, as a share of floor to ceiling, shape (..., draws, times)."""
        exponent = self.population["rate.learning_rate"]
        clock = np.stack([exponent**power for power in range(4)], axis=1) @ polynomial.T
        return np.asarray(
            eq.expected_reward(
                clock,
                eq.RunLevel(*(np.asarray(value)[..., None] for value in self.run(effect))),
                self.settings.momentum,
                self.settings.mean_age,
                self.uncorrected[:, None],
                self.is_oscillator[:, None],
            )
        )


def scored_steps(settings: Settings, steps: npt.ArrayLike) -> FloatArray:
    """Optimizer steps behind the policy that each logged row scores: that of the latest refresh."""
    return policy_steps(
        np.atleast_1d(np.asarray(steps, dtype=float)),
        settings.minibatches_per_refresh,
        settings.epochs_per_refresh,
        settings.lag,
    )


@dataclass(frozen=True)
class RunEffect:
    """Strategy for the seed noise of a run on plateau and stiffness and the shape of its curve."""

    values: Callable[[Posterior, IntArray], FloatArray]
    draws: IntArray | None = None  # (size,)

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
