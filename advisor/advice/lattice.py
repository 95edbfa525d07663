"""The valid configurations: whole numbers, divisible batches, a geometric ladder of rates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from advisor.errors import InputError
from advisor.posterior import Posterior
from advisor.runs.pilot_run import Hyperparameters

RATE_RATIO = 10 ** (1 / 6)
"""Ratio of neighbouring learning rates: six to a decade, finer than any pilot can tell apart."""

RATE_REACH = 3.0
"""Factor by which offered learning rates reach beyond those piloted (upwards: that survived)."""

GROUP_REACH = 2.0
"""Group sizes offered reach this factor beyond those piloted."""


class Lattice(BaseModel):
    """Choices for each setting that the advice may change.

    Attributes
    ----------
    learning_rates, group_sizes, minibatches, epochs
        Choices, ascending.
    fixed : Hyperparameters
        Everything that the advice does not choose.
    """

    model_config = ConfigDict(frozen=True)

    learning_rates: tuple[float, ...] = Field(min_length=1)
    group_sizes: tuple[int, ...] = Field(min_length=1)
    minibatches: tuple[int, ...] = Field(min_length=1)
    epochs: tuple[int, ...] = Field(min_length=1)
    fixed: Hyperparameters

    def settings(
        self, learning_rate: float, group_size: int, minibatches: int, epochs: int
    ) -> Hyperparameters:
        """Put choices into the fixed settings."""
        return self.fixed.model_copy(
            update={
                "learning_rate": learning_rate,
                "group_size": group_size,
                "minibatches_per_refresh": minibatches,
                "epochs_per_refresh": epochs,
            }
        )

    def __iter__(self) -> Iterator[Hyperparameters]:  # type: ignore[override]
        """Every configuration."""
        for rate in self.learning_rates:
            for group in self.group_sizes:
                for minibatches in self.minibatches:
                    for epochs in self.epochs:
                        yield self.settings(rate, group, minibatches, epochs)

    def __len__(self) -> int:
        """How many configurations."""
        return (
            len(self.learning_rates)
            * len(self.group_sizes)
            * len(self.minibatches)
            * len(self.epochs)
        )


def default_lattice(
    posterior: Posterior,
    fixed: Hyperparameters,
    *,
    group_sizes: tuple[int, ...] | None = None,
    learning_rates: tuple[float, ...] | None = None,
) -> Lattice:
    """Lattice around what the pilots covered.

    Parameters
    ----------
    posterior : Posterior
    fixed : Hyperparameters
        Settings that the advice keeps.
    group_sizes, learning_rates : tuple, optional
        Replace the default choices.

    Returns
    -------
    lattice : Lattice
        Learning rates from a third of the smallest piloted to three times the largest that
        survived; powers of two for the rest, up to twice the largest piloted group and the
        largest piloted refresh factors.

    Raises
    ------
    InputError
        A given choice is empty or not positive.
    """
    runs = [run.hyperparameters for run in posterior.meta.runs]
    for name, given in (("group_sizes", group_sizes), ("learning_rates", learning_rates)):
        if given is not None and (not given or min(given) <= 0):
            raise InputError("the choices are empty or not positive", key=name, advice="Give some")
    if learning_rates is None:
        learning_rates = _rate_ladder(posterior)
    if group_sizes is None:
        sizes = [int(run["group_size"]) for run in runs]
        group_sizes = _powers(max(2, min(sizes) / GROUP_REACH), max(sizes) * GROUP_REACH)
    return Lattice(
        learning_rates=tuple(sorted(learning_rates)),
        group_sizes=tuple(sorted(group_sizes)),
        minibatches=_powers(1, max(run["minibatches_per_refresh"] for run in runs)),
        epochs=_powers(1, max(run["epochs_per_refresh"] for run in runs)),
        fixed=fixed,
    )


def largest_surviving_rate(posterior: Posterior) -> float | None:
    """Largest learning rate of a pilot that did not collapse, or None where all did."""
    rates = [
        run.hyperparameters["learning_rate"]
        for run in posterior.meta.runs
        if run.collapse_step is None
    ]
    return max(rates) if rates else None


def _rate_ladder(posterior: Posterior) -> tuple[float, ...]:
    rates = [run.hyperparameters["learning_rate"] for run in posterior.meta.runs]
    surviving = largest_surviving_rate(posterior)
    low = min(rates)
    # Where every pilot collapsed the way is down: two decades below the lowest rate.
    if surviving is None:
        low, high = low / 100, low
    else:
        low, high = low / RATE_REACH, surviving * RATE_REACH
    count = max(2, round(np.log(high / low) / np.log(RATE_RATIO)) + 1)
    return tuple(float(f"{rate:.2g}") for rate in np.geomspace(low, high, count))


def _powers(low: float, high: float) -> tuple[int, ...]:
    """Powers of two in [low, high]; at least one."""
    first, last = int(np.ceil(np.log2(low))), int(np.floor(np.log2(high)))
    return tuple(2**power for power in range(first, max(first, last) + 1))
