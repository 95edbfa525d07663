"""Runs of a folder with an INDEX.tsv, read as its columns say, and what it tells of their settings.

The index names a reader, a step key, a reward key and a filter for every run. Reading by it, not by
the advisor's own readers, puts the same rewards before every method.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from advisor import read_runs
from advisor.errors import AdvisorError
from advisor.theory import FloatArray

Row = Mapping[str, str]


@dataclass(frozen=True)
class IndexedRun:
    """One run of an index, and its line there.

    Rewards are finite and in the order of the steps; a step written twice keeps its last row.
    """

    id: str
    repository: str
    row: Row
    step: FloatArray
    reward: FloatArray


def read_index(folder: Path) -> tuple[list[IndexedRun], list[str]]:
    """Read every run that the index of a folder names, and say why the others cannot be read."""
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    found, unread = [], []
    for row in rows:
        try:
            step, reward = _series(folder, row)
        except (AdvisorError, OSError, LookupError, ValueError, TypeError, SyntaxError) as error:
            unread.append(f"{row['id']}: {error!r}".replace(f"{folder.parent}/", ""))
            continue
        found.append(IndexedRun(row["id"], row["repo"], row, step, reward))
    return found, unread


def _series(folder: Path, row: Row) -> tuple[FloatArray, FloatArray]:
    file, _, part = row["local_file"].partition(":")
    path = folder / row["local_file"]
    if not path.is_file():
        path = folder / file
    if row["reader"] not in READERS:
        return _by_the_package(path, row)
    text = path.read_bytes().replace(b"\0", b"").decode("utf-8", errors="replace")
    pairs = list(READERS[row["reader"]](text, {**row, "part": part}))
    reward = np.array([_number(value) for _, value in pairs])
    every = float(row["log_every"]) if re.fullmatch(r"\d+", row["log_every"]) else 1.0
    rows = every * np.arange(1, reward.size + 1)
    step = np.array([_number(at) for at, _ in pairs]) if row["step_key"] else rows
    known = np.isfinite(reward) & np.isfinite(step)
    last = {at: index for index, at in enumerate(step) if known[index]}
    kept = [last[at] for at in sorted(last)]
    step = step[kept]
    return step + (1 if step.size and step[0] == 0 else 0), reward[kept]


def _by_the_package(path: Path, row: Row) -> tuple[FloatArray, FloatArray]:
    """Rewards of a file for which the index names no reader of this study."""
    found = [run for run in read_runs(path) if not run.is_eval_only]
    named = [run for run in found if row["id"] in run.id or row["filter"] in run.id]
    if len(found) != 1 and len(named) != 1:
        raise ValueError(f"no reader '{row['reader']}', and {len(found)} runs in the file")
    run = found[0] if len(found) == 1 else named[0]
    known = np.isfinite(run.reward)
    return run.step[known], run.reward[known]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _dicts(text: str) -> Iterator[dict[str, Any]]:
    """Rows that trainers print as Python dictionaries, nested ones aside."""
    for found in re.finditer(r"\{[^{}]*\}", text):
        try:
            row = ast.literal_eval(found[0].replace(": nan", ": None").replace(": inf", ": None"))
        except (SyntaxError, ValueError):
            continue
        if isinstance(row, dict):
            yield row


def _trl_console(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    key = row["reward_key"]
    return ((None, found[key]) for found in _dicts(text) if key in found)


def _csv(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    name, _, value = row["filter"].partition("=")
    for line in csv.DictReader(text.splitlines()):
        if not name or line.get(name) == value:
            yield line[row["step_key"]], line[row["reward_key"]]


def _jsonl(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    name, _, value = row["filter"].partition("=")
    for line in text.splitlines():
        if not line.strip().startswith("{"):
            continue
        found = json.loads(line)
        if row["reward_key"] in found and (not name or str(found.get(name)) == value):
            yield found.get(row["step_key"]), found[row["reward_key"]]


def _from_rows(rows: Any, row: Row) -> Iterable[tuple[Any, Any]]:
    if isinstance(rows, dict) and row["reward_key"] in rows:
        yield from zip(rows[row["step_key"]], rows[row["reward_key"]], strict=False)
        return
    if isinstance(rows, dict):  # one list among what else the file tells
        (rows,) = (value for value in rows.values() if isinstance(value, list))
    for number, found in enumerate(rows, start=1):
        if isinstance(found, dict):
            if row["reward_key"] in found:
                yield found.get(row["step_key"], number), found[row["reward_key"]]
        else:
            yield number, found


def _json_path(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    here = json.loads(text)
    for part in filter(None, row["filter"].split(".")):
        here = here[int(part)] if isinstance(here, list) else here[part]
    return _from_rows(here, row)


def _json_columns(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    columns = json.loads(text)
    return ((None, value) for value in columns[row["reward_key"]])


def _trl_state(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    return _from_rows(json.loads(text)["log_history"], row)


def _json_cols(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    return _from_rows(json.loads(text), row)


def _verl_console(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    number = r"([-+.\deE]+|nan)"
    key = re.escape(row["reward_key"])
    return re.findall(rf"\bstep:\s*(\d+)\b.*?\b{key}:\s*(?:np\.float64\()?{number}", text)


def _tinker_log(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    key = re.escape(row["reward_key"])
    return ((None, value) for value in re.findall(rf"\b{key}\s*[=:]\s*([-+.\deE]+)", text))


def _regex(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    for found in re.finditer(row["filter"], text):
        if row["step_key"]:
            yield found[1], found[2]
        else:
            yield None, float(found[2]) / float(found[1])


def _notebook_table(text: str, row: Row) -> Iterable[tuple[Any, Any]]:
    cell = json.loads(text)["cells"][int(row["filter"].removeprefix("cell="))]
    for output in cell.get("outputs", []):
        html = "".join(output.get("data", {}).get("text/html", []))
        header = [_plain(name) for name in re.findall(r"<th[^>]*>(.*?)</th>", html, re.S)]
        if row["reward_key"] not in header:
            continue
        for line in re.findall(r"<tr[^>]*>(.*?)</tr>", html, re.S):
            values = [_plain(value) for value in re.findall(r"<td[^>]*>(.*?)</td>", line, re.S)]
            found = dict(zip(header, values, strict=False))
            if row["reward_key"] in found:
                yield found[row["step_key"]], found[row["reward_key"]]


def _plain(cell: str) -> str:
    return re.sub(r"<[^>]+>", "", cell).strip()


READERS: dict[str, Callable[[str, Row], Iterable[tuple[Any, Any]]]] = {
    "trl_console": _trl_console,
    "csv": _csv,
    "jsonl": _jsonl,
    "json_list": _json_path,
    "json_path": _json_path,
    "json_trace": _json_path,
    "json_columns": _json_columns,
    "json_cols": _json_cols,
    "trl_state": _trl_state,
    "verl_console": _verl_console,
    "tinker_log": _tinker_log,
    "regex": _regex,
    "nb_table": _notebook_table,
}
"""By the column ``reader`` of the index."""
