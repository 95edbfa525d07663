"""Progress bars of OpenRLHF, whose postfix holds the metrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

BAR = re.compile(
    r"(Episode|Train epoch) \[(\d{1,9})/(\d{1,9})\]:\s{0,20}\d{1,3}%"
    r"\|[^|\r\n]{0,400}\|\s{0,20}(\d{1,9})/(\d{1,9}) \[([^\]\r\n]{0,4000})\]"
)
PAIR = re.compile(
    r"([\w/.-]{1,80})=(?:tensor\()?([-+]?(?:\d{1,30}(?:\.\d{0,30})?(?:e[-+]?\d{1,3})?|nan|inf))"
)

Sink = Callable[[int, int, Mapping[str, float]], None]
"""Takes a row: the line it ends on, the count of rollouts, the cells."""


class Bar(NamedTuple):
    """A bar as drawn once.

    Attributes
    ----------
    is_episode : bool
        Whether it counts batches of rollouts, or the mini-batches of one.
    turn, turns : int
        Which episode or epoch, of how many.
    done, total : int
        Its counter.
    pairs : tuple of (str, str) pairs
        Its postfix.
    """

    is_episode: bool
    turn: int
    turns: int
    done: int
    total: int
    pairs: tuple[tuple[str, str], ...]

    @property
    def cells(self) -> dict[str, float]:
        """Numbers of the postfix."""
        return {key: float(value) for key, value in self.pairs}


def find_bars(text: str) -> Iterator[Bar]:
    """Bars drawn on a line, in order."""
    if "%|" not in text:
        return
    for name, turn, turns, done, total, inside in BAR.findall(text):
        pairs = tuple(PAIR.findall(inside)) if "=" in inside else ()
        yield Bar(name == "Episode", int(turn), int(turns), int(done), int(total), pairs)


class Episodes:
    """Means of whole batches of rollouts, from the bar of an episode.

    The postfix of a batch is set before the counter moves on, and stands until the next.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._held: Bar | None = None
        self._line = self._last = self._before = 0
        self._latest: Bar | None = None

    @property
    def planned(self) -> int | None:
        """Batches of rollouts of the whole run."""
        bar = self._latest
        return bar.turns * bar.total or None if bar is not None else None

    @property
    def remark(self) -> str:
        """Where the length is from."""
        bar = self._latest
        if bar is None:
            return ""
        return (
            f"{self.planned} batches of rollouts planned = {bar.turns} episodes x {bar.total} "
            "(the bar 'Episode')"
        )

    def see(self, line: int, bar: Bar) -> None:
        """Take a bar that has a postfix."""
        place = (bar.turn - 1) * bar.total + bar.done
        held = self._held
        self._latest = bar
        if held is not None and held.pairs == bar.pairs and place >= self._last:
            self._line, self._last = line, place
            return
        self.close()
        if held is None or place < self._last:
            self._before = max(place - 1, 0)
        self._held, self._line, self._last = bar, line, place

    def close(self) -> None:
        """Hand over the batch that is held."""
        if self._held is not None:
            self._before = max(self._last, self._before + 1)
            self._sink(self._line, self._before, self._held.cells)
            self._held = None


class Batches:
    """Means over the mini-batches of each batch of rollouts, from their bars."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._held: Bar | None = None
        self._line = self._count = self._size = 0
        self._sums: dict[str, float] = {}

    def see(self, line: int, bar: Bar) -> None:
        """Take a bar that has a postfix."""
        held = self._held
        if held is not None and self._is_next_batch(held, bar):
            self.close()
            held = None
        self._line = line
        if held is None or held.pairs != bar.pairs:
            self._size += 1
            for key, value in bar.cells.items():
                self._sums[key] = self._sums.get(key, 0.0) + value
        self._held = bar

    def close(self) -> None:
        """Hand over the batch that is held."""
        if self._size:
            self._count += 1
            means = {key: total / self._size for key, total in self._sums.items()}
            self._sink(self._line, self._count, means)
        self._sums, self._size, self._held = {}, 0, None

    @staticmethod
    def _is_next_batch(held: Bar, bar: Bar) -> bool:
        if bar.turn != held.turn:
            return bar.turn < held.turn
        is_full = held.done == held.total == bar.done
        return bar.done < held.done or (is_full and bar.pairs != held.pairs)
