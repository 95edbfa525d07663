"""JSON documents that hold runs somewhere inside: step logs, reward traces, evaluations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard

from advisor.errors import InputError
from advisor.runs.logfiles.config_files import Scalar, flatten
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader, TableBuilder
from advisor.runs.logfiles.parsing import parse_json, unpaired
from advisor.runs.pilot_run import IN_NO_RUN
from advisor.runs.trainers import generic as own_loop
from advisor.runs.trainers import plain
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, show_keys
from advisor.text import compiled, read_toml

NAMES = read_toml(__file__, "json_names.toml")
PATTERNS = compiled(NAMES["patterns"])
STEPS: list[str] = NAMES["steps"]
AS_EVALUATION: dict[str, str] = NAMES["as_evaluation"]

HINTS = (b"eward", b"accuracy", b"pass@1", b"score")

Cells = dict[str, Any]


def claims(log: LogFile) -> bool:
    """Whether a JSON document is no list of rows itself and holds a run somewhere inside."""
    if log.suffix != ".json":
        return False
    head, text = log.head_text(), log.start()
    if text[:1] not in (b"{", b"[") or b'"log_history"' in head:
        return False
    if len(log.head()) >= limits.head_bytes:
        blocks = log.blocks(limits.searched_bytes, 4096)  # behind long settings or texts
        return _looks_like_runs(head) or any(
            any(hint in block for hint in HINTS) and _looks_like_runs(block) for block in blocks
        )
    if not any(hint in head for hint in HINTS):
        return False
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _looks_like_runs(head)
    return bool(_Search(log.path).runs(document))


def _looks_like_runs(text: bytes) -> bool:
    found = dict.fromkeys(PATTERNS["numbers_bytes"].findall(text))
    numbers = [key.decode("utf-8", "replace") for key in found]
    names = {plain(key) for key in numbers}
    if has_reward_key(numbers) or not names.isdisjoint(own_loop.TRACES):
        return True
    is_evaluation = has_evaluation_key(numbers) or not names.isdisjoint(AS_EVALUATION)
    scalars = PATTERNS["scalar_bytes"].findall
    return (not names.isdisjoint(STEPS) and is_evaluation) or any(
        has_reward_key(key.decode("utf-8", "replace") for key in scalars(inside))
        for inside in PATTERNS["objects_bytes"].findall(text)
    )


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a JSON document."""
    (log,) = logs
    document = parse_json(log.text(), log.path)
    search = _Search(log.path, columns.keys.get("reward"))
    runs = search.runs(document)
    if not runs:
        keys = document if isinstance(document, dict) else ()
        failed = f"; {search.failed} of its entries failed" if search.failed else ""
        problem = f"the document holds no list of rewards (keys seen: {show_keys(keys)}{failed})"
        advice = 'Give rows [{"step": 1, "reward": 0.5}, ...] or a list "reward": [0.5, ...]'
        raise InputError(problem, path=log.path, advice=advice)
    entries = "entry" if search.failed == 1 else "entries"
    skipped = f"{search.failed} {entries} failed without rewards: {IN_NO_RUN}"
    used: set[str] = set()
    for run in runs:
        # Runs are told apart by their own names, else by their places.
        label = run.name or run.place
        label = f"{label} ({run.place})" if label in used else label
        builder = TableBuilder(log.path)
        for number, row in enumerate(run.rows, start=1):
            builder.add(number, row)
        table = builder.build()
        yield Logged(
            table,
            label=label if len(runs) > 1 else None,
            has_own_id=len(runs) > 1 and run.name is not None,
            framework=own_loop.unless_another(table.keys),
            settings=run.settings,
            assumptions=run.assumptions,
            warnings=(skipped,) if search.failed and not used else (),
        )
        used.add(label)


@dataclass(frozen=True)
class _JsonRun:
    """Rows of one run, which keys of its object they were taken from, and where that stands."""

    rows: list[Cells]
    taken: frozenset[str] = frozenset()
    assumptions: tuple[str, ...] = ()
    name: str | None = None
    place: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Search:
    """Visits the objects of a document, with the settings around each, and finds runs in them."""

    path: Path
    mapped: str | None = None
    failed: int = 0
    _found: list[_JsonRun] = field(default_factory=list)
    _visited: int = 0

    def runs(self, document: Any) -> list[_JsonRun]:
        """Runs inside the document; a list of rows is a table."""
        if not (isinstance(document, list) and self.are_rows(document)):
            self._visit(document, (), ())
        return self._found

    def _visit(self, node: Any, place: tuple[str, ...], around: tuple[Cells, ...]) -> None:
        self._visited += 1
        if self._visited > limits.most_json_objects or len(self._found) > limits.most_json_runs:
            raise InputError(
                f"the document holds more than {limits.most_json_objects:,} objects or "
                f"{limits.most_json_runs:,} runs",
                path=self.path,
                advice="Split it, or export the logged rows as CSV or JSONL",
            )
        if len(place) > 12:
            return
        entries: Iterable[tuple[Any, Any]] = enumerate(node) if isinstance(node, list) else ()
        entries = node.items() if isinstance(node, dict) else entries
        inside = {str(key): value for key, value in entries if isinstance(value, dict | list)}
        if isinstance(node, dict):
            node = unpaired(node)
            around = (*around, node)
            courses = self.courses(node) if inside else {}
            name = next((node[k] for k in NAMES["names"] if isinstance(node.get(k), str)), None)
            for key, course in courses.items():
                own, label = (place, name) if key is None else ((*place, key), None)
                where, settings = ".".join(own), _settings(around)
                found = replace(course, name=label or None, place=where, settings=settings)
                self._found.append(found)
            self.failed += not courses and str(node.get("status", "")).lower() in NAMES["failed"]
            passed_over = {*NAMES["configs"], *(k for c in courses.values() for k in c.taken)}
            inside = {key: value for key, value in inside.items() if key not in passed_over}
        for key, value in inside.items():
            self._visit(value, (*place, key), around)

    def courses(self, node: Mapping[str, Any]) -> dict[str | None, _JsonRun]:
        """Runs whose rows stand in this object, by the key of their list."""
        held_out = PATTERNS["held_out"].fullmatch
        apart = {
            key: [_flat(row) for row in value if isinstance(row, dict)]
            for key, value in node.items()
            if isinstance(value, list) and self.are_rows(value) and not held_out(key)
        }
        if len(apart) > 1:
            return {key: _JsonRun(rows, frozenset({key})) for key, rows in apart.items()}
        series = {key: s for key, v in node.items() if (s := as_series(v)) is not None}
        for key, rows in apart.items():
            return {None: _with_evaluations(node, series, rows, {key})}
        trace = self._trace(node, series)
        if trace is not None:
            whole = _next_to(trace, series)
            rows = [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]
            return {None: _with_evaluations(node, series, rows, set(whole))}
        keys, rows = _evaluations(node, series, ())
        if not keys:
            return {}
        assumed = f"{keys[0]} is read as held out (no train reward stands next to it)"
        return {None: _JsonRun(rows, frozenset(keys), (assumed,))}

    def are_rows(self, entries: list[Any]) -> bool:
        """Whether a list holds logged rows with a train reward, rather than runs or samples."""
        rows = [_flat(entry) for entry in entries[:50] if isinstance(entry, dict)]
        if not rows or not isinstance(entries[0], dict):
            return False
        keys = {key: None for row in rows for key, cell in row.items() if _is_number(cell)}
        if not any(self._is_reward(key) for key in keys) or _has(rows[0], "of_a_sample"):
            return False
        if any(plain(key) in (*own_loop.KEY_TABLE.optimizer_steps, *STEPS) for key in keys):
            return True
        named = [str(row[key]) for row in rows for key in NAMES["names"] if key in row]
        return len(rows) == 1 or len(set(named)) < len(rows)

    def _trace(self, node: Mapping[str, Any], series: Mapping[str, list[Any]]) -> str | None:
        """Key of a list of rewards that is the course of a run, best declared first."""
        if _has(node, "of_a_sample"):
            return None
        order = [name for level in own_loop.KEY_TABLE.reward for name in level]
        found = [key for key in series if self._is_reward(key)]
        found.sort(key=lambda key: order.index(plain(key)) if plain(key) in order else len(order))
        if not found:
            return None
        inside = (value for value in node.values() if isinstance(value, dict))
        is_evaluation = any(_has(each, "of_an_evaluation") for each in (node, *inside))
        return None if is_evaluation and len(_next_to(found[0], series)) == 1 else found[0]

    def _is_reward(self, key: str) -> bool:
        return key == self.mapped or has_reward_key([key]) or plain(key) in own_loop.TRACES


def _settings(objects: Sequence[Mapping[str, Any]]) -> dict[str, Scalar]:
    """Settings of a run, from the document inwards: scalars next to it and configs; later wins."""
    settings: dict[str, Scalar] = {}
    for node in objects:
        for key, value in node.items():
            if key.lower() in NAMES["configs"] and isinstance(value, dict):
                settings.update(flatten(value))
        settings.update(flatten({k: v for k, v in node.items() if not isinstance(v, dict | list)}))
    return dict(list(settings.items())[-500:])


def _with_evaluations(
    node: Mapping[str, Any], series: Mapping[str, list[Any]], rows: list[Cells], taken: set[str]
) -> _JsonRun:
    """Rows, and evaluations that stand next to them in lists of their own."""
    key = _step_key(rows[0])
    added: list[Cells] = []
    for name, entries in node.items():
        if isinstance(entries, list) and PATTERNS["held_out"].fullmatch(name):
            found = [row for entry in entries if (row := _evaluation_row(entry)) is not None]
            added += found
            taken |= {name} if found else set()
    keys, further = _evaluations(node, series, taken)
    added += further
    if added and key is None:
        key = "step"
        rows = [{**row, key: place} for place, row in enumerate(rows, start=1)]
    for row in added:
        row[str(key)] = row.pop("step")
    return _JsonRun([*rows, *added], frozenset(taken | set(keys)))


def as_series(value: Any) -> list[Any] | None:
    """Numbers of a list, or of an object that pandas wrote (``{"0": 0.1, "1": 0.2}``)."""
    if isinstance(value, dict):
        if not all(key.isdecimal() and len(key) < 10 for key in value):
            return None
        value = [value[key] for key in sorted(value, key=int)]
    if not isinstance(value, list) or not all(cell is None or _is_number(cell) for cell in value):
        return None
    return value if any(cell is not None for cell in value) else None


def _next_to(trace: str, series: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Lists of one length with the rewards, without evaluations that have steps of their own."""
    same = {key: v for key, v in series.items() if len(v) == len(series[trace])}
    evaluated_at = {key for key in same if plain(key) in NAMES["evaluated_at"]}
    if evaluated_at:
        evaluated_at |= {key for key in same if has_evaluation_key([key])}
    return {key: v for key, v in same.items() if key == trace or key not in evaluated_at}


def _evaluations(
    node: Mapping[str, Any], series: Mapping[str, list[Any]], taken: Iterable[str]
) -> tuple[list[str], list[Cells]]:
    """Keys and rows of lists of steps and held-out measures, with the base model's as step 0."""
    used = set(taken)
    by_name = {plain(key): key for key in node if key not in used}
    for key in (by_name[name] for name in STEPS if name in by_name):
        steps = _steps(node[key])
        lists = {k: v for k, v in series.items() if len(v) == len(steps) and k not in used}
        renamed = _rename(lists) if steps else {}
        if not renamed:
            continue
        measures = {renamed.get(own, own): v for own, v in lists.items() if own != key}
        rows: list[Cells] = [
            {"step": step, **{name: values[i] for name, values in measures.items()}}
            for i, step in enumerate(steps)
        ]
        # How a key of the base model's measure begins, best last.
        base = {
            renamed.get(own, own): float(node[start + own])
            for own in lists
            for start in ("baseline_", "baseline ", "base/", "base_", "base ")
            if _is_number(node.get(start + own))
        }
        return [*renamed, key], [{"step": 0, **base}, *rows] if base else rows
    return [], []


def _rename(keys: Iterable[str]) -> dict[str, str]:
    """Keys of held-out measures -> their names as such; empty where there is none."""
    listed = list(keys)
    names: dict[str, str] = {key: key for key in listed if has_evaluation_key([key])}
    for name, ours in AS_EVALUATION.items():
        match = next((key for key in listed if plain(key) == name), None)
        if match is not None and ours not in names.values():
            names[match] = ours
    return names


def _evaluation_row(entry: Any) -> Cells | None:
    row = _flat(entry) if isinstance(entry, dict) else {}
    key = _step_key(row)
    renamed = _rename(key for key, cell in row.items() if _is_number(cell))
    if key is None or not renamed:
        return None
    return {"step": row[key], **{ours: row[name] for name, ours in renamed.items()}}


def _steps(value: Any) -> list[int]:
    """Steps of a list of numbers or of names such as ``checkpoint-100``."""
    found = []
    for entry in value if isinstance(value, list) else ():
        number = re.search(r"(\d{1,9})$", entry) if isinstance(entry, str) else None
        step = int(number.group(1)) if number else entry
        if not _is_number(step) or step != step or not 0 <= step < 1e9 or step != int(step):
            return []
        found.append(int(step))
    return found


def _step_key(row: Mapping[str, Any]) -> str | None:
    names = (*own_loop.KEY_TABLE.optimizer_steps, *STEPS)
    return next((key for name in names for key in row if plain(key) == name), None)


def _flat(row: Mapping[str, Any]) -> Cells:
    """Cells of a row, also those that stand in an object ``metrics`` inside."""
    inner = row.get("metrics")
    return {**inner, **row} if isinstance(inner, dict) else dict(row)


def _has(node: Mapping[str, Any], kind: str) -> bool:
    """Whether an object has a key of a kind; one answer is a text, their number or score none."""
    texts = {key.lower() for key, cell in node.items() if not _is_number(cell)}
    return not (texts if kind == "of_a_sample" else {*map(str.lower, node)}).isdisjoint(NAMES[kind])


def _is_number(cell: Any) -> TypeGuard[float]:
    if isinstance(cell, int) and not isinstance(cell, bool):
        # Of an integer that a float can still hold
        return cell.bit_length() < 1024
    return isinstance(cell, float)


READER = Reader(
    "JSON document with runs inside (step log, reward trace, evaluations of checkpoints)",
    claims,
    read,
    claim=Claim.TABLE,
    suffixes=frozenset({".json"}),
)
