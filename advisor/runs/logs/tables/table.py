"""Rows of any trainer as CSV, JSONL or a JSON list, read by known names or a column map."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.parsing import fill_from_csv, json_list, json_rows, parse_json
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key, kept_keys, show_keys

DELIMITED = frozenset({".csv", ".tsv"})
LINES = frozenset({".jsonl", ".ndjson"})
SUFFIXES = DELIMITED | LINES | {".json"}

SCALAR_KEY = re.compile(rb'"([^"\n]{1,120})"\s*:\s*["\d.\-NIn]')
"""A key of a JSON object followed by a number, a quoted one or null."""

OBJECT = re.compile(rb"\s*(?:\[\s*)?\{")
STEP = re.compile(r"(?:.*[/_])?(?:step|steps|checkpoint|iteration|epoch)")


def claims(log: LogFile) -> bool:
    """Whether a table's header, or a row among its first, has a known name of a reward."""
    if log.suffix not in SUFFIXES:
        return False
    text = log.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")
    if log.suffix in DELIMITED:
        lines = text.decode("utf-8", "replace").splitlines()
        header = re.split(r"[,;\t]", lines[0]) if lines else []
        keys = [cell.strip().strip('"') for cell in header]
    elif OBJECT.match(text) and (log.suffix != ".json" or text[:1] == b"["):
        found = dict.fromkeys(SCALAR_KEY.findall(text))
        keys = [key.decode("utf-8", "replace") for key in found]
    else:
        return False
    return has_reward_key(keys) or (
        has_evaluation_key(keys) and any(STEP.fullmatch(key.lower()) for key in keys)
    )


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the rows of a table."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    warnings: list[str] = []
    if log.suffix in DELIMITED:
        fill_from_csv(log, builder, warnings)
    elif _is_lines(log):
        for number, cells in json_rows(log, warnings):
            builder.add(number, cells)
    else:
        rows, _ = json_list(log, None)
        for number, cells in rows:
            builder.add(number, cells)
    if not len(builder):
        raise InputError(
            "the file holds no list of rows",
            path=log.path,
            advice="Give a list [{...}, {...}], or one object per line in a .jsonl file",
        )
    yield Logged(builder.build(), warnings=tuple(warnings))


def _is_lines(log: LogFile) -> bool:
    """Whether the text holds an object per line, rather than a list or one object over several."""
    head = log.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")
    if log.suffix in LINES:
        return not head.startswith(b"[")
    if head.startswith(b"{") and head.split(b"\n", 1)[0].rstrip().endswith(b"}"):
        return True
    if head.startswith(b"{"):
        document = parse_json(log.text(), log.path)
        raise InputError(
            f"the file is one JSON object, not a list of rows (keys seen: {show_keys(document)})",
            path=log.path,
            advice="Give a list [{...}, {...}], or one object per line in a .jsonl file",
        )
    return False


READER = Reader(
    "table with a reward (CSV, JSONL or JSON list)",
    claims,
    read,
    suffixes=SUFFIXES,
    claim=Claim.TABLE,
)
