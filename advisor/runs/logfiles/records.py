"""Records of binary logs: TensorBoard's event files, and W&B's own file of a run.

Both frame messages in protobuf's wire format, of which ``messages.textproto`` declares what is
read. An event file has, of each record, its length (8 bytes), a checksum of these, its bytes and a
checksum of those. W&B's (``run-<id>.wandb``) is a log as LevelDB keeps it: blocks of 32 KiB, in
which records stand whole or in pieces.
"""

from __future__ import annotations

import contextlib
import json
import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import google_crc32c

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile

EVENT_HEADER, FOOTER = 12, 4

MARK = b":W&B"
OPENING, BLOCK, PIECE_HEADER, LONGEST_RECORD = 7, 32768, 7, 4 << 20
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
"""Kinds of pieces of a record of W&B."""

OWN_COUNTER = "_step"  # W&B's key of its own counter of log calls


@cache
def _messages() -> tuple[dict[str, Any], type[Exception]]:
    # Imported where a log needs it: it takes longer than most logs take to read.
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
    from google.protobuf.message import DecodeError

    declared = Path(__file__).with_name("messages.textproto").read_text(encoding="utf-8")
    pool = descriptor_pool.DescriptorPool()
    file = text_format.Parse(declared, descriptor_pb2.FileDescriptorProto())
    pool.Add(file)
    kinds = pool.FindFileByName(file.name).message_types_by_name.items()
    return {name: message_factory.GetMessageClass(kind) for name, kind in kinds}, DecodeError


def masked_crc(data: bytes) -> bytes:
    """CRC32C, rotated and shifted as TFRecord has it."""
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@dataclass
class Cells:
    """Steps and values of one tag, in the order of the file."""

    steps: Any = field(default_factory=lambda: array("q"))
    values: Any = field(default_factory=lambda: array("d"))


class Events:
    """Scalars, texts and hyperparameters of an event file, and when its first was written."""

    def __init__(
        self, log: LogFile, is_text_wanted: Callable[[str], object], warnings: list[str]
    ) -> None:
        self.cells: dict[str, Cells] = {}
        self.texts: dict[str, str] = {}
        self.hparams: dict[str, Any] = {}
        self.started = float("inf")
        self._is_text_wanted = is_text_wanted
        self._by_tag: dict[bytes, Cells] = {}
        messages, malformed = _messages()
        self._parse_hparams = messages["HparamsData"].FromString
        parse, no_events = messages["Event"].FromString, 0
        for record in _event_records(log, warnings):
            try:
                self._take(parse(record))
            except malformed:
                no_events += 1
        if no_events:
            warnings.append(f"{log.name}: {no_events} records are no events and were left out")

    def _take(self, event: Any) -> None:
        if event.HasField("time"):
            self.started = min(self.started, event.time)
        for value in event.summary.values:
            number, tag = _number(value), value.tag
            if number is None or not tag:
                self._take_settings(value)
                continue
            if tag not in self._by_tag:
                self._by_tag[tag] = self.cells.setdefault(_text(tag), Cells())
            self._by_tag[tag].steps.append(event.step)
            self._by_tag[tag].values.append(number)

    def _take_settings(self, given: Any) -> None:
        tag = _text(given.tag)
        if tag.startswith("_hparams_/"):
            data = self._parse_hparams(given.metadata.plugin.content)
            for hparam in data.session_start.hparams:
                values = [value for _, value in hparam.value.ListFields()] or [None]
                if hparam.key:
                    value = _text(values[0]) if isinstance(values[0], bytes) else values[0]
                    self.hparams[_text(hparam.key)] = value
        elif given.tensor.strings and self._is_text_wanted(tag):
            self.texts[tag] = _text(given.tensor.strings[0])


def _event_records(log: LogFile, warnings: list[str]) -> Iterator[bytes]:
    """Records that agree with their checksum; long ones are passed over."""
    at = broken = whole = 0
    with log.open() as stream:
        while header := stream.read(EVENT_HEADER):
            length, is_whole = int.from_bytes(header[:8], "little"), len(header) == EVENT_HEADER
            if is_whole and (length >> 30 or masked_crc(header[:8]) != header[8:]):
                warnings.append(f"{log.name}: from byte {at} on it is damaged and was left out")
                break
            record, footer = stream.read(length if is_whole else 0), stream.read(FOOTER)
            if len(footer) < FOOTER:
                warnings.append(
                    f"{log.name}: the last record, at byte {at}, is cut and was left out (the run "
                    "may still be writing)"
                )
                break
            at += EVENT_HEADER + length + FOOTER
            if masked_crc(record) != footer:
                broken += 1
                continue
            whole += 1
            # Bytes of a record that may hold scalars or settings; images and graphs are longer.
            if length <= 1 << 16:
                yield record
    if not whole:
        problem = "no TensorBoard record from byte 0 on is whole and agrees with its checksum"
        advice = "Copy the file again, or give it once the trainer has logged a step"
        raise InputError(problem, path=log.path, advice=advice)
    if broken:
        warnings.append(f"{log.name}: {broken} records fail their checksum and were left out")


def _number(value: Any) -> float | None:
    """A scalar: a simple value, or the only number of a tensor of floats (1) or doubles (2)."""
    if value.HasField("simple"):
        return float(value.simple)
    tensor = value.tensor
    if tensor.dtype not in (1, 2):
        return None
    kind, numbers = ("<f", [*tensor.floats]) if tensor.dtype == 1 else ("<d", [*tensor.doubles])
    if len(tensor.content) == struct.calcsize(kind):
        numbers += struct.unpack(kind, tensor.content)
    return float(numbers[0]) if len(numbers) == 1 else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def read_store(
    log: LogFile, warnings: list[str], config: dict[str, Any]
) -> Iterator[dict[str, str]]:
    """Rows of a run in W&B's own file; its settings are put into ``config``, later ones last."""
    messages, malformed = _messages()
    broken = 0
    for data in _store_records(log, warnings):
        try:
            record = messages["Record"].FromString(data)
        except malformed:
            broken += 1
            continue
        for names, text in map(_item, (*record.config.updates, *record.run.config.updates)):
            if names and names[0] != "_wandb":  # under which W&B keeps notes to itself
                with contextlib.suppress(ValueError, RecursionError):
                    _put(config, names, json.loads(text))
        cells = {".".join(names): text for names, text in map(_item, record.history.items) if names}
        if record.history.step.HasField("number"):
            cells.setdefault(OWN_COUNTER, str(record.history.step.number))
        scalars = {key: text for key, text in cells.items() if not text.startswith(("{", "["))}
        if scalars:
            yield scalars
    if broken:
        warnings.append(f"{broken} records could not be read and were left out")


def stored_config(log: LogFile) -> dict[str, Any]:
    """Settings of a run in W&B's own file, nested as they were given."""
    config: dict[str, Any] = {}
    with contextlib.suppress(InputError):
        for _ in read_store(log, [], config):
            pass
    return config


def _put(config: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        if not isinstance(config.get(name), dict):
            config[name] = {}
        config = config[name]
    config[names[-1]] = value


def _store_records(log: LogFile, warnings: list[str]) -> Iterator[bytes]:
    with log.open() as stream:
        if not stream.read(OPENING).startswith(MARK):
            problem = "the file does not begin as a W&B run does"
            raise InputError(problem, path=log.path, advice="Copy it again from the run's folder")
        at, pieces, size = OPENING, list[bytes](), 0
        while True:
            left = BLOCK - at % BLOCK
            if left < PIECE_HEADER:
                at += len(stream.read(left))
                continue
            header = stream.read(PIECE_HEADER)
            if len(header) < PIECE_HEADER:
                break
            _, length, kind = struct.unpack("<IHB", header)
            if not kind and not length:  # zeros up to the end of a block, or of the file
                at += PIECE_HEADER + len(stream.read(left - PIECE_HEADER))
                continue
            piece = stream.read(length)
            at += PIECE_HEADER + length
            if kind > LAST or length > left - PIECE_HEADER or len(piece) < length:
                warnings.append(f"the file is broken or cut at byte {at}; what is before counts")
                break
            if kind in (WHOLE, FIRST):
                pieces, size = [], 0
            size += length
            if size <= LONGEST_RECORD:
                pieces.append(piece)
                if kind in (WHOLE, LAST):
                    yield b"".join(pieces)


def _item(item: Any) -> tuple[list[str], str]:
    """Key of an item, nested or not, and its value as JSON text."""
    names = [*item.nested_key] or ([item.key] if item.key else [])
    return [_text(name) for name in names], _text(item.value)
