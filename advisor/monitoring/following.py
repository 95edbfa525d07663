"""Follow a log that grows, through the ordinary readers: whatever they read can be watched."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.errors import RateContradictionError
from advisor.runs import PilotRun, is_of_system, read_runs

Read = Callable[[Path], list[PilotRun]]
Signature = tuple[tuple[str, int, int, int], ...]

SILENT_AFTER = 1800.0
"""Seconds without a new byte after which that is reported: no usual step takes half an hour."""


@dataclass(frozen=True)
class Growth:
    """What a look at a log found."""

    run: PilotRun | None
    said: tuple[str, ...] = ()


@dataclass
class Follower:
    """Re-reads a log whenever it changed."""

    path: Path
    read: Read
    silent_after: float = SILENT_AFTER
    clock: Callable[[], float] = time.time
    _signature: Signature | None = None
    _is_held_back: bool = False
    _whole: PilotRun | None = None
    _bad_reads: int = 0
    _reported: set[str] = field(default_factory=set)

    def growth(self) -> Growth | None:
        """Look once; None where nothing is new."""
        try:
            signature = signature_of(self.path)
        except FileNotFoundError:
            return self._once("missing", f"{self.path} is not there (yet): waiting for it")
        except OSError as error:  # a stale handle, no permission, a loop of links
            return self._once("bad", f"cannot be read now: {self.path} ({error.strerror})")
        if not signature:
            return self._once("missing", f"{self.path} holds no file yet: waiting for one")
        self._reported.discard("missing")
        if signature == self._signature and not self._is_held_back and not self._bad_reads:
            return self._silence(signature)
        return self._changed(signature)

    def _changed(self, signature: Signature) -> Growth | None:
        notes = []
        is_new = signature != self._signature
        if is_new:
            self._reported.discard("silent")
        try:
            if _last_byte(signature) not in b"}]" and signature[0][0].endswith(".json"):
                raise ValueError("the file is being rewritten, or was cut")
            run = max(reversed(self.read(self.path)), key=_written)
            grew = signature_of(self.path) != signature
        except Exception as error:  # a watch goes on, whatever a reader makes of half a file
            self._bad_reads += 1
            # Reported from the third such look in a row on: trainers write their logs from the
            # beginning again, and a look may fall in between.
            if self._bad_reads < 3 and self._whole is not None:
                return None
            kept = "" if self._whole is None else "; what was read before is kept"
            return self._once("bad", f"cannot be read now: {error}{kept}")
        self._bad_reads = 0
        self._reported.discard("bad")
        before = self._whole
        # A line without its end may hold the first digits of a number: it waits for the next look,
        # as does the last line of a log that grew meanwhile, which may have ended since.
        # Where no row came since, the reader has left out the open line already.
        rows = 1 if before is None else before.step.size
        is_open = is_new and (grew or _is_open(signature))
        self._is_held_back = is_open and run.step.size > rows
        if self._is_held_back:
            run = run.before(run.step.size - 1)
        self._signature, self._whole = signature, run
        if before is not None and before.step.size and run.step.size:
            if run.step[0] > before.step[0]:
                notes.append(
                    f"the log begins at step {run.step[0]:.0f} now: the rows before count no more"
                )
            elif run.step[-1] < before.step[-1]:
                notes.append(
                    f"steps went back from {before.step[-1]:.0f} to {run.step[-1]:.0f}: the run "
                    "was started again, and the new branch is followed"
                )
            elif run.step.size == before.step.size:
                return None
        return Growth(run, tuple(notes))

    def _silence(self, signature: Signature) -> Growth | None:
        quiet = self.clock() - max(entry[3] for entry in signature) / 1e9
        if quiet < self.silent_after:
            return None
        return self._once("silent", f"nothing was logged for {quiet / 60:.0f} minutes")

    def _once(self, topic: str, line: str) -> Growth | None:
        if topic in self._reported:
            return None
        self._reported.add(topic)
        return Growth(None, (line,))


def follow(
    path: str | Path,
    read: Read,
    *,
    every: float = 10.0,
    sleep: Callable[[float], None] = time.sleep,
    silent_after: float = SILENT_AFTER,
) -> Iterator[Growth]:
    """Yield what is new in a log, for ever."""
    follower = Follower(Path(path), read, silent_after=silent_after)
    while True:
        found = follower.growth()
        if found is not None:
            yield found
        sleep(every)


def signature_of(path: Path) -> Signature:
    """Name, inode, size and time of writing of each file."""
    mode = path.stat().st_mode
    # Reading would wait for ever.
    if is_of_system(path) or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "a pipe or a file of the system; name the file that is written")
    files = [path]
    if path.is_dir():  # a folder that cannot be listed is passed over
        files = sorted(Path(place, name) for place, _, names in os.walk(path) for name in names)
    out = []
    for file in files:
        try:
            found = file.stat()
        except OSError:
            if file == path:
                raise
            continue
        if not stat.S_ISDIR(found.st_mode):
            out.append((str(file), found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(out)


def _written(run: PilotRun) -> float:
    """When the file of a run was written."""
    try:
        return Path(run.path).stat().st_mtime
    except OSError:
        return 0.0


def _is_open(signature: Signature) -> bool:
    """Whether a single file ends within a line."""
    return _last_byte(signature, blanks=b"") not in (b"", b"\n")


def _last_byte(signature: Signature, blanks: bytes = b" \r\n\t") -> bytes:
    """Last byte of a single file, but for blanks; none of several, or where it cannot be read."""
    if len(signature) != 1 or not signature[0][2]:
        return b""
    try:
        with open(signature[0][0], "rb") as stream:
            stream.seek(max(-64, -signature[0][2]), 2)
            return stream.read(64).rstrip(blanks)[-1:] if blanks else stream.read(64)[-1:]
    except OSError:
        return b""


def reader(
    advised: Mapping[str, Any] | None = None, **stated: Any
) -> Callable[[Path | str], list[PilotRun]]:
    """Make a function from a path, or a tracker's run, to its runs; options of `read_runs`.

    What a run does not log is taken from what was advised, where its learning rate agrees.
    """

    def read(path: Path | str) -> list[PilotRun]:
        runs = read_once(path, stated)
        known = advised or {}
        rates = [run.hyperparameters.learning_rate for run in runs]
        agree = all(rate in (None, known.get("learning_rate")) for rate in rates)
        lacking = {name: known[name] for run in runs for name in run.needs if known.get(name)}
        if not (lacking and agree):
            return runs
        overrides = {**lacking, **(stated.get("overrides") or {})}
        listed = ", ".join(f"{name} {value:g}" for name, value in lacking.items())
        note = f"not logged, so taken as the study advised: {listed}"
        runs = read_once(path, {**stated, "overrides": overrides})
        return [run.with_updates(warnings=(*run.warnings, note)) for run in runs]

    def read_once(path: Path | str, stated: Mapping[str, Any]) -> list[PilotRun]:
        try:
            return read_runs(path, **stated)
        except RateContradictionError as error:
            # The run is no pilot whose sidecar might be wrong: the log counts.
            overrides = {**(stated.get("overrides") or {}), "learning_rate": error.logged}
            runs = read_runs(path, **{**stated, "overrides": overrides})
            return [run.with_updates(warnings=(*run.warnings, error.problem)) for run in runs]

    return read
