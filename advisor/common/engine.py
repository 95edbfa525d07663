"""A pure function over many items: processes here, or a Dask or Ray cluster through joblib.

A function gets one argument and gives what JSON can hold. What is done is kept line by line, so
that a killed call goes on. Lost workers and queues are the business of the cluster's scheduler.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from advisor.common.shown import VERSION, Progress, counted, silent
from advisor.errors import AdvisorError, InputError, writing

KEPT = "items.jsonl"


class Item(NamedTuple):
    """A call: its unique name, its argument, and digests of all that its result depends on."""

    name: str
    payload: Any
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """Result of an item, or class and text of its error; one that is not final is tried again."""

    name: str
    result: Any = None
    kind: str | None = None
    problem: str | None = None
    is_final: bool = True
    seconds: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether there is no result."""
        return self.kind is not None

    @property
    def text(self) -> str:
        """Name and reason of a failure, on one line."""
        return f"{self.name}: {' '.join((self.problem or self.kind or 'done').split())}"


@dataclass(frozen=True)
class Mapped:
    """Outcomes in the order of the items, and how many of them were kept before."""

    outcomes: tuple[Outcome, ...]
    kept: int

    @property
    def failed(self) -> list[Outcome]:
        """Those without a result."""
        return [one for one in self.outcomes if one.has_failed]


@dataclass(frozen=True)
class Engine:
    """Processes of this machine (1 is this process), or a cluster: ``dask://HOST:PORT``."""

    jobs: int = 1
    cluster: str = ""

    def __str__(self) -> str:
        """As a user writes it."""
        return self.cluster or counted(self.jobs, "process")


class EngineSettings(TypedDict, total=False):
    """Where items are done and kept: what callers of :func:`mapped` pass through."""

    engine: Engine
    keep: Path | None


def digest_of(*parts: Any) -> str:
    """Hash of values that JSON can hold, in 20 characters."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def engine_of(text: str | None = None, jobs: int | None = None, *, cores: int = 1) -> Engine:
    """Engine as a user asks for it; by default processes of so many cores each."""
    if text is None:
        usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
        return Engine(jobs or max(1, len(usable) // cores))
    if not re.fullmatch(r"(dask|ray)://[^/\s]+:\d+|ray://local", text.strip()):
        advice = "Write dask://HOST:PORT or ray://HOST:PORT, or leave it out for processes here"
        raise InputError(f"'{text}' is no engine", argument="engine", advice=advice)
    if jobs is not None:
        raise InputError("a cluster decides itself how much it does at once", argument="jobs")
    return Engine(1, text.strip())


def mapped(
    function: Callable[[Any], Any],
    items: Sequence[Item],
    *,
    task: str,
    engine: Engine | None = None,
    keep: Path | None = None,
    progress: Progress = silent,
    tell: Callable[[Outcome], object] | None = None,
) -> Mapped:
    """Call a function on every item that ``keep`` does not hold; one that fails is named."""
    engine = engine or Engine()
    # Under which results are kept: another version, prior or seed is another item.
    hashes = [digest_of(task, VERSION, item.name, *item.marks) for item in items]
    if len(set(hashes)) < len(hashes):
        raise InputError("two items have one name", advice="Give each a name of its own")
    known = {} if keep is None else _read(keep / KEPT)
    outcomes = {at: known[mark] for at, mark in enumerate(hashes) if mark in known}
    kept, failed = len(outcomes), 0
    calls = [(function, at, item) for at, item in enumerate(items) if at not in outcomes]
    if calls:
        progress(task, 0.0, f"{len(calls)} to do on {engine}, {kept} kept")
        with closing(_outcomes(engine, calls)) as found:
            for number, (at, outcome) in enumerate(found, 1):
                outcomes[at] = outcome
                if keep is not None:
                    _append(keep / KEPT, {"hash": hashes[at], **vars(outcome)})
                if tell is not None:
                    tell(outcome)
                failed += outcome.has_failed
                detail = f"{number} of {len(calls)}" + (f", {failed} failed" if failed else "")
                progress(task, number / len(calls), f"{detail}; {outcome.name}")
    return Mapped(tuple(outcomes[at] for at in range(len(items))), kept)


def attempted(function: Callable[[Any], Any], at: int, item: Item) -> tuple[int, Outcome]:
    """Outcome of an item on its worker: nothing that it raises leaves the worker."""
    started = time.perf_counter()
    try:
        # As a reader of the kept line would have it, so that fresh and kept results are equal.
        outcome = Outcome(item.name, json.loads(json.dumps(function(item.payload))))
    except Exception as error:
        problem = getattr(error, "problem", None) or str(error) or type(error).__name__
        is_final = isinstance(error, AdvisorError)
        outcome = Outcome(item.name, None, type(error).__name__, problem, is_final)
    return at, replace(outcome, seconds=round(time.perf_counter() - started, 3))


def _outcomes(engine: Engine, calls: Sequence[Any]) -> Generator[tuple[int, Outcome]]:
    """Places and outcomes as they come."""
    from joblib import Parallel, delayed, effective_n_jobs

    todo = (delayed(attempted)(*call) for call in calls)
    with _connected(engine) as client:
        try:
            if client is not None:  # joblib would wait for ever for what the cluster gave up
                from distributed import as_completed

                futures = client.map(attempted, *zip(*calls, strict=True), pure=False)
                yield from (future.result() for future in as_completed(futures, loop=client.loop))
            elif engine.cluster:  # Ray gives no outcome before all of a call are done
                with Parallel(batch_size=1) as parallel:
                    while wave := list(islice(todo, 2 * effective_n_jobs(-1))):
                        yield from parallel(wave)
            else:
                parallel = Parallel(engine.jobs, batch_size=1, return_as="generator_unordered")
                yield from parallel(todo)
        except Exception as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(". ")
            raise InputError(
                f"{engine} was lost ({first})",
                argument="engine" if engine.cluster else "jobs",
                advice="The same call goes on from what `keep` holds (out of memory: fewer `jobs`)",
            ) from error


@contextmanager
def _connected(engine: Engine) -> Iterator[Any]:
    """Connect to a cluster for as long as the block runs; yields the client of Dask."""
    scheme, _, address = engine.cluster.partition("://")
    client, stack = None, ExitStack()
    try:
        if scheme == "dask":
            from distributed import Client

            client = Client(f"tcp://{address}", timeout=10, set_as_default=False)
            stack.enter_context(client)
        elif scheme == "ray":
            import ray
            from joblib import parallel_config
            from ray.util.joblib import register_ray

            ray.init(address if address == "local" else engine.cluster, log_to_driver=False)
            stack.callback(ray.shutdown)
            register_ray()
            stack.enter_context(parallel_config(backend="ray", n_jobs=-1))
    except Exception as error:  # Ray raises classes of its own, of several modules
        problem, advice = f"no cluster answers at {engine}", "Start one, and give its address"
        if isinstance(error, ImportError):
            problem = f"{scheme} is not installed"
            advice = f"Install it with: pip install 'grpo-advisor[{scheme}]'"
        raise InputError(problem, argument="engine", advice=advice) from error
    with stack:
        yield client


def _read(path: Path) -> dict[str, Outcome]:
    """Final outcomes of a file by content hash; lines that break off are passed over."""
    found: dict[str, Outcome] = {}
    try:
        lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    except OSError as error:
        problem = f"what is kept cannot be read ({error.strerror or error})"
        raise InputError(problem, path=path, argument="keep") from error
    for line in lines:
        with suppress(ValueError, TypeError, KeyError, AttributeError):  # a line that breaks off
            parts = json.loads(line)
            mark, outcome = parts.pop("hash"), Outcome(**parts)
            if outcome.is_final:
                found[mark] = outcome
    return found


def _append(path: Path, parts: dict[str, Any]) -> None:
    """Write one line of JSON at the end of a file."""
    with writing("what is done", path, "keep"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(parts, separators=(",", ":")) + "\n")
