"""What all sources share: patience with a server, and a run of it in place of a file."""

from __future__ import annotations

import io
import queue
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from advisor.errors import InputError, SourceError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Logged, Reader

T = TypeVar("T")

SENTENCES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("errors.toml").read_text(encoding="utf-8")
)

MOST_SILENT_SECONDS = 60.0
"""Without an answer for so long a server counts as out of reach; ours: clients try again by
themselves, W&B's without end, and a page of a history takes a second or two."""

MOST_WAITING = 4096
"""Answers that may wait to be read: what is downloaded ahead stays a few megabytes."""


def answers(
    place: str,
    ask: Callable[[], Iterable[T]],
    refused: Callable[[str, Exception], InputError] | None = None,
) -> Iterator[T]:
    """What a client yields, one by one; its errors are raised here, in the words of ``refused``."""
    came: queue.Queue[tuple[bool, Any]] = queue.Queue(MOST_WAITING)

    def listen() -> None:
        try:
            for answer in ask():
                came.put((True, answer))
            came.put((False, None))
        except Exception as error:
            came.put((False, error))

    threading.Thread(target=listen, daemon=True, name=f"asks {place}").start()
    while True:
        try:
            is_answer, answer = came.get(timeout=MOST_SILENT_SECONDS)
        except queue.Empty:
            raise SourceError(
                f"the server did not answer for {MOST_SILENT_SECONDS:.0f} seconds",
                path=place,
                advice="Check the network and the server's address, then try again",
            ) from None
        if is_answer:
            yield answer
        elif answer is None:
            return
        elif refused is None or isinstance(answer, InputError):
            raise answer
        else:
            raise refused(place, answer) from answer


def run_of(
    place: str, run: str, name: str, read: Callable[[Path, Columns], Iterable[Logged]]
) -> LogCandidate:
    """One run of a place, which is found like a file in a folder and read by its own reader."""
    root = Path(place)
    path = root / run
    reader = Reader(name, lambda log: False, lambda logs, columns: read(path, columns))
    # No settings lie next to it: neither a sidecar of the working folder nor a config is its own.
    return LogCandidate(LogFile(path, io.BytesIO, 0), root, False, path.parent, reader)


def refusal(place: str, kind: str, error: object = "") -> SourceError:
    """Error to raise where a tracker's client gives no runs, from the sentences of its kind."""
    tracker = place.partition(":")[0]
    what = (str(error).strip().splitlines() or [type(error).__name__])[0][:300].rstrip(".")
    problem, advice = SENTENCES[tracker][kind]
    return SourceError(
        problem.format(what=what, kind=type(error).__name__), path=place, advice=advice
    )
