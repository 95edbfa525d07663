"""Scalars, texts and hyperparameters in the records of a TensorBoard event file.

A record is one ``Event``: its step, and a summary of tagged values.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from advisor.runs.logfiles import limits
from advisor.runs.logfiles.messages import MalformedError, parse

NUMBERS = {1: "<f", 2: "<d"}
"""TensorFlow's types of tensors that hold real numbers, by how one is stored."""


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
    _kept: dict[bytes, Cells | None] = field(default_factory=dict)

    def add(self, records: Iterable[bytes]) -> None:
        """Read some records."""
        for record in records:
            try:
                self._take(parse("Event", record))
            except MalformedError:
                self.malformed += 1

    def _take(self, event: Any) -> None:
        if event.HasField("time"):
            self.started = min(self.started, event.time)
        step = event.step
        for value in event.summary.values:
            number = _number(value)
            if number is None or not value.tag:
                self._take_settings(value)
                continue
            tag = value.tag
            cells = self._kept[tag] if tag in self._kept else self._new_cells(tag)
            if cells is not None:
                cells.steps.append(step)
                cells.values.append(number)

    def _new_cells(self, raw_tag: bytes) -> Cells | None:
        tag = _text(raw_tag)
        cells = self.cells.setdefault(tag, Cells())
        self._kept[raw_tag] = cells if self.wanted(tag) else None
        return self._kept[raw_tag]

    def _take_settings(self, value: Any) -> None:
        """Take the settings among values that are no scalars."""
        tag = _text(value.tag)
        if tag.startswith("_hparams_/"):
            data = parse("HparamsData", value.metadata.plugin.content)
            for hparam in data.session_start.hparams:
                if hparam.key:
                    self.hparams[_text(hparam.key)] = _any(hparam.value)
            return
        has_room = tag in self.texts or len(self.texts) < limits.MOST_EVENT_TEXTS
        if has_room and value.tensor.strings and self.is_text_wanted(tag):
            self.texts[tag] = _text(value.tensor.strings[0])


def _number(value: Any) -> float | None:
    """A scalar: a simple value, or the only number of a tensor."""
    if value.HasField("simple"):
        return float(value.simple)
    tensor = value.tensor
    kind = NUMBERS.get(tensor.dtype)
    if kind is None:
        return None
    numbers = [*(tensor.floats if kind == "<f" else tensor.doubles)]
    if tensor.content:
        if len(tensor.content) != struct.calcsize(kind):
            return None
        numbers += struct.unpack(kind, tensor.content)
    return float(numbers[0]) if len(numbers) == 1 else None


def _any(value: Any) -> float | str | bool | None:
    if value.HasField("number"):
        return float(value.number)
    if value.HasField("string"):
        return _text(value.string)
    return bool(value.switch) if value.HasField("switch") else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
