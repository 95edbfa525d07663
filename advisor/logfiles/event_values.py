"""Scalars, texts and hyperparameters in the records of a TensorBoard event file.

A record is one ``Event`` in protobuf's wire format: its step, and a summary of tagged values. A
trainer writes the same few layouts over and over, so a record is parsed once, and all records of
its block that differ from it in nothing but time, step and values are read side by side.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from advisor.logfiles import limits
from advisor.logfiles.crc import Bytes, Places
from advisor.logfiles.event_file import Records
from advisor.logfiles.event_message import (
    SIZES,
    Event,
    MalformedError,
    first_string,
    parse_event,
    session_hparams,
)
from advisor.theory.arrays import FloatArray


@dataclass
class Cells:
    """Steps and values of one tag, in the order of the file."""

    steps: Any = field(default_factory=lambda: array("q"))
    values: Any = field(default_factory=lambda: array("d"))


@dataclass
class Tags:
    """What the records of one file hold.

    Attributes
    ----------
    cells : dict of str to Cells
        By tag; empty for tags that are not wanted.
    texts : dict of str to str
        Latest text of each tag that `is_text_wanted`.
    hparams : dict of str to object
        Hyperparameters of the ``hparams`` plugin.
    malformed : int
        Records that are no events although their checksum holds.
    started : float
        Time of the first record that has one.
    """

    wanted: Callable[[str], bool]
    is_text_wanted: Callable[[str], bool]
    cells: dict[str, Cells] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    hparams: dict[str, Any] = field(default_factory=dict)
    malformed: int = 0
    started: float = float("inf")

    def add(self, records: Records) -> None:
        """Read the records of one block."""
        raw = records.raw
        lengths, group = np.unique(records.lengths, return_inverse=True)
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(lengths.size + 1))
        for at, length in enumerate(lengths.tolist()):
            starts = records.starts[order[bounds[at] : bounds[at + 1]]]
            self._add_equally_long(raw, starts, length)

    def _add_equally_long(self, raw: Bytes, starts: Places, length: int) -> None:
        for _ in range(limits.MOST_EVENT_LAYOUTS):
            if not starts.size:
                return
            record = raw[starts[0] : starts[0] + length].tobytes()
            event = self._parsed(record)
            if event is None or event.others or starts.size == 1:
                self._take(record, event)
                starts = starts[1:]
                continue
            rows = np.lib.stride_tricks.sliding_window_view(raw, length)[starts]
            free = _free_bits(event, length)
            alike = (((rows ^ rows[0]) & ~free) == 0).all(axis=1)
            self._take_alike(rows[alike], event)
            starts = starts[~alike]
        for start in starts.tolist():
            record = raw[start : start + length].tobytes()
            self._take(record, self._parsed(record))

    def _parsed(self, record: bytes) -> Event | None:
        try:
            return parse_event(record)
        except MalformedError:
            self.malformed += 1
            return None

    def _take_alike(self, rows: Bytes, event: Event) -> None:
        """Take all records of one layout."""
        steps = np.zeros(len(rows), dtype=np.uint64)
        for place in range(event.step_size):
            low = (rows[:, event.step_at + place] & 0x7F).astype(np.uint64)
            steps |= low << np.uint64(7 * place)
        if event.time_at is not None:
            times = _numbers(rows, event.time_at, "<d")
            self.started = min(self.started, float(times[0]))
        for tag, at, kind in event.scalars:
            cells = self._cells(tag)
            if cells is not None:
                cells.steps.frombytes(steps.astype(np.int64).tobytes())
                cells.values.frombytes(_numbers(rows, at, kind).tobytes())

    def _take(self, record: bytes, event: Event | None) -> None:
        """Take one record."""
        if event is None:
            return
        if event.time_at is not None:
            self.started = min(self.started, struct.unpack_from("<d", record, event.time_at)[0])
        for tag, at, kind in event.scalars:
            cells = self._cells(tag)
            if cells is not None:
                cells.steps.append(event.step)
                cells.values.append(struct.unpack_from(kind, record, at)[0])
        for tag, start, end in event.others:
            try:
                self._take_other(record, tag, start, end)
            except MalformedError:
                self.malformed += 1

    def _cells(self, tag: str) -> Cells | None:
        if tag not in self.cells:
            self.cells[tag] = Cells()
        return self.cells[tag] if self.wanted(tag) else None

    def _take_other(self, record: bytes, tag: str, start: int, end: int) -> None:
        """Take the settings among values that are no scalars."""
        if tag.startswith("_hparams_/"):
            self.hparams |= session_hparams(record, start, end)
        elif self.is_text_wanted(tag) and (
            tag in self.texts or len(self.texts) < limits.MOST_EVENT_TEXTS
        ):
            text = first_string(record, start, end)
            if text is not None:
                self.texts[tag] = text


def _free_bits(event: Event, length: int) -> Bytes:
    """Bits of a record that may differ within one layout: time, values, digits of the step."""
    free = np.zeros(length, dtype=np.uint8)
    if event.time_at is not None:
        free[event.time_at : event.time_at + 8] = 0xFF
    free[event.step_at : event.step_at + event.step_size] = 0x7F
    for scalar in event.scalars:
        free[scalar.at : scalar.at + SIZES[scalar.kind]] = 0xFF
    return free


def _numbers(rows: Bytes, at: int, kind: str) -> FloatArray:
    found = np.ascontiguousarray(rows[:, at : at + SIZES[kind]]).view(kind).ravel()
    with np.errstate(invalid="ignore"):  # some of the many bit patterns of NaN raise the flag
        return found.astype(np.float64)
