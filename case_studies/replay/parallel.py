"""Run the jobs of a study on all cores, with a count on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any


def in_parallel(job: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
    """Results in the order of the tasks; processes are spawned, since sampling starts threads."""
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=get_context("spawn")) as executor:
        for done, result in enumerate(executor.map(job, tasks), start=1):
            print(f"\r{done} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            yield result
    print(file=sys.stderr)
