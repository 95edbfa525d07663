"""Records of W&B's own file of a run (``run-<id>.wandb``): rows of its history, and its config.

The file is a log as LevelDB keeps it: blocks of 32 KiB, in which records stand whole or in pieces.
Each record is a message in protobuf's wire format.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.messages import MalformedError, parse

MARK = b":W&B"
OPENING = 7
"""Bytes of the mark, a magic number and a version."""

BLOCK = 32768
HEADER = 7
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
"""Kinds of pieces of a record."""

OWN_COUNTER = "_step"
OF_WANDB = "_wandb"
"""Key of the config under which W&B keeps notes to itself."""


class Stored(NamedTuple):
    """What one record holds: cells of a row of the history, or settings by the path to them."""

    cells: dict[str, str]
    settings: list[tuple[list[str], Any]]


def is_store(head: bytes) -> bool:
    """Whether a file begins as W&B's own."""
    return head.startswith(MARK)


def read_store(log: LogFile, warnings: list[str]) -> Iterator[Stored]:
    """Read the rows and settings of a run."""
    broken = 0
    for record in _records(log, warnings):
        try:
            stored = _parse(record)
        except MalformedError:
            broken += 1
            continue
        if stored.cells or stored.settings:
            yield stored
    if broken:
        warnings.append(f"{broken} records could not be read and were left out")


def stored_config(log: LogFile) -> dict[str, Any]:
    """Settings of a run, nested as they were given; empty where the file does not tell them."""
    config: dict[str, Any] = {}
    try:
        for stored in read_store(log, []):
            put_settings(config, stored)
    except InputError:
        return {}
    return config


def put_settings(config: dict[str, Any], stored: Stored) -> None:
    """Put the settings of a record into a config; later ones count."""
    for names, value in stored.settings:
        level = config
        for name in names[:-1]:
            if not isinstance(level.get(name), dict):
                level[name] = {}
            level = level[name]
        level[names[-1]] = value


def _records(log: LogFile, warnings: list[str]) -> Iterator[bytes]:
    with log.open() as stream:
        if not is_store(stream.read(OPENING)):
            raise InputError(
                "the file does not begin as a W&B run does",
                path=log.path,
                advice="Copy it again from the run's folder",
            )
        at, size = OPENING, 0
        pieces: list[bytes] = []
        while True:
            left = BLOCK - at % BLOCK
            if left < HEADER:
                at += len(stream.read(left))
                continue
            header = stream.read(HEADER)
            if len(header) < HEADER:
                break
            _, length, kind = struct.unpack("<IHB", header)
            if not kind and not length:  # zeros up to the end of a block, or of the file
                at += HEADER + len(stream.read(left - HEADER))
                continue
            piece = stream.read(length)
            at += HEADER + length
            if kind > LAST or length > left - HEADER or len(piece) < length:
                warnings.append(f"the file is broken or cut at byte {at}; what is before counts")
                break
            if kind in (WHOLE, FIRST):
                pieces, size = [], 0
            size += length
            if size <= (4 << 20):
                pieces.append(piece)
            if kind in (WHOLE, LAST) and size <= (4 << 20):
                yield b"".join(pieces)


def _parse(data: bytes) -> Stored:
    record = parse("Record", data)
    cells: dict[str, str] = {}
    for item in record.history.items:
        names, value = _item(item)
        if names:
            cells[".".join(names)] = value
    if record.history.step.HasField("number"):
        cells.setdefault(OWN_COUNTER, str(record.history.step.number))
    scalars = {key: value for key, value in cells.items() if not value.startswith(("{", "["))}
    settings: list[tuple[list[str], Any]] = []
    for item in (*record.config.updates, *record.run.config.updates):
        names, text = _item(item)
        if names and names[0] != OF_WANDB:
            with contextlib.suppress(ValueError, RecursionError):
                settings.append((names, json.loads(text)))
    return Stored(scalars, settings)


def _item(item: Any) -> tuple[list[str], str]:
    """Key of an item, nested or not, and its value as JSON text."""
    names = [*item.nested_key] or ([item.key] if item.key else [])
    value = item.value.decode("utf-8", "replace")
    return [name.decode("utf-8", "replace") for name in names], value
