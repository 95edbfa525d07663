"""Records of binary logs: TensorBoard's event files, and W&B's own file of a run.

Both frame messages in protobuf's wire format. An event file has, of each record, its length (8
bytes), a checksum of these, its bytes and a checksum of those. W&B's (``run-<id>.wandb``) is a log
as LevelDB keeps it: blocks of 32 KiB, in which records stand whole or in pieces.
"""

from __future__ import annotations

import contextlib
import json
import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.pilot_run import IN_NO_RUN

EVENT_HEADER, FOOTER = 12, 4
CHECKED = 256
"""Bytes up to which the checksum of a record is looked at: one of a scalar is shorter, and the sums
of pictures would take longer than all else."""

MARK = b":W&B"
OPENING, BLOCK, PIECE_HEADER, LONGEST_RECORD = 7, 32768, 7, 4 << 20
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4  # Kinds of pieces of a record of W&B

DISPLAY_NAME = "_display_name"  # of the run, as W&B's pages show it
OWN_COUNTER = "_step"  # W&B's key of its own counter of log calls


VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
"""Kinds of fields of a message: a number of as many bytes as it needs, or what their names say."""


class Message:
    """Fields of a message by number and kind, in their order; `ValueError` where it is none."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[Any]] = {}
        at = 0
        while at < len(data):
            key, at = _varint(data, at)
            kind = key & 7
            value: Any = None
            if kind == VARINT:
                value, at = _varint(data, at)
            elif kind in (EIGHT, BYTES, FOUR):
                size, at = _varint(data, at) if kind == BYTES else ({EIGHT: 8, FOUR: 4}[kind], at)
                value, at = data[at : at + size], at + size
            if key < 8 or value is None or at > len(data):
                raise ValueError("no message of protobuf")
            self._fields.setdefault(key, []).append(value)

    def all(self, number: int, kind: int = BYTES) -> list[Any]:
        """Values of a field; empty where it has another kind."""
        return self._fields.get(number << 3 | kind, [])

    def text(self, number: int) -> str:
        """Text of a field, one that is no UTF-8 too; empty without it."""
        return b"".join(self.all(number)[-1:]).decode("utf-8", "replace")

    def within(self, *numbers: int) -> Iterator[Message]:
        """Messages at the end of a path of fields."""
        if not numbers:
            yield self
        for data in self.all(numbers[0]) if numbers else ():
            yield from Message(data).within(*numbers[1:])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Number of seven bits a byte, the lowest first, and where it ends."""
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return value, at + shift + 1
    raise ValueError("no message of protobuf")


def _signed(numbers: list[int]) -> int:
    """The last of some numbers, of 64 bits with their sign; 0 without any."""
    last = numbers[-1] if numbers else 0
    return last - (last >> 63 << 64)


CRC = [reduce(lambda c, _: c >> 1 ^ 0x82F63B78 * (c & 1), range(8), b) for b in range(256)]
"""CRC32C of each byte."""


def masked_crc(data: bytes) -> bytes:
    """CRC32C, rotated and shifted as TFRecord has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
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
        no_events = 0
        for record in _event_records(log, warnings):
            try:
                self._take(Message(record))
            except ValueError:
                no_events += 1
        if no_events:
            warnings.append(f"{log.name}: {no_events} records are no events and were left out")

    def _take(self, event: Message) -> None:
        for time in event.all(1, EIGHT):
            self.started = min(self.started, *struct.unpack("<d", time))
        step = _signed(event.all(2, VARINT))
        for value in [*event.within(5, 1)]:
            number, tag = _number(value), b"".join(value.all(1)[-1:])
            if number is None or not tag:
                self._take_settings(value)
                continue
            if tag not in self._by_tag:
                self._by_tag[tag] = self.cells.setdefault(value.text(1), Cells())
            self._by_tag[tag].steps.append(step)
            self._by_tag[tag].values.append(number)

    def _take_settings(self, given: Message) -> None:
        tag = given.text(1)
        if not tag.startswith("_hparams_/"):
            texts = [text for tensor in given.within(8) for text in tensor.all(8)]
            if texts and self._is_text_wanted(tag):
                self.texts[tag] = texts[0].decode("utf-8", "replace")
            return
        for plugin in given.within(9, 1):
            for hparam in plugin.within(2, 3, 1):
                for value in hparam.within(2):
                    numbers = [struct.unpack("<d", number)[0] for number in value.all(2, EIGHT)]
                    texts = [value.text(3)] if value.all(3) else []
                    switches = [bool(switch) for switch in value.all(4, VARINT)]
                    if hparam.text(1):
                        self.hparams[hparam.text(1)] = next(iter(numbers + texts + switches), None)


def _event_records(log: LogFile, warnings: list[str]) -> Iterator[bytes]:
    """Records that agree with their checksums; long ones are passed over."""
    at = broken = whole = 0
    with log.open() as stream:
        while header := stream.read(EVENT_HEADER):
            length, is_whole = int.from_bytes(header[:8], "little"), len(header) == EVENT_HEADER
            if is_whole and (length >> 30 or masked_crc(header[:8]) != header[8:]):
                warnings.append(f"{log.name} is damaged from byte {at} on: {IN_NO_RUN}")
                break
            record, footer = stream.read(length if is_whole else 0), stream.read(FOOTER)
            if len(footer) < FOOTER:
                where = f"{log.name} (the run may still be writing)"
                warnings.append(f"the last record of {where}, at byte {at}, is cut: {IN_NO_RUN}")
                break
            at += EVENT_HEADER + length + FOOTER
            if length <= CHECKED and masked_crc(record) != footer:
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


def _number(value: Message) -> float | None:
    """A scalar: a simple value, or the only number of a tensor of floats (1) or doubles (2)."""
    for simple in reversed(value.all(2, FOUR)):
        return float(struct.unpack("<f", simple)[0])
    for tensor in value.within(8):
        dtype = _signed(tensor.all(1, VARINT))
        if dtype in (1, 2):
            form, kind = ("<f", FOUR) if dtype == 1 else ("<d", EIGHT)
            # As bytes of the tensor, or as a list of numbers, one by one or packed.
            found = b"".join([*tensor.all(4), *tensor.all(4 + dtype), *tensor.all(4 + dtype, kind)])
            return struct.unpack(form, found)[0] if len(found) == struct.calcsize(form) else None
    return None


def read_store(
    log: LogFile, warnings: list[str], config: dict[str, Any]
) -> Iterator[dict[str, str]]:
    """Rows of a run in W&B's own file; its settings are put into ``config``, later ones last."""
    broken = 0
    for data in _store_records(log, warnings):
        try:
            record = Message(data)
            settings = [*record.within(5, 1), *record.within(17, 4, 1)]
            items = [_item(item) for item in record.within(2, 1)]
            called = [one.text(8) for one in record.within(17) if one.text(8)]
            steps = [step for each in record.within(2, 2) for step in each.all(1, VARINT)]
        except ValueError:
            broken += 1
            continue
        for name in called:
            config[DISPLAY_NAME] = name
        for names, text in map(_item, settings):
            if names and names[0] != "_wandb":  # under which W&B keeps notes to itself
                with contextlib.suppress(ValueError, RecursionError):
                    _put(config, names, json.loads(text))
        cells = {".".join(names): text for names, text in items if names}
        if steps:
            cells.setdefault(OWN_COUNTER, str(_signed(steps)))
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
    config.pop(DISPLAY_NAME, None)
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


def _item(item: Message) -> tuple[list[str], str]:
    """Key of an item, nested or not, and its value as JSON text."""
    nested = [name.decode("utf-8", "replace") for name in item.all(2)]
    return nested or [name for name in [item.text(1)] if name], item.text(16)
