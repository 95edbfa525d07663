"""One clock for a whole fit: its time runs on over attempts and presets."""

from __future__ import annotations

import time
from collections.abc import Callable

from advisor.common import SAMPLING, Progress, silent

LEAST_SHARE = 0.01
"""Share of an attempt from which its speed is taken: the first draws are the slowest."""

ALMOST = 0.999
"""Share beyond which nothing is shown as done before it is."""


class FitClock:
    """Progress of a fit, passed on with what is left of all of it."""

    def __init__(self, tell: Progress, now: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._now = tell, now
        self._started = now()
        self._begun = self._started
        self._draws = 0.0
        self._seconds = self._drawn = 0.0
        self._which = ""

    @property
    def heard(self) -> Progress:
        """What a sampler reports to: itself, or `silent` where nobody listens, which costs less."""
        return silent if self._tell is silent else self

    def begin(self, draws: int, attempt: int, most: int) -> None:
        """Note that an attempt of so many draws over all chains begins; counted from 0."""
        self._begun, self._draws = self._now(), float(draws)
        self._which = f"attempt {attempt + 1} of at most {most}, " if attempt else ""

    def end(self) -> None:
        """Note that it is over: its speed is the guess of what is to come."""
        self._seconds += self._now() - self._begun
        self._drawn += self._draws

    def __call__(self, stage: str, share: float | None, detail: str) -> None:
        """Pass on what happens, while draws are made with the time that all of it takes."""
        if stage != SAMPLING or share is None:
            self._tell(stage, share, detail)
            return
        now = self._now()
        left = self._left(share, now - self._begun)
        if left is None:
            self._tell(stage, None, f"{self._which}{detail}")
            return
        elapsed = now - self._started
        whole = min(ALMOST, elapsed / max(elapsed + left, 1e-9))
        self._tell(stage, whole, f"{self._which}{detail}, about {span(left)} left of the fit")

    def _left(self, share: float, seconds: float) -> float | None:
        """Seconds of the rest, or None where nothing tells how fast draws are made."""
        before = self._seconds / self._drawn if self._drawn else None
        done = share * self._draws
        each = seconds / done if share >= LEAST_SHARE and done else before
        if each is None:
            return None
        return each * (self._draws - done)


def span(seconds: float) -> str:
    """A time in the unit that a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
