"""The valid configurations: whole numbers, divisible batches, a geometric ladder of rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from advisor.errors import InputError
from advisor.model.posterior import Posterior
from advisor.run.settings import Settings

RATE_RATIO = 10 ** (1 / 6)
"""Ratio of neighbouring learning rates: six to a decade, finer than any pilot can tell apart."""

RATE_REACH = 3.0
"""Factor by which offered learning rates reach beyond those piloted (upwards: that survived)."""

GROUP_REACH = 2.0
"""Group sizes offered reach this factor beyond those piloted."""

AXES = ("learning_rate", "group_size", "minibatches_per_refresh", "epochs_per_refresh")
"""Settings that the advice chooses."""

REACH_TOLERANCE = 1.001
"""Three times 1e-4 is 3e-4 in decimals only."""

Point = tuple[float, int, int, int]
"""Choices for ``AXES``."""


@dataclass(frozen=True)
class Lattice:
    """Configurations to choose from.

    Attributes
    ----------
    points : tuple of Settings
        Each once, told apart by ``AXES``.
    """

    points: tuple[Settings, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise InputError(
                "no configuration is left to choose from",
                argument="group_sizes, learning_rates, devices",
                advice="Widen the choices, or name fewer devices",
            )
        if len(self._by_place) < len(self.points):
            raise InputError(
                "two configurations to choose from differ in nothing that is chosen",
                argument="choose_from",
                advice="Give each once; prompts per step and the rest must be the same for all",
            )

    @cached_property
    def _by_place(self) -> dict[Point, Settings]:
        return {_place(point): point for point in self.points}

    @cached_property
    def axes(self) -> dict[str, tuple[float | int, ...]]:
        """Choices that occur for each setting, ascending."""
        columns = zip(*self._by_place, strict=True)
        return {
            name: tuple(sorted(set(values))) for name, values in zip(AXES, columns, strict=True)
        }

    def at(self, place: Point) -> Settings | None:
        """Configuration with these choices, or None where it is not offered."""
        return self._by_place.get(place)

    def __iter__(self) -> Iterator[Settings]:
        """Every configuration."""
        return iter(self.points)

    def __len__(self) -> int:
        """How many configurations."""
        return len(self.points)


def _place(settings: Settings) -> Point:
    return tuple(getattr(settings, name) for name in AXES)


def default_lattice(
    posterior: Posterior,
    fixed: Settings,
    *,
    group_sizes: Sequence[float] | None = None,
    learning_rates: Sequence[float] | None = None,
    devices: int = 1,
) -> Lattice:
    """Lattice around what the pilots covered.

    Parameters
    ----------
    posterior : Posterior
    fixed : Settings
        Settings that the advice keeps.
    group_sizes, learning_rates : sequence, optional
        Replace the default choices.
    devices : int
        Groups of a step, ``prompts_per_step x group_size`` completions, must divide among them.

    Returns
    -------
    lattice : Lattice
        Learning rates from a third of the smallest piloted to three times the largest that
        survived; powers of two for the rest, up to twice the largest piloted group and the
        largest piloted refresh factors. What the pilots did not vary stays as it was: they cannot
        tell what another value does.

    Raises
    ------
    InputError
        Nothing divides among the devices.
    """
    runs = [run.settings for run in posterior.meta.runs]
    if learning_rates is None:
        learning_rates = _rate_ladder(posterior)
    if group_sizes is None:
        sizes = [run.group_size for run in runs]
        group_sizes = _told(sizes, max(2, min(sizes) / GROUP_REACH), max(sizes) * GROUP_REACH)
    prompts = fixed.prompts_per_step
    fitting = [size for size in group_sizes if (prompts * size) % devices == 0]
    if not fitting:
        raise InputError(
            f"none of the group sizes {sorted(group_sizes)} with {prompts:g} prompts per step "
            f"divides among {devices} devices",
            argument="devices",
            advice=f"Make prompts per step times group size a multiple of {devices}",
        )
    choices = product(
        sorted({float(rate) for rate in learning_rates}),
        sorted({int(size) for size in fitting}),
        _up_to([run.minibatches_per_refresh for run in runs]),
        _up_to([run.epochs_per_refresh for run in runs]),
    )
    return Lattice(
        tuple(fixed.model_copy(update=dict(zip(AXES, choice, strict=True))) for choice in choices)
    )


def largest_surviving_rate(posterior: Posterior) -> float | None:
    """Largest learning rate of a pilot that did not collapse, or None where all did."""
    rates = [run.settings.learning_rate for run in posterior.meta.runs if run.collapse_step is None]
    return max(rates) if rates else None


def within_reach(lattice: Lattice, posterior: Posterior) -> Lattice:
    """Lattice without learning rates beyond ``RATE_REACH`` times the largest that survived.

    Raises
    ------
    InputError
        Nothing is left.
    """
    surviving = largest_surviving_rate(posterior)
    if surviving is None:
        return lattice
    most = RATE_REACH * REACH_TOLERANCE * surviving
    return Lattice(tuple(p for p in lattice if p.learning_rate <= most))


def _rate_ladder(posterior: Posterior) -> tuple[float, ...]:
    rates = [run.settings.learning_rate for run in posterior.meta.runs]
    surviving = largest_surviving_rate(posterior)
    low = min(rates)
    # Where every pilot collapsed the way is down: two decades below the lowest rate.
    if surviving is None:
        low, high = low / 100, low
    else:
        low, high = low / RATE_REACH, surviving * RATE_REACH
    count = max(2, round(np.log(high / low) / np.log(RATE_RATIO)) + 1)
    return tuple(float(f"{rate:.2g}") for rate in np.geomspace(low, high, count))


def _up_to(piloted: Sequence[int]) -> tuple[int, ...]:
    return _told(piloted, 1, max(piloted))


def _told(piloted: Sequence[int], low: float, high: float) -> tuple[int, ...]:
    """Powers of two in [low, high] where pilots differ, else what they all had."""
    return _powers(low, high) if len(set(piloted)) > 1 else (piloted[0],)


def _powers(low: float, high: float) -> tuple[int, ...]:
    """Powers of two in [low, high]; at least one."""
    first, last = int(np.ceil(np.log2(low))), int(np.floor(np.log2(high)))
    return tuple(2**power for power in range(first, max(first, last) + 1))
