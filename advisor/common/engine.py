"""A pure function over many items: processes here, or the backend of joblib's own context.

A function takes one argument and returns what JSON can hold. Finished items are kept line by line,
so that a killed call continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from advisor.common.shown import VERSION, Progress, silent
from advisor.errors import AdvisorError, InputError, writing
from advisor.text import counted

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


class EngineSettings(TypedDict, total=False):
    """Where items are done and kept: what callers of :func:`mapped` pass through."""

    jobs: int
    keep: Path | None


def digest_of(*parts: Any) -> str:
    """Hash of values that JSON can hold, in 20 characters."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def usable_jobs(cores: int = 1) -> int:
    """Processes of this machine that can have so many cores each."""
    usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    return max(1, len(usable) // cores)


def mapped(
    function: Callable[[Any], Any],
    items: Sequence[Item],
    *,
    task: str,
    jobs: int = 1,
    keep: Path | None = None,
    progress: Progress = silent,
    tell: Callable[[Outcome], object] | None = None,
) -> Mapped:
    """Call a function on items that ``keep`` lacks, in so many processes; failures are named."""
    # Under which results are kept: another version, prior or seed is another item.
    hashes = [digest_of(task, VERSION, item.name, *item.marks) for item in items]
    if len(set(hashes)) < len(hashes):
        raise InputError("two items have one name", advice="Give each a name of its own")
    known = {} if keep is None else _read(keep / KEPT)
    outcomes = {at: known[mark] for at, mark in enumerate(hashes) if mark in known}
    kept, failed = len(outcomes), 0
    calls = [(function, at, item) for at, item in enumerate(items) if at not in outcomes]
    if calls:
        progress(task, 0.0, f"{len(calls)} to do on {counted(jobs, 'process')}, {kept} kept")
        with closing(_outcomes(jobs, calls)) as found:
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


def _outcomes(jobs: int, calls: Sequence[Any]) -> Generator[tuple[int, Outcome]]:
    """Places and outcomes as they come."""
    from joblib import Parallel, delayed, effective_n_jobs
    from joblib.parallel import LokyBackend, get_active_backend

    backend, _ = get_active_backend()
    # A context that names another backend, of Dask or Ray, also says how much is done at once.
    own = jobs if isinstance(backend, LokyBackend) else None
    todo = (delayed(attempted)(*call) for call in calls)
    try:
        if backend.supports_return_generator:
            yield from Parallel(own, batch_size=1, return_as="generator_unordered")(todo)
        else:  # Ray gives no outcome before all of a call are done
            with Parallel(own, batch_size=1) as parallel:
                while wave := list(islice(todo, 2 * effective_n_jobs(-1))):
                    yield from parallel(wave)
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(". ")
        problem = f"{counted(jobs, 'process')} was lost ({first})"
        advice = "Call again: it continues from what `keep` contains (no memory: fewer `jobs`)"
        raise InputError(problem, argument="jobs", advice=advice) from error


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
