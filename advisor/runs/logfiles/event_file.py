"""TensorBoard event files: records with a checksum each, and the tagged values that they hold.

A record is its length (8 bytes), a checksum of these, its bytes, and a checksum of those.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import google_crc32c

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.messages import MalformedError, parse

HEADER, FOOTER = 12, 4

LONGEST = 1 << 16
"""Bytes of a record that may hold scalars or settings; images and graphs are longer."""

NUMBERS = {1: "<f", 2: "<d"}
"""TensorFlow's types of tensors that hold real numbers, by how one is stored."""


def read_records(log: LogFile, warnings: list[str]) -> Iterator[bytes]:
    """Records that agree with their checksum; long ones are passed over."""
    at = broken = whole = 0
    with log.open() as stream:
        while header := stream.read(HEADER):
            length = int.from_bytes(header[:8], "little")
            if len(header) == HEADER and (length >> 30 or not header_holds(header)):
                warnings.append(f"{log.name}: from byte {at} on it is damaged and was left out")
                break
            is_whole = len(header) == HEADER
            record, footer = stream.read(length if is_whole else 0), stream.read(FOOTER)
            if len(footer) < FOOTER:
                warnings.append(
                    f"{log.name}: the last record, at byte {at}, is cut and was left out (the run "
                    "may still be writing)"
                )
                break
            at += HEADER + length + FOOTER
            if masked_crc(record) != footer:
                broken += 1
                continue
            whole += 1
            if length <= LONGEST:
                yield record
    if not whole:
        raise InputError(
            "no TensorBoard record from byte 0 on is whole and agrees with its checksum",
            path=log.path,
            advice="Copy the file again, or give it once the trainer has logged a step",
        )
    if broken:
        warnings.append(f"{log.name}: {broken} records fail their checksum and were left out")


def masked_crc(data: bytes) -> bytes:
    """CRC32C, rotated and shifted as TFRecord has it."""
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def header_holds(raw: bytes) -> bool:
    """Whether bytes begin with a length and its checksum."""
    return len(raw) >= HEADER and masked_crc(raw[:8]) == raw[8:HEADER]


@dataclass
class Cells:
    """Steps and values of one tag, in the order of the file."""

    steps: Any = field(default_factory=lambda: array("q"))
    values: Any = field(default_factory=lambda: array("d"))


@dataclass
class Tags:
    """Scalars, texts and hyperparameters of one file, and when its first record was written."""

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
        tag = _text(value.tag)
        if tag.startswith("_hparams_/"):
            data = parse("HparamsData", value.metadata.plugin.content)
            for hparam in data.session_start.hparams:
                if hparam.key:
                    self.hparams[_text(hparam.key)] = _any(hparam.value)
        elif value.tensor.strings and self.is_text_wanted(tag):
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
    if len(tensor.content) == struct.calcsize(kind):
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
