"""Damaged files by the hundred thousand, each with limits of time and memory.

Files are read in forked processes of some hundred files each: one that dies, hangs where no signal
is delivered, or grows too large is a finding, and the next goes on.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from formats import Example, examples

SECONDS = 20.0
"""Of a processor: a file that takes longer hangs."""

CLOCK = 120.0
"""Seconds on the clock after which it hangs as well: these machines are shared."""

MEGABYTES = 1024
"""A process that grows by more takes too much."""

BATCH = 400
"""Files of a process."""


class HungError(BaseException):
    """Not an `Exception`: nothing that is damaged may catch it."""


def run(files: int, seed: int, findings: Path) -> dict[str, Any]:
    """Damage and read that many files, evenly over the formats; those of a finding are kept."""
    known = examples()
    others = [data[:100_000] for one in known for data in one.files.values()]
    tried: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    found: list[str] = []
    slowest, largest, number = 0.0, 0, 0
    started = time.monotonic()
    while number < files:
        count = min(BATCH, files - number)
        said, last, died = _batch(known, others, seed, number, count)
        for one in said:
            tried[one["format"]] += 1
            outcomes[one["outcome"]] += 1
            slowest, largest = max(slowest, one["seconds"]), max(largest, one["megabytes"])
            if one["finding"]:
                found.append(f"{one['format']}: {one['finding']}")
                _keep(known, others, seed, one["number"], findings)
        number += len(said)
        if died:
            found.append(f"{_format(known, number).name}: {died} (file {last})")
            _keep(known, others, seed, number, findings)
            outcomes["finding"] += 1
            tried[_format(known, number).name] += 1
            number += 1
    return {
        "files": number,
        "seed": seed,
        "seconds": round(time.monotonic() - started),
        "formats": dict(sorted(tried.items())),
        "outcomes": dict(sorted(outcomes.items())),
        "slowest_seconds": round(slowest, 2),
        "largest_megabytes": largest,
        "findings": len(found),
        "examples_of_findings": sorted(set(found))[:40],
    }


def again(findings: Path) -> dict[str, Any]:
    """Damage and read once more what made a finding, by the names under which it was kept."""
    known = examples()
    others = [data[:100_000] for one in known for data in one.files.values()]
    names = sorted(path.name for path in findings.iterdir())
    outcomes: Counter[str] = Counter()
    found = []
    for name in names:
        seed, number = map(int, name.split("-"))
        ((said, *_), _, died) = _batch(known, others, seed, number, 1)
        outcomes[said["outcome"]] += 1
        if died or said["finding"]:
            found.append(f"{said['format']}: {died or said['finding']}")
    return {
        "files": len(names),
        "seed": sorted({int(name.split("-")[0]) for name in names}),
        "outcomes": dict(sorted(outcomes.items())),
        "findings": len(found),
        "examples_of_findings": sorted(set(found)),
    }


def _made(
    known: list[Example], others: list[bytes], seed: int, number: int
) -> tuple[Example, dict[str, bytes]]:
    """The damaged files of a number, the same each time."""
    one = _format(known, number)
    return one, one.damaged(random.Random(f"{seed}/{number}"), others)


def _format(known: list[Example], number: int) -> Example:
    """Formats in turn; those that cost a process for each file in one turn of twenty."""
    one = known[number % len(known)]
    if one.is_slow and number // len(known) % 20:
        return known[(number + 1) % len(known)]
    return one


def _batch(
    known: list[Example], others: list[bytes], seed: int, first: int, count: int
) -> tuple[list[dict[str, Any]], int, str]:
    """What a forked process said of each file, the last one begun, and how it died if it did."""
    ours, theirs = mp.Pipe(duplex=False)
    child = mp.get_context("fork").Process(
        target=_read_all, args=(theirs, known, others, seed, first, count)
    )
    child.start()
    theirs.close()
    said: list[dict[str, Any]] = []
    died = ""
    try:
        while len(said) < count:
            if not ours.poll(CLOCK):
                died = "hung where no signal is delivered"
                child.kill()
                break
            said.append(ours.recv())
    except EOFError:
        child.join()
        died = f"process ended with {child.exitcode}"
    child.join()
    ours.close()
    return said, first + len(said), died


def _read_all(
    pipe: Connection, known: list[Example], others: list[bytes], seed: int, first: int, count: int
) -> None:
    """Read files and tell of each; runs in a process of its own."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    signal.signal(signal.SIGPROF, _hang)
    warnings.simplefilter("error", RuntimeWarning)
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    place = Path(tempfile.mkdtemp(dir=base))
    # A fork begins with all that its parent holds.
    inherited = _megabytes()
    try:
        for number in range(first, first + count):
            one, files = _made(known, others, seed, number)
            tried = _tried(one, files, place, inherited)
            pipe.send({"format": one.name, "number": number, **tried})
    finally:
        shutil.rmtree(place, ignore_errors=True)
    pipe.close()
    os._exit(0)


def _megabytes() -> int:
    """Most that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _tried(one: Example, files: dict[str, bytes], place: Path, inherited: int) -> dict[str, Any]:
    """Outcome of one example in a word, and what was found wrong with it."""
    from advisor.errors import AdvisorError

    folder = Path(tempfile.mkdtemp(dir=place))
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    started, finding = time.monotonic(), ""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        outcome = one.read(folder)
    except AdvisorError as error:
        outcome = "refused" if error.exit_code == 2 else "finding"
        text = str(error)
        if outcome == "finding" or "Traceback" in text or len(text) > 2000 or text.count("\n") > 3:
            told = text.replace(str(folder), "")
            outcome, finding = "finding", f"told in {len(told):,} characters: {told[:100]!r}"
    except HungError:
        outcome, finding = "finding", f"took more than {SECONDS:g} s"
    except Exception as error:
        outcome, finding = "finding", _where(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    took = time.monotonic() - started
    megabytes = _megabytes() - inherited
    if megabytes > MEGABYTES:
        outcome, finding = "finding", f"{megabytes} MB"
    shutil.rmtree(folder, ignore_errors=True)
    return {"outcome": outcome, "finding": finding, "seconds": took, "megabytes": megabytes}


def _where(error: Exception) -> str:
    """Kind, text and the last place in the package."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if "/advisor/" in f.filename]
    at = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}{at}: {str(error)[:120]}"


def _keep(
    known: list[Example], others: list[bytes], seed: int, number: int, findings: Path
) -> None:
    """Write the files of a finding, to be looked at."""
    _, files = _made(known, others, seed, number)
    for name, data in files.items():
        path = findings / f"{seed}-{number}" / name.replace("..", "__").lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (findings / f"{seed}-{number}" / "names.json").write_text(json.dumps(list(files)))


def _hang(number: int, frame: object) -> None:
    raise HungError
