"""The valid configurations: whole numbers, divisible batches, a geometric ladder of rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.forecast import Target, pilots_of
from advisor.model import Meta, Posterior
from advisor.runs import Settings
from advisor.theory import IntArray

RATE_RATIO = 10 ** (1 / 6)
"""Ratio of neighbouring learning rates: six to a decade, finer than any pilot can tell apart."""

RATE_REACH = 3.0
"""Factor by which offered learning rates reach beyond those piloted (upwards: that survived)."""

GROUP_REACH = 2.0  # Group sizes offered reach this factor beyond those piloted

AXES = (
    *("learning_rate", "group_size", "minibatches_per_refresh", "epochs_per_refresh"),
    "prompts_per_step",
)
"""Settings that the advice chooses."""


class Lattice:
    """Configurations to choose from, each once, told apart by ``AXES``."""

    def __init__(self, points: Iterable[Settings]) -> None:
        offered = tuple(points)
        _refuse_none(offered)
        self._by_place = {place_of(point): point for point in offered}
        if len(self._by_place) < len(offered):
            problem = "two configurations to choose from differ in nothing that is chosen"
            advice = "Give each once; what is not chosen must be the same for all"
            raise InputError(problem, argument="choose_from", advice=advice)

    @cached_property
    def axes(self) -> dict[str, tuple[float | int, ...]]:
        """Choices that occur for each setting, ascending."""
        columns = zip(AXES, zip(*self._by_place, strict=True), strict=True)
        return {name: tuple(sorted(set(values))) for name, values in columns}

    def at(self, place: tuple[float, ...]) -> Settings | None:
        """Configuration with these choices, or None where it is not offered."""
        return self._by_place.get(place)

    def up_to(self, rate: float) -> Lattice:
        """Configurations whose learning rate is no higher."""
        return Lattice(point for point in self if point.learning_rate <= rate)

    def spread(self, most: int, price: Callable[[Settings], float]) -> list[Settings]:
        """At most so many, evenly thinned in order of learning rate and then of price."""
        ordered = sorted(self, key=lambda point: (point.learning_rate, price(point)))
        return [ordered[index] for index in _evenly(len(ordered), most)]

    def __iter__(self) -> Iterator[Settings]:
        """Every configuration."""
        return iter(self._by_place.values())

    def __len__(self) -> int:
        """How many configurations."""
        return len(self._by_place)


class Grid(Lattice):
    """Every combination of choices, made when asked for: an answer looks at few of very many."""

    def __init__(self, fixed: Settings, axes: Mapping[str, Iterable[float | int]]) -> None:
        self.fixed = fixed
        self.axes = {name: tuple(sorted(set(axes[name]))) for name in AXES}
        for choices in self.axes.values():
            _refuse_none(choices)

    def at(self, place: tuple[float, ...]) -> Settings | None:
        """Configuration with these choices, or None where it is not offered."""
        is_offered = all(one in own for one, own in zip(place, self.axes.values(), strict=True))
        return self._made(place) if is_offered else None

    def up_to(self, rate: float) -> Lattice:
        """Configurations whose learning rate is no higher."""
        rates = [one for one in self.axes["learning_rate"] if one <= rate]
        return Grid(self.fixed, {**self.axes, "learning_rate": rates})

    def spread(self, most: int, price: Callable[[Settings], float]) -> list[Settings]:
        """At most so many, evenly thinned in order of learning rate and then of price."""
        rates = self.axes["learning_rate"]
        # The price is the same at every rate: one rate's order is that of all.
        ordered = sorted(Grid(self.fixed, {**self.axes, "learning_rate": rates[:1]}), key=price)
        found = (divmod(int(index), len(ordered)) for index in _evenly(len(self), most))
        return [
            ordered[of_rest].model_copy(update={"learning_rate": rates[of_rate]})
            for of_rate, of_rest in found
        ]

    def __iter__(self) -> Iterator[Settings]:
        """Every configuration."""
        return map(self._made, product(*self.axes.values()))

    def __len__(self) -> int:
        """How many configurations."""
        return math.prod(map(len, self.axes.values()))

    def _made(self, place: Sequence[float | int]) -> Settings:
        return self.fixed.model_copy(update=dict(zip(AXES, place, strict=True)))


def _refuse_none(choices: Sequence[object]) -> None:
    if not choices:
        problem = "no configuration is left to choose from"
        advice = "Widen the choices, or name fewer devices"
        raise InputError(problem, argument="group_sizes, learning_rates, devices", advice=advice)


def _evenly(size: int, most: int) -> IntArray:
    """At most so many places of a sequence, evenly thinned."""
    return np.unique(np.linspace(0, size - 1, min(most, size)).astype(int))


def place_of(settings: Settings) -> tuple[float, ...]:
    """What tells configurations apart."""
    return tuple(getattr(settings, name) for name in AXES)


def default_lattice(
    posterior: Posterior,
    fixed: Settings,
    *,
    target: Target | None = None,
    group_sizes: Sequence[float] | None = None,
    learning_rates: Sequence[float] | None = None,
    prompts_per_step: Sequence[float] | None = None,
    devices: int = 1,
) -> Lattice:
    """Lattice around what the pilots covered, with the learning rates that the target's ran."""
    pilots = [run.settings for run in posterior.meta.runs]
    prompts = fixed.prompts_per_step
    if learning_rates is None:
        runs = [] if target is None else pilots_of(posterior, target)
        learning_rates = _rate_ladder(posterior.meta, {r.settings.learning_rate for r in runs})
    if group_sizes is None:
        sizes = [one.group_size for one in pilots]
        least, most = max(2, min(sizes) / GROUP_REACH), max(sizes) * GROUP_REACH
        group_sizes = _varied(sizes, least, most, sizes[0])
    if prompts_per_step is None:
        own = [one.prompts_per_step for one in pilots]
        prompts_per_step = [prompts, *map(float, _varied(own, min(own), max(own), prompts))]
    fitting = [size for size in group_sizes if (prompts * size) % devices == 0]
    if not fitting:
        raise InputError(
            f"none of the group sizes {sorted(group_sizes)} with {prompts:g} prompts per step "
            f"divides among {devices} devices",
            argument="devices",
            advice=f"Make prompts per step times group size a multiple of {devices}",
        )

    def up_to_piloted(name: str) -> list[int]:
        piloted = [getattr(one, name) for one in pilots]
        return _varied(piloted, 1, max(piloted), piloted[0])

    whole = [one for one in prompts_per_step if all(one * size % devices == 0 for size in fitting)]
    return Grid(
        fixed,
        {
            "learning_rate": map(float, learning_rates),
            "group_size": map(int, fitting),
            "minibatches_per_refresh": up_to_piloted("minibatches_per_refresh"),
            "epochs_per_refresh": up_to_piloted("epochs_per_refresh"),
            "prompts_per_step": whole,
        },
    )


def within_reach(lattice: Lattice, meta: Meta) -> Lattice:
    """Lattice without learning rates beyond ``RATE_REACH`` times the largest that survived."""
    surviving = meta.largest_surviving_rate
    if surviving is None:
        return lattice
    # Three times 1e-4 is 3e-4 in decimals only.
    return lattice.up_to(RATE_REACH * 1.001 * surviving)


def _rate_ladder(meta: Meta, run: Set[float]) -> tuple[float, ...]:
    """Geometric ladder; rates that were run take the place of those next to them."""
    lowest = min(one.settings.learning_rate for one in meta.runs)
    surviving = meta.largest_surviving_rate
    low, high = lowest / RATE_REACH, (surviving or 0.0) * RATE_REACH
    if surviving is None:  # then the way is down: two decades below the lowest rate
        low, high = lowest / 100, lowest
    count = max(2, round(np.log(high / low) / np.log(RATE_RATIO)) + 1)
    between = [
        float(f"{rate:.2g}")
        for rate in np.geomspace(low, high, count)
        if all(abs(np.log(rate / one)) > np.log(RATE_RATIO) / 2 for one in run)
    ]
    return tuple(sorted({*between, *(rate for rate in run if rate <= high)}))


def _varied(piloted: Sequence[Any], low: float, high: float, kept: Any) -> list[Any]:
    """Powers of two in [low, high] where pilots differ, else the value that is kept."""
    if len(set(piloted)) == 1:
        return [kept]
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    return [2**power for power in range(first, last + 1)]
