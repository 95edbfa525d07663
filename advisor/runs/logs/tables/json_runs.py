"""JSON documents that hold runs somewhere inside: step logs, reward traces, evaluations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.config_files import Scalar, flatten
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import parse_json
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.logs.tables.json_lists import AS_EVALUATION, NAMES, STEPS, Course, Finder
from advisor.runs.trainers import plain
from advisor.runs.trainers.generic import keys as own_loop
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, kept_keys, show_keys

CONFIGS = frozenset(
    {
        *("metadata", "meta", "config", "cfg", "args", "arguments", "params", "settings"),
        *("hyperparameters", "hyperparams", "hparams", "training_args", "train_config"),
        *("training_config", "grpo_config"),
    }
)
"""Keys of an object that holds the settings of what stands beside it."""

FAILED = frozenset({"failed", "error", "errored", "crashed", "cancelled", "oom"})

NUMBERS = re.compile(rb'"([^"\\\n]{1,80})"\s*:\s*(?:\[|\{\s*"\d{1,9}"\s*:)\s*(?:-?\d|null|NaN|-?I)')
"""A key with a list of numbers, or with numbers by place as pandas writes them."""

OBJECTS = re.compile(rb'"[^"\\\n]{1,80}"\s*:\s*\[\s*\{([^{}]{0,4000})')
"""A key with a list of objects, and the beginning of the first."""

SCALAR = re.compile(rb'"([^"\\\n]{1,80})"\s*:\s*(?:-?\d|null|NaN)')
HINTS = (b"eward", b"accuracy", b"pass@1", b"score")


class Found(NamedTuple):
    """A run inside the document."""

    course: Course
    name: str | None
    place: str
    settings: Mapping[str, Any]


def claims(log: LogFile) -> bool:
    """Whether a JSON document is no list of rows itself and holds a run somewhere inside."""
    if log.suffix != ".json":
        return False
    head = log.head_text()
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] not in (b"{", b"[") or b'"log_history"' in head:
        return False
    if len(log.head()) < limits.HEAD_BYTES:
        if not any(hint in head for hint in HINTS):
            return False
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return _looks_like_runs(head)
        return bool(_Walk(Columns()).runs(document, with_rows=False))
    return _looks_like_runs(head) or _runs_further_on(log)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a JSON document."""
    (log,) = logs
    document = parse_json(log.text(), log.path)
    walk = _Walk(columns)
    try:
        runs = walk.runs(document)
    except _TooLargeError:
        raise InputError(
            f"the document holds more than {limits.MOST_JSON_OBJECTS:,} objects or "
            f"{limits.MOST_JSON_RUNS:,} runs",
            path=log.path,
            advice="Split it, or export the logged rows as CSV or JSONL",
        ) from None
    if not runs:
        keys = document if isinstance(document, dict) else ()
        failed = f"; {walk.failed} of its entries failed" if walk.failed else ""
        raise InputError(
            f"the document holds no list of rewards (keys seen: {show_keys(keys)}{failed})",
            path=log.path,
            advice='Give rows [{"step": 1, "reward": 0.5}, ...] or a list "reward": [0.5, ...]',
        )
    warnings: tuple[str, ...] = ()
    if walk.failed:
        entries = "entry" if walk.failed == 1 else "entries"
        warnings = (f"{walk.failed} {entries} failed without rewards and were skipped",)
    labels = _labels(runs)
    for run, (label, is_own) in zip(runs, labels, strict=True):
        builder = TableBuilder(log.path, kept_keys(columns))
        for number, row in enumerate(run.course.rows, start=1):
            builder.add(number, row)
        table = builder.build()
        yield Logged(
            table,
            label=label,
            has_own_id=is_own,
            framework=own_loop.unless_another(table.keys),
            settings=run.settings,
            assumptions=run.course.assumptions,
            warnings=warnings,
        )
        warnings = ()


class _TooLargeError(Exception):
    """The document holds more than any log of runs."""


class _Walk:
    """Visits the objects of a document, each with the settings that stand around it."""

    def __init__(self, columns: Columns) -> None:
        self._finder = Finder(columns)
        self._found: list[Found] = []
        self._visited = 0
        self.failed = 0

    def runs(self, document: Any, *, with_rows: bool = True) -> list[Found]:
        """Runs of the document; ``with_rows`` also where it is itself a list of rows."""
        if isinstance(document, list) and self._finder.are_rows(document):
            if with_rows:
                rows = [row for row in document if isinstance(row, dict)]
                self._found.append(Found(Course(rows, frozenset()), None, "", {}))
        else:
            self._visit(document, (), (), 0)
        return self._found

    def _visit(
        self, node: Any, place: tuple[str, ...], around: tuple[Mapping[str, Any], ...], depth: int
    ) -> None:
        self._visited += 1
        if self._visited > limits.MOST_JSON_OBJECTS or len(self._found) > limits.MOST_JSON_RUNS:
            raise _TooLargeError
        if depth > 12:
            return
        if isinstance(node, list):
            for number, entry in enumerate(node):
                if isinstance(entry, dict | list):
                    self._visit(entry, (*place, str(number)), around, depth + 1)
            return
        around = (*around, node)
        courses = self._finder.courses(node) if _has_inside(node) else {}
        name = next((str(node[key]) for key in NAMES if isinstance(node.get(key), str)), None)
        for key, course in courses.items():
            own = (*place, key) if key is not None else place
            label = name if key is None else None
            self._found.append(Found(course, label or None, ".".join(own), _settings(around)))
        if not courses and str(node.get("status", "")).lower() in FAILED:
            self.failed += 1
        taken = {key for course in courses.values() for key in course.taken}
        for key, value in node.items():
            if isinstance(value, dict | list) and key not in taken and key not in CONFIGS:
                self._visit(value, (*place, key), around, depth + 1)


def _has_inside(node: Mapping[str, Any]) -> bool:
    return any(isinstance(value, dict | list) for value in node.values())


def _settings(objects: Sequence[Mapping[str, Any]]) -> dict[str, Scalar]:
    """Settings of a run, from the document inwards: scalars beside it and configs; later wins."""
    settings: dict[str, Scalar] = {}
    for node in objects:
        for key, value in node.items():
            if key.lower() in CONFIGS and isinstance(value, dict):
                settings.update(flatten(value))
        settings.update(flatten({k: v for k, v in node.items() if not isinstance(v, dict | list)}))
    return dict(list(settings.items())[-500:])


def _labels(runs: Sequence[Found]) -> list[tuple[str | None, bool]]:
    """What tells runs apart: their own names, else their places; nothing where there is one run."""
    if len(runs) == 1:
        return [(None, False)]
    labels: list[tuple[str | None, bool]] = []
    used: set[str] = set()
    for run in runs:
        label = run.name or run.place
        if label in used:
            label = f"{label} ({run.place})"
        used.add(label)
        labels.append((label, run.name is not None))
    return labels


def _looks_like_runs(text: bytes) -> bool:
    numbers = [key.decode("utf-8", "replace") for key in dict.fromkeys(NUMBERS.findall(text))]
    names = {plain(key) for key in numbers}
    if has_reward_key(numbers) or not names.isdisjoint(own_loop.TRACES):
        return True
    if not names.isdisjoint(STEPS) and (
        has_evaluation_key(numbers) or not names.isdisjoint(AS_EVALUATION)
    ):
        return True
    for inside in OBJECTS.findall(text):
        if has_reward_key(key.decode("utf-8", "replace") for key in SCALAR.findall(inside)):
            return True
    return False


def _runs_further_on(log: LogFile) -> bool:
    """Whether a run begins after the head, behind long settings or texts."""
    try:
        with log.open() as stream:
            read_on, rest = 0, b""
            while read_on < limits.SEARCHED_BYTES and (block := stream.read(limits.BLOCK_BYTES)):
                if any(hint in block for hint in HINTS) and _looks_like_runs(rest + block):
                    return True
                read_on, rest = read_on + len(block), block[-4096:]
    except InputError:
        return False
    return False


READER = Reader(
    "JSON document with runs inside (step log, reward trace, evaluations of checkpoints)",
    claims,
    read,
    claim=Claim.TABLE,
    suffixes=frozenset({".json"}),
)
