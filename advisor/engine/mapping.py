"""Map a function over items: what is kept is not done again, what fails is named, the rest goes on.

Joblib carries it, so that its backends do: processes, Dask, Ray. A function gets one argument and
gives what JSON can hold; its result may turn on nothing but the item.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

from joblib import Parallel, delayed

from advisor.common import VERSION, Progress, silent
from advisor.engine.attempt import Call, Refusal, attempted, packed
from advisor.engine.backend import Backend
from advisor.engine.connection import connected
from advisor.engine.engine import Engine
from advisor.engine.item import Item
from advisor.engine.kept import Keeper, read_kept
from advisor.engine.outcome import LOST, Outcome
from advisor.engine.shard import Shard
from advisor.errors import AdvisorError, InputError

AHEAD = 2
"""Items that are sent ahead, per worker: nobody waits, and little is under way when one dies."""

TRIES = 2
"""Times that an item is tried alone after its process died."""

WAITING = "Waiting for a worker"
"""Stage before the first of a cluster is there."""

Found = tuple[int, Outcome | Refusal]


class EngineSettings(TypedDict, total=False):
    """Where and how items are done: what callers of :func:`mapped` pass through.

    Attributes
    ----------
    engine : Engine
    keep : Path or None
    shard : Shard or None
    """

    engine: Engine
    keep: Path | None
    shard: Shard | None


@dataclass(frozen=True)
class Mapped:
    """Outcomes in the order of the items.

    Attributes
    ----------
    outcomes : tuple of Outcome or None
        None for items of other shards that are not kept yet.
    kept : int
        How many were there already.
    """

    outcomes: tuple[Outcome | None, ...]
    kept: int

    @property
    def done(self) -> list[Outcome]:
        """All that there are."""
        return [one for one in self.outcomes if one is not None]

    @property
    def failed(self) -> list[Outcome]:
        """Those without a result."""
        return [one for one in self.done if one.has_failed]

    @property
    def missing(self) -> int:
        """Items that other shards still have to do."""
        return len(self.outcomes) - len(self.done)


def mapped(
    function: Callable[[Any], Any],
    items: Sequence[Item],
    *,
    task: str,
    engine: Engine | None = None,
    keep: Path | None = None,
    shard: Shard | None = None,
    progress: Progress = silent,
    tell: Callable[[Outcome], object] | None = None,
) -> Mapped:
    """Call a function on every item.

    Parameters
    ----------
    function : callable
        From an item's payload to what JSON can hold.
    items : sequence of Item
    task : str
        What is done: part of the content hash, and the stage that progress tells.
    engine : Engine, optional
        [default: this process].
    keep : Path, optional
        Folder of the outcomes, one line of JSON each. What it holds already is not done again.
    shard : Shard, optional
        Do only these items.
    progress : callable
    tell : callable, optional
        Takes each new outcome as it comes.

    Returns
    -------
    mapped : Mapped

    Raises
    ------
    InputError
        The engine cannot be reached, a worker has another version of the package, the folder cannot
        be written, or two items have one name.
    """
    engine = engine or Engine()
    hashes = [item.content_hash(task) for item in items]
    if len(set(hashes)) < len(hashes):
        twice = next(item.name for at, item in enumerate(items) if hashes[at] in hashes[:at])
        raise InputError(f"'{twice}' is there twice", advice="Give each item a name of its own")
    kept = {} if keep is None else read_kept(keep, set(hashes))
    outcomes: list[Outcome | None] = [kept.get(mark) for mark in hashes]
    todo = [
        at
        for at, known in enumerate(outcomes)
        if known is None and (shard is None or shard.holds(at))
    ]
    if not todo:
        return Mapped(tuple(outcomes), len(kept))
    total, failed = len(todo), 0
    progress(task, 0.0, f"{total} to do on {engine}, {len(kept)} kept")
    calls = (Call(at, items[at].name, VERSION, packed(function, items[at].payload)) for at in todo)
    with (
        Keeper(keep, shard) as keeper,
        connected(engine, partial(progress, WAITING, None)) as backend,
        closing(_results(calls, backend)) as found,
    ):
        for number in range(1, total + 1):
            at, outcome = _next(found, engine)
            outcomes[at] = outcome
            keeper.keep(hashes[at], outcome)
            if tell is not None:
                tell(outcome)
            failed += outcome.has_failed
            told = f"{number} of {total}" + (f", {failed} failed" if failed else "")
            progress(task, number / total, f"{told}; {outcome.name}")
    return Mapped(tuple(outcomes), len(kept))


def _next(found: Iterator[Found], engine: Engine) -> tuple[int, Outcome]:
    """Next outcome; stops at a worker of another version, and where the cluster is gone."""
    try:
        at, outcome = next(found)
    except AdvisorError:
        raise
    except Exception as error:
        if engine.scheme is None:
            raise
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"{engine} was lost ({told[0].rstrip('. ')})",
            argument="engine",
            advice="What was done is kept where `keep` is given: the same call goes on from there",
        ) from error
    if isinstance(outcome, Refusal):
        raise InputError(
            f"a worker on {outcome.worker} has version {outcome.version} of grpo-advisor, and this "
            f"is {VERSION}",
            argument="engine",
            advice="Install the same version on every worker",
        )
    return at, outcome


def _results(calls: Iterator[Call], backend: Backend) -> Generator[Found]:
    """Outcomes as they come."""
    if backend.jobs == 1:
        yield from map(attempted, calls)
    elif backend.streams:
        yield from _streamed(calls, backend)
    else:
        # Entered once: each call outside would start its workers anew, on Ray for seconds.
        with Parallel(backend.jobs, backend=backend.backend, batch_size=1) as parallel:
            while wave := list(islice(calls, AHEAD * backend.jobs)):
                yield from parallel(delayed(attempted)(call) for call in wave)


def _streamed(calls: Iterator[Call], backend: Backend) -> Generator[Found]:
    """Outcomes one by one; where a process dies, what was under way is tried again, alone."""
    under_way: dict[int, Call] = {}

    def sent() -> Iterator[Any]:
        for call in calls:
            under_way[call.place] = call
            yield delayed(attempted)(call)

    while True:
        parallel = Parallel(
            backend.jobs,
            backend=backend.backend,
            batch_size=1,
            pre_dispatch=f"{AHEAD} * n_jobs",
            return_as="generator_unordered",
        )
        stream = parallel(sent())
        try:
            for index, found in stream:
                under_way.pop(index)
                yield index, found
            return
        except BrokenProcessPool:
            suspects = list(under_way.values())
            under_way.clear()
            yield from (_alone(call) for call in suspects)
        finally:
            with warnings.catch_warnings():  # joblib warns of results that nobody will fetch
                warnings.simplefilter("ignore")
                stream.close()


def _alone(call: Call) -> Found:
    """Outcome of a call in a process of its own, which may die of it."""
    for _ in range(TRIES):
        try:
            (found,) = Parallel(2, backend="loky", batch_size=1)([delayed(attempted)(call)])
        except BrokenProcessPool:
            continue
        return found  # type: ignore[no-any-return]
    problem = f"its process died {TRIES} times (memory?)"
    return call.place, Outcome(call.name, None, LOST, problem, False)
