"""Rows of any trainer as CSV, JSONL or a JSON list, read by common names or a column map."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.columns import Columns
from advisor.runs.files import Row, csv_rows, json_lines, parse_json, read_text
from advisor.runs.keys import has_reward_key, show_keys
from advisor.runs.raw_run import RawRun
from advisor.runs.rows import collect_run

DELIMITED = frozenset({".csv", ".tsv"})
SUFFIXES = DELIMITED | {".json", ".jsonl", ".ndjson"}

SCALAR_KEY = re.compile(rb'"([^"\n]{1,80})"\s*:\s*["\d.\-NIn]')
"""A key of a JSON object followed by a number, a quoted one or null."""


def claims(path: Path, head: bytes) -> bool:
    """Whether a table's header, or a row among its first, has a known name of the train reward."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if path.suffix in DELIMITED:
        lines = text.decode("utf-8", "replace").splitlines()
        return bool(lines) and has_reward_key(
            cell.strip().strip('"') for cell in re.split(r"[,;\t]", lines[0])
        )
    if path.suffix in SUFFIXES and (
        re.match(rb"\[\s*\{", text) or (path.suffix != ".json" and text[:1] == b"{")
    ):
        return has_reward_key(key.decode("utf-8", "replace") for key in SCALAR_KEY.findall(text))
    return False


def read(path: Path, columns: Columns, known: Mapping[str, Any]) -> list[RawRun]:
    """Read the one run of a table.

    Parameters
    ----------
    path : Path
        CSV (comma, semicolon or tab), JSONL, or a JSON list of objects.
    columns : Columns
        Column map; what it leaves open is found by the common names.
    known : mapping
        What flags and sidecar say of the run.

    Returns
    -------
    runs : list of RawRun

    Raises
    ------
    InputError
        The file is no table, or holds no reward.
    """
    text = read_text(path)
    cut = False
    if path.suffix in DELIMITED:
        rows, cut = csv_rows(text, path)
    elif text.lstrip()[0] == "{" and _is_lines(text, path.suffix):
        rows, cut = _lines(text, path)
    else:
        rows = _objects(parse_json(text, path), path)
    run = collect_run(rows, path, columns, known)
    if cut:
        warning = "the last line is cut and was left out"
        run = dataclasses.replace(run, warnings=(*run.warnings, warning))
    return [run]


def _is_lines(text: str, suffix: str) -> bool:
    """Whether the text holds an object per line, rather than one object over several."""
    return suffix != ".json" or text.split("\n", 1)[0].rstrip().endswith("}")


def _lines(text: str, path: Path) -> tuple[list[Row], bool]:
    """Rows, and whether the last line was still being written when the file was copied."""
    whole, newline, last = text.rstrip(" \t").rpartition("\n")
    if whole.strip() and newline and last:
        try:
            parse_json(last, path)
        except InputError:
            return list(json_lines(whole, path)), True
    return list(json_lines(text, path)), False


def _objects(document: Any, path: Path) -> list[Row]:
    if isinstance(document, dict):
        raise InputError(
            f"the file is one JSON object, not a list of rows (keys seen: {show_keys(document)})",
            path=path,
            advice="Give a list [{...}, {...}], or one object per line in a .jsonl file",
        )
    if not isinstance(document, list) or not document:
        raise InputError(
            "the file holds no list of rows",
            path=path,
            advice="Give a list [{...}, {...}], or one object per line in a .jsonl file",
        )
    for number, cells in enumerate(document, start=1):
        if not isinstance(cells, dict):
            raise InputError(
                f"the entry is a {type(cells).__name__}, not an object",
                path=path,
                row=number,
                advice="Give a list of objects, one per logged row",
            )
    return [Row(number, cells) for number, cells in enumerate(document, start=1)]
