"""Bounds on work, in processor time: what else a machine does lengthens the clock on the wall.

What waits for ever costs no processor time; pytest's own limit (`timeout` in ``pyproject.toml``)
ends it.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

TRIES = 3
"""How often something is timed; the least counts, for other work also empties caches."""

USUAL_SECONDS = 0.02
"""What `_set_work` took on the machine on which the bounds were written."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail where the block takes this process more processor time, longer on a slower machine."""
    started = time.process_time()
    yield
    spent = time.process_time() - started
    if spent >= seconds:
        seconds *= slowness()
    assert spent < seconds, f"{spent:.2f} s of processor time, {seconds:.2f} s at the most"


def slowness() -> float:
    """How many times slower than where the bounds were written this machine is; 1 where quicker."""
    return max(1.0, min(_set_work() for _ in range(TRIES)) / USUAL_SECONDS)


def of_children() -> float:
    """Processor seconds of the children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _set_work() -> float:
    """Processor seconds of a few hundred thousand steps of Python."""
    started = time.process_time()
    sum(number * number % 7 for number in range(300_000))
    return time.process_time() - started
