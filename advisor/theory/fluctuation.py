"""Noise and group size: the temperature, the logged noise and silent groups.

arXiv:2606.30789 lets the group size G enter as a temperature: the stationary fluctuation falls as
1/G while the mean curve does not move, to leading order. Two effects hide that and are computed
here. One is the sampling noise of a logged reward, most of which does not depend on G. The other is
the loss of drift in small groups, whose completions are all right or all wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.theory.arrays import FloatArray


def temperature(
    learning_rate: Any, prompts_per_step: Any, group_size: Any, sample_variance: Any = 1.0
) -> Any:
    """Temperature ``eta s_g^2 / (P G)``: what one optimizer step adds to the variance of a mode.

    Parameters
    ----------
    learning_rate : array_like
        Peak learning rate.
    prompts_per_step, group_size : array_like
        ``P`` and ``G``.
    sample_variance : array_like
        Per-sample gradient variance s_g^2 along the mode, in curvature units.

    Returns
    -------
    temperature : array_like
    """
    return learning_rate * sample_variance / (prompts_per_step * group_size)


@dataclass(frozen=True)
class PromptDifficulty:
    """Beta-distributed pass rate over prompts.

    Attributes
    ----------
    mean : float
        Mean pass rate, in (0, 1).
    concentration : float
        Sum of both shape parameters: large = all prompts equal, small = all-right or all-wrong.
    """

    mean: float
    concentration: float

    def __post_init__(self) -> None:
        if not (0 < self.mean < 1 and self.concentration > 0):
            raise ValueError("mean must lie in (0, 1) and concentration be positive")

    @classmethod
    def of_silent_groups(cls, mean: float, share: float, group_size: int) -> PromptDifficulty:
        """Distribution whose groups are silent as often as was seen; one first batch is enough.

        Parameters
        ----------
        mean : float
            Mean pass rate, in (0, 1).
        share : float
            Share of groups whose rewards are all equal.
        group_size : int
            G of those groups.

        Returns
        -------
        difficulty : PromptDifficulty

        Raises
        ------
        ValueError
            No distribution makes so many, or so few: below ``mean^G + (1 - mean)^G`` rewards are
            not of right and wrong alone.

        Examples
        --------
        >>> half = PromptDifficulty.of_silent_groups(0.5, 0.5, 4)
        >>> round(silent_group_share(16, half), 2)
        0.26
        """
        least = silent_group_share(group_size, mean)
        if not least < share < 1:
            raise ValueError(f"a share of silent groups must lie above {least:.3g}, and below 1")
        low, high = -25.0, 25.0  # log concentrations: prompts of one kind each, all prompts alike
        for _ in range(50):
            middle = cls(mean, math.exp((low + high) / 2))
            is_too_silent = silent_group_share(group_size, middle) > share
            low, high = ((low + high) / 2, high) if is_too_silent else (low, (low + high) / 2)
        return middle

    @property
    def shapes(self) -> tuple[float, float]:
        """Both shape parameters of the Beta distribution."""
        return self.mean * self.concentration, (1 - self.mean) * self.concentration


def _success_counts(group_size: int, difficulty: float | PromptDifficulty) -> FloatArray:
    """Distribution of right answers in a group, shape (G + 1,): binomial or beta-binomial."""
    if isinstance(difficulty, PromptDifficulty):
        a, b = difficulty.shapes
        drawn = np.arange(group_size)
        rises = np.log((group_size - drawn) / (drawn + 1) * (a + drawn) / (b + drawn[::-1]))
        none = np.log((b + drawn) / (a + b + drawn)).sum()
        return np.asarray(np.exp(none + np.concatenate([[0.0], np.cumsum(rises)])))
    chances = (
        math.comb(group_size, right) * difficulty**right * (1 - difficulty) ** (group_size - right)
        for right in range(group_size + 1)
    )
    return np.array(list(chances))


def silent_group_share(group_size: int, difficulty: float | PromptDifficulty) -> float:
    """Share Z of groups whose rewards are all equal, so that they give no gradient.

    Parameters
    ----------
    group_size : int
        G.
    difficulty : float or PromptDifficulty
        One pass rate, or its distribution: Z is ``E[p^G + (1 - p)^G]``, and taking it at the mean
        pass rate is only a lower bound.

    Returns
    -------
    share : float
        In [0, 1].

    Examples
    --------
    >>> round(silent_group_share(4, 0.5), 3)
    0.125
    """
    counts = _success_counts(group_size, difficulty)
    return float(counts[0] + counts[-1])


def group_deviation(group_size: int, difficulty: float | PromptDifficulty) -> float:
    """Mean over groups of the population standard deviation of their rewards of 0 and 1.

    Parameters
    ----------
    group_size : int
        G.
    difficulty : float or PromptDifficulty
        One pass rate, or its distribution over prompts.

    Returns
    -------
    deviation : float
        In [0, 0.5].
    """
    share = np.arange(group_size + 1) / group_size
    return float(_success_counts(group_size, difficulty) @ np.sqrt(share * (1 - share)))
