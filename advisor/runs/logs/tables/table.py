"""Rows of any trainer, read by known names or a column map: CSV, JSONL or a JSON list."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles import parsing
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader, TableBuilder
from advisor.runs.settings import PartialSettings
from advisor.runs.trainers.key_table import COMMON_KEYS
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, reward_key, show_keys
from advisor.text import compiled, read_toml

NAMES = read_toml(__file__, "table_names.toml")
PATTERNS = compiled(NAMES["patterns"])

MOST_LOOKED_AT = 20_000
"""Rows of a table with a row for each value among which one of a reward must be."""

HOW_TO_LIST = "Give a list [{...}, {...}], or one object per line in a .jsonl file"


def is_wide(log: LogFile) -> bool:
    """Whether a table's header, or a row among its first, has a known name of a reward."""
    is_printed = log.suffix in parsing.SUFFIXES - {".md"} and log.start().startswith(b'{"')
    is_json = is_printed or log.suffix in (*parsing.JSON_LINES, ".json")
    if log.suffix in parsing.TABLES:
        keys = parsing.csv_header(log)
        if (long := long_columns(keys)) is not None:
            place = keys.index(long[0])
            with contextlib.suppress(InputError):
                rows = itertools.islice(parsing.csv_rows(log, []), 1, MOST_LOOKED_AT)
                keys = [cells[place].strip() for _, cells in rows if len(cells) > place]
                return has_reward_key(dict.fromkeys(keys))
        if log.suffix == ".md" and not any(PATTERNS["step"].fullmatch(key.lower()) for key in keys):
            return False  # of results
    elif is_json and PATTERNS["object_bytes"].match(text := log.start()):
        is_object = log.suffix == ".json" and not PATTERNS["lines_bytes"].match(text)
        found = [] if is_object else dict.fromkeys(PATTERNS["scalar_key_bytes"].findall(text))
        keys = [key.decode("utf-8", "replace") for key in found]
        if not is_object and (long := long_columns(keys)) is not None:
            name = re.escape(long[0].encode())
            named = re.findall(rb'"%s"\s*:\s*"([^"\n]{1,120})"' % name, text)
            keys = [key.decode("utf-8", "replace") for key in dict.fromkeys(named)]
        elif not is_object and not has_reward_key(keys):
            keys += _nested_keys(text)
    else:
        return is_json and bool(PATTERNS["pairs_bytes"].match(log.start()))
    is_stepped = any(PATTERNS["step"].fullmatch(key.lower()) for key in keys)
    return has_reward_key(keys) or (is_stepped and has_evaluation_key(keys))


def _nested_keys(text: bytes) -> set[str]:
    """Keys of nested groups in the first rows, joined by slashes as the rows' own are."""
    keys: set[str] = set()
    for line in text.split(b"\n", 20)[:20]:
        with contextlib.suppress(ValueError, RecursionError):
            keys |= flat_row(line).keys()
    return keys


def flat_row(line: bytes) -> dict[str, Any]:
    """Cells of a line of a JSONL file, the names of nested groups joined by slashes."""
    return {key.replace(".", "/"): cell for key, cell in flatten(_lifted(json.loads(line))).items()}


def _lifted(cells: Any) -> Any:
    """Cells of a row with those that verl's file logger keeps one level down."""
    data = cells.get("data") if isinstance(cells, dict) else None
    return (
        {**data, **{k: cells[k] for k in cells if k != "data"}} if isinstance(data, dict) else cells
    )


def read_wide(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the rows of a table."""
    (log,) = logs
    builder = TableBuilder(log.path)
    notes = fill(builder, log)
    if not len(builder):
        raise InputError("the file holds no list of rows", path=log.path, advice=HOW_TO_LIST)
    yield Logged(builder.build(), warnings=tuple(notes))


def fill(builder: TableBuilder, log: LogFile) -> list[str]:
    """Add the rows of a CSV, JSONL or JSON list, and say what of it was lost."""
    notes: list[str] = []
    if log.suffix in parsing.TABLES:
        _fill_from_csv(log, builder, notes)
    else:
        rows = (
            parsing.json_rows(log, notes)
            if _is_lines(log)
            else parsing.json_list(log, None, notes)[0]
        )
        if PATTERNS["pairs_bytes"].match(log.start()):
            notes.append("each pair of numbers was read as [step, reward]")
        first, rows = next(each := iter(rows), None), each
        rows = itertools.chain([] if first is None else [first], rows)
        header = [] if first is None else [*first.cells]
        if (long := long_columns(header)) is not None:
            listed = ((n, [row.get(key, "") for key in header]) for n, row in rows)
            _fill_from_long(builder, listed, header, *long)
            return notes
        for number, cells in rows:
            builder.add(number, _lifted(cells))
    return notes


def _fill_from_csv(log: LogFile, builder: TableBuilder, notes: list[str]) -> None:
    rows = parsing.csv_rows(log, notes)
    row, header = next(rows)
    twice = next((key for key in header if key and header.count(key) > 1), None)
    if twice is not None:
        problem = "two columns have this name"
        raise InputError(problem, path=log.path, row=row, key=twice, advice="Rename one")
    builder.seen(key for key in header if key)
    if (long := long_columns(header)) is not None:
        _fill_from_long(builder, rows, header, *long)
        return
    used = [(i, key) for i, key in enumerate(header) if key]
    for number, cells in rows:
        builder.add(number, {key: cells[i] for i, key in used if i < len(cells)})
    if not len(builder):
        problem, advice = "the table has a header and no rows", "Give a log with rows"
        raise InputError(problem, path=log.path, row=1, advice=advice)


def long_columns(header: Sequence[str]) -> tuple[str, str] | None:
    """Columns of names and of values, in a table with a row for each value."""
    pairs = ((name, value) for name in NAMES["long"] for value in NAMES["long_values"])
    named = {key.lower(): key for key in header}
    found = next(((named[a], named[b]) for a, b in pairs if {a, b} <= named.keys()), None)
    return None if found is None or has_reward_key(header) else found


def _fill_from_long(
    builder: TableBuilder,
    rows: Iterator[tuple[int, list[str]]],
    header: Sequence[str],
    name: str,
    value: str,
) -> None:
    """Add the rows of a table with a row for each value, those of one run and step as one."""
    wide: dict[tuple[str, ...], tuple[int, dict[str, str]]] = {}
    times = {key for key in header if not PATTERNS["time"].search(key.lower())} - {name, value}
    for number, cells in rows:
        cell = dict(zip(header, cells, strict=False))
        place = tuple(cell.get(key, "") for key in times)
        row = wide.setdefault(place, (number, {key: cell.get(key, "") for key in times}))[1]
        row[cell.get(name, "").strip()] = cell.get(value, "")
    for number, row in wide.values():
        builder.add(number, row)


def _is_lines(log: LogFile) -> bool:
    """Whether the text holds an object per line, rather than a list or one object over several."""
    head = log.start()
    if log.suffix in parsing.JSON_LINES:
        return re.match(rb"\[(?!\s*\d)", head) is None  # lines may be pairs of numbers
    if not head.startswith(b"{"):
        return False
    if head.split(b"\n", 1)[0].rstrip().endswith(b"}"):
        return True
    document = parsing.parse_json(log.text(), log.path)
    problem = f"the file is one JSON object, not a list of rows (keys seen: {show_keys(document)})"
    raise InputError(problem, path=log.path, advice=HOW_TO_LIST)


READER = Reader(
    "table with a reward (CSV, JSONL or JSON list)",
    is_wide,
    read_wide,
    suffixes=frozenset((*parsing.TABLES, *parsing.JSON_LINES, ".json")),
    claim=Claim.TABLE,
)

SHORT = read_toml(__file__, "short_names.toml")
OWN_NAMES = (*PartialSettings.model_fields, "model", "task", "parameters")


def is_runs(log: LogFile) -> bool:
    """Whether the first line is an object with a list of rewards."""
    return (
        log.suffix in parsing.JSON_LINES and PATTERNS["line_bytes"].match(log.start()) is not None
    )


def read_runs(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a table."""
    (log,) = logs
    for row in parsing.json_rows(log):
        yield _run(row, log.path, columns)


def _run(row: parsing.Row, path: Path, columns: Columns) -> Logged:
    cells = dict(row.cells)
    for inner in (each for each in row.cells.values() if isinstance(each, dict)):
        cells = {**inner, **cells}
    cells = parsing.unpaired(cells)
    lists = {key: value for key, value in cells.items() if isinstance(value, list)}
    key = reward_key(list(lists), list(lists), COMMON_KEYS, columns, path)
    size = 0 if key is None else len(lists[key])
    known = {name: cells for name, cells in lists.items() if len(cells) == size}
    others = [name for name in lists if name not in known]
    steps = known.setdefault("step", [*range(1, size + 1)])
    builder = TableBuilder(path)
    builder.seen(lists)
    short = row.cells.keys() >= {*SHORT["marks"]}
    tests = SHORT["tests"] if short else ("", "")
    before, after = (parsing.cell_number(row.cells.get(name)) for name in tests)
    if before is not None:
        builder.add(row.number, {"step": 0, "eval_reward": before})
    for values in zip(*known.values(), strict=True):
        builder.add(row.number, dict(zip(known, values, strict=True)))
    if after is not None and size:
        builder.add(row.number, {"step": steps[-1], "eval_reward": after})
    of_short = (*SHORT["names"], "size", *SHORT["tests"]) if short else ()
    ids = {key: row.cells[key] for key in ("id", "name", "run") if row.cells.get(key) is not None}
    understood = {*lists, *OWN_NAMES, *ids, *of_short}
    builder.seen(name for name in row.cells if name not in understood)
    label = next(iter(ids.values()), None)
    return Logged(
        builder.build(),
        label=str(row.number if label is None else label),
        has_own_id=label is not None,
        facts=_facts(row.cells, short),
        warnings=(f"{', '.join(others)}: not one value per reward, and left out",) * bool(others),
    )


def _facts(cells: Mapping[str, Any], short: bool) -> dict[str, Any]:
    stated = {name: cells.get(name) for name in OWN_NAMES}
    if short:
        stated |= {ours: cells.get(name) for name, ours in SHORT["names"].items()}
        if stated["model"] is None and cells.get("size") is not None:
            stated["model"] = f"tiny-{cells['size']}"
    # A list is a series logged under the name of a setting (learning_rate).
    facts = {n: v for n, v in stated.items() if v is not None and not isinstance(v, list)}
    return {**SHORT["facts"], **facts} if short else facts


RUNS = Reader("JSONL with one run per line", is_runs, read_runs, claim=Claim.ROW)
