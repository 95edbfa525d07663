"""TensorBoard event files (``events.out.tfevents...``) of one folder, read without TensorBoard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Column, Columns, Logged, Reader, Table
from advisor.runs.logfiles.records import EVENT_HEADER, Cells, Events
from advisor.runs.logs.row_kinds import least_rows
from advisor.runs.logs.stated_settings import derive_settings
from advisor.runs.pilot_run import IN_NO_RUN
from advisor.runs.trainers.key_table import COMMON_KEYS
from advisor.text import compiled, counted, read_toml

PATTERNS = compiled(read_toml(__file__, "trackers.toml")["tensorboard"])

LENGTHS = ("planned_steps", "warmup_steps", "logging_steps")
"""Settings that a run may change where it is resumed."""


def claims(log: LogFile) -> bool:
    """Whether a file is an event file, by its name or its first record."""
    if log.suffix in (".csv", ".json", ".jsonl", ".txt", ".md", ".zip"):
        return False
    is_named = "tfevents" in log.name
    if not is_named and log.suffix not in ("", ".tfevents"):
        return False
    head = log.readable_head()
    is_short = len(head) < EVENT_HEADER
    return b"brain.Event:" in head[:64] or (is_named and (is_short or b"\0" in head))


def group(log: LogFile) -> Path:
    """Folder of the run."""
    return log.path.parents[1] if _is_settings_only(log) else log.path.parent


def _is_settings_only(log: LogFile) -> bool:
    is_named_so = re.fullmatch(r"\d{9,11}\.\d+", log.path.parent.name) is not None
    # torch's ``add_hparams`` puts settings into a folder of their own, named by its time.
    return is_named_so and b"_hparams_/" in log.readable_head()


class _EventAttempt(NamedTuple):
    """One attempt at a run: its file, cells by tag, settings, those it states, what to know."""

    log: LogFile
    cells: dict[str, Cells]
    settings: dict[str, Any]
    stated: dict[str, Any]
    warnings: list[str]

    @property
    def length(self) -> int:
        return max((len(set(each.steps)) for each in self.cells.values()), default=0)

    def may_be(self, other: Mapping[str, Any]) -> bool:
        """Whether no setting is known to differ."""
        return all(other[name] == self.stated[name] for name in other.keys() & self.stated)

    def is_gone_on_with(self, cells: Mapping[str, Cells]) -> bool:
        """Whether cells do not count again from where these began."""
        pairs = [(cells[tag].steps, self.cells[tag].steps) for tag in cells.keys() & self.cells]
        pairs = [(new, old) for new, old in pairs if len(new) and len(old)]
        return not pairs or any(min(new) > min(old) for new, old in pairs)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a folder: files of other settings are runs of their own."""
    files, warnings = _read_files(logs)
    run = [(log, events) for log, events in files if not _is_settings_only(log)] or files
    shared = _settings([events for log, events in files if _is_settings_only(log)])
    attempts: list[_EventAttempt] = []
    for log, events in sorted(run, key=lambda file: (file[1].started, file[0].path)):
        settings = _settings([events])
        known = derive_settings(settings, COMMON_KEYS).facts
        stated = {name: known[name] for name in known if name not in LENGTHS}
        attempt = next((one for one in reversed(attempts) if one.may_be(stated)), None)
        if attempt is None or not attempt.is_gone_on_with(events.cells):
            attempt = _EventAttempt(log, {}, {}, {}, [])
            attempts.append(attempt)
        attempt.settings.update(settings)
        attempt.stated.update(stated)
        replaced = _append(attempt.cells, events.cells)
        if replaced:
            rows = f"{counted(len(replaced), 'row')} (steps {min(replaced)} to {max(replaced)})"
            attempt.warnings.append(
                f"{rows} of an earlier file begin again in {log.name}: those are {IN_NO_RUN}"
            )
    if not any(attempt.cells for attempt in attempts):
        advice = "Give the folder of the run's own event file, with the scalars of its steps"
        raise InputError("the event file holds no scalars", path=logs[0].path, advice=advice)
    kept = []
    for one in attempts:
        close = [other for other in attempts if other.may_be(one.stated)]
        longest = max(close, key=lambda other: other.length)
        if one.length < min(longest.length, least_rows(longest.length)):
            what = f"{counted(one.length, 'row')}, an aborted attempt at the same settings"
            longest.warnings.append(f"{one.log.name}: {what}, {IN_NO_RUN}")
        else:
            kept.append(one)
    for one in kept:
        yield Logged(
            _table(one.cells),
            source=one.log.path if len(kept) > 1 else None,
            settings=shared | one.settings,
            warnings=(*warnings, *one.warnings),
        )


def _read_files(logs: Sequence[LogFile]) -> tuple[list[tuple[LogFile, Events]], list[str]]:
    """Events of each file; one that cannot be read is passed over where others can."""
    files, warnings = list[tuple[LogFile, Events]](), list[str]()
    failed: InputError | None = None
    for log in logs:
        try:
            files.append((log, Events(log, PATTERNS["settings_tag"].fullmatch, warnings)))
        except InputError as error:
            failed = error
            warnings.append(f"{log.name}: {error.problem}: {IN_NO_RUN}")
    if not files and failed is not None:
        raise failed
    return files, warnings


def _append(cells: dict[str, Cells], later: Mapping[str, Cells]) -> set[int]:
    """Put the cells of a later file behind those before it; the steps that it replaces."""
    start = min((min(new.steps) for new in later.values() if len(new.steps)), default=0)
    replaced: set[int] = set()
    for tag, new in later.items():
        old = cells.get(tag, Cells())
        stays = np.asarray(old.steps) < (start if len(new.steps) else np.inf)
        replaced.update(np.asarray(old.steps)[~stays].tolist())
        steps = np.append(np.asarray(old.steps)[stays], new.steps)
        cells[tag] = Cells(steps, np.append(np.asarray(old.values)[stays], new.values))
    return replaced


def _table(cells: dict[str, Cells]) -> Table:
    """One row per step; of two cells of a tag at one step the later."""
    each_steps = (np.asarray(each.steps, dtype=np.int64) for each in cells.values())
    steps = reduce(np.union1d, each_steps, np.zeros(0, dtype=np.int64))
    columns = {"step": Column(np.arange(steps.size), steps.astype(np.float64))}
    for tag in sorted(cells):
        each = cells.pop(tag)  # so that only one copy of the numbers lives at a time
        if tag == "step":
            continue
        own = np.asarray(each.steps, dtype=np.int64)
        order = np.argsort(own, kind="stable")
        own = own[order]
        is_last = np.append(own[1:] != own[:-1], True)[: own.size]
        values = np.asarray(each.values, dtype=np.float64)[order][is_last]
        columns[tag] = Column(np.searchsorted(steps, own[is_last]), values)
    return Table(np.arange(1, steps.size + 1), columns, np.zeros(steps.size, dtype=bool))


def _settings(files: Sequence[Events]) -> dict[str, Any]:
    """Settings that stand in the files, later ones last."""
    found: dict[str, Any] = {}
    for events in sorted(files, key=lambda events: events.started):
        for tag, text in events.texts.items():
            name = tag.removesuffix("/text_summary").rpartition("/")[2]
            settings = _parse_settings(text)
            is_own = PATTERNS["own_tag"].fullmatch(name.lower())
            found |= flatten(settings if is_own else {name: settings})
        found |= flatten(events.hparams)
    return found


def _parse_settings(text: str) -> Mapping[str, Any]:
    """Settings of a text: a JSON object, or the two-column table that TensorBoard renders."""
    if text.lstrip().startswith("{"):
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return parsed if isinstance(parsed, dict) else {}
    split = [line.strip().split("|") for line in text.splitlines()]
    rows = [(cells[1].strip(), cells[2].strip()) for cells in split if len(cells) == 4]
    is_table = len(rows) > 2 and not rows[1][0].strip("-:")
    return dict(rows[2:]) if is_table else {}


READER = Reader("TensorBoard event files", claims, read, group)
