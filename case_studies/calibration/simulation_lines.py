"""Simulations kept as lines of a file, one each, so that a study can be stopped and gone on with.

The first line says what they were made under: the formulas, and the numbers of the preset. Lines
made under others are refused, not mixed in.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from engine_flags import results

from advisor.common import EngineSettings, Item, Outcome, digest_of
from advisor.model import Priors, load_priors
from advisor.model.fast.machine_code import cache_folder

Record = dict[str, Any]

PROCESSES = 2
DIGITS = 6
"""Of stored numbers: finer than any Monte Carlo error here."""


def formulas() -> str:
    """Digest of the sources that decide the density."""
    return cache_folder().name


def numbers_of(preset: str | Priors) -> str:
    """Digest of the numbers of a preset; a source that is worded better changes nothing."""
    priors = load_priors(preset) if isinstance(preset, str) else preset
    words = {"source", "description", "evidence"}

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(part) for key, part in sorted(value.items()) if key not in words}
        return value

    told = json.dumps(bare(priors.model_dump(mode="json")), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def made_under(study: str, preset: str) -> Record:
    """First line of a study's file."""
    return {
        "study": study,
        "formulas": formulas(),
        "preset": preset,
        "numbers": numbers_of(preset),
    }


def read_header(path: Path) -> Record:
    """First line of a study's file: the model it belongs to."""
    with path.open() as stream:
        return dict(json.loads(stream.readline()))


def read_records(path: Path) -> list[Record]:
    """All simulations of a study by number, whatever they were made under."""
    records = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return sorted(records, key=lambda record: record["number"])


def refuse_stale(path: Path) -> None:
    """Stop where the lines are of another model, or another preset, than those installed.

    Raises
    ------
    SystemExit
        The header differs, or does not say under which numbers the lines were made.
    """
    header = read_header(path)
    installed = {"formulas": formulas()}
    if "preset" in header:
        installed["numbers"] = numbers_of(header["preset"])
    for name in ("formulas", "numbers"):
        if name not in header or header[name] != installed.get(name):
            raise SystemExit(
                f"{path} holds simulations under {name} {header.get(name, 'that it does not say')}"
                f", but those installed are {installed.get(name, 'of another preset')}: delete the "
                "file to simulate afresh"
            )


def run_missing(
    path: Path,
    header: Mapping[str, Any],
    simulate: Callable[[str, int], Record],
    numbers: Sequence[int],
    *,
    on: EngineSettings | None = None,
) -> None:
    """Run the simulations that a file lacks; each is one line that stays.

    The header is that of :func:`made_under`, with what else the lines need to be read. ``simulate``
    makes a record with its number from the study's name and the number.

    Raises
    ------
    SystemExit
        The file holds simulations of another model, or one of them failed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done: set[int] = set()
    if path.exists() and path.stat().st_size:
        refuse_stale(path)
        done = {record["number"] for record in read_records(path)}
    missing = [number for number in numbers if number not in done]
    if not missing:
        return
    study = header["study"]
    items = [
        Item(f"{study} {number}", (simulate, study, number), (digest_of(dict(header)),))
        for number in missing
    ]
    with path.open("a") as stream:

        def write(found: Outcome) -> None:
            if found.has_failed:
                return
            if stream.tell() == 0:
                stream.write(json.dumps(dict(header)) + "\n")
            stream.write(json.dumps(rounded(found.result), separators=(",", ":")) + "\n")
            stream.flush()

        results(_simulated, items, f"Simulating {study}", on or {"jobs": PROCESSES}, tell=write)


def _simulated(task: tuple[Callable[[str, int], Record], str, int]) -> Record:
    """One simulation."""
    simulate, study, number = task
    return simulate(study, number)


def rounded(value: Any) -> Any:
    """Numbers to ``DIGITS`` digits, however deep they lie."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, (list, tuple)) else value
