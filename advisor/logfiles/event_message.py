"""One record of a TensorBoard event file: an ``Event`` in protobuf's wire format."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

VARINT, DOUBLE, LENGTH, FLOAT = 0, 1, 2, 5
"""Wire types of protobuf."""

EVENT_TIME, EVENT_STEP, EVENT_SUMMARY = 1, 2, 5
SUMMARY_VALUE = 1
VALUE_TAG, VALUE_SIMPLE, VALUE_TENSOR, VALUE_METADATA = 1, 2, 8, 9
TENSOR_DTYPE, TENSOR_CONTENT, TENSOR_FLOAT, TENSOR_DOUBLE, TENSOR_STRING = 1, 4, 5, 6, 8
METADATA_PLUGIN = 1
PLUGIN_NAME, PLUGIN_CONTENT = 1, 2
PLUGIN_SESSION_START = 3
SESSION_HPARAMS = 1
MAP_KEY, MAP_VALUE = 1, 2
ANY_NUMBER, ANY_STRING, ANY_BOOL = 2, 3, 4
DTYPE_FLOAT, DTYPE_DOUBLE = 1, 2
"""Field numbers of TensorBoard's and TensorFlow's ``.proto`` files."""

SIZES = {"<f": 4, "<d": 8}
"""Bytes of the two kinds of numbers, by their names in both struct and numpy."""


class MalformedError(ValueError):
    """Bytes that are no message in protobuf's wire format."""


class Scalar(NamedTuple):
    """Tag of a scalar, where its bytes begin in the record, and how they are read."""

    tag: str
    at: int
    kind: str


class Event(NamedTuple):
    """One record, parsed: where its parts stand."""

    time_at: int | None
    step_at: int
    step_size: int
    step: int
    scalars: tuple[Scalar, ...]
    others: tuple[tuple[str, int, int], ...]


class Field(NamedTuple):
    """One field of a message; a varint's value stands in ``value``, else its bytes in the span."""

    number: int
    wire: int
    start: int
    end: int
    value: int


def parse_event(record: bytes) -> Event:
    """Parse one record.

    Raises
    ------
    MalformedError
        The bytes are no event.
    """
    time_at, step_at, step_size, step = None, 0, 0, 0
    scalars: list[Scalar] = []
    others: list[tuple[str, int, int]] = []
    for part in fields(record, 0, len(record)):
        if part.number == EVENT_TIME and part.wire == DOUBLE:
            time_at = part.start
        elif part.number == EVENT_STEP and part.wire == VARINT:
            step_at, step_size = part.start, part.end - part.start
            step = part.value - (1 << 64) if part.value >> 63 else part.value
        elif part.number == EVENT_SUMMARY and part.wire == LENGTH:
            for value in fields(record, part.start, part.end):
                if value.number == SUMMARY_VALUE and value.wire == LENGTH:
                    tag, scalar = _parse_value(record, value.start, value.end)
                    if scalar is None:
                        others.append((tag, value.start, value.end))
                    else:
                        scalars.append(scalar)
    return Event(time_at, step_at, step_size, step, tuple(scalars), tuple(others))


def _parse_value(record: bytes, start: int, end: int) -> tuple[str, Scalar | None]:
    tag, found = "", None
    for part in fields(record, start, end):
        if part.number == VALUE_TAG and part.wire == LENGTH:
            tag = record[part.start : part.end].decode("utf-8", "replace")
        elif part.number == VALUE_SIMPLE and part.wire == FLOAT:
            found = (part.start, "<f")
        elif part.number == VALUE_TENSOR and part.wire == LENGTH:
            found = _tensor_number(record, part.start, part.end)
    return tag, None if found is None or not tag else Scalar(tag, *found)


def _tensor_number(record: bytes, start: int, end: int) -> tuple[int, str] | None:
    """Place and kind of the only number of a tensor; None where it holds none, or more."""
    dtype, spans = 0, []
    for part in fields(record, start, end):
        if part.number == TENSOR_DTYPE and part.wire == VARINT:
            dtype = part.value
        elif part.number in (TENSOR_CONTENT, TENSOR_FLOAT, TENSOR_DOUBLE) and part.end > part.start:
            spans.append((part.number, part.start, part.end - part.start))
    if len(spans) != 1 or dtype not in (DTYPE_FLOAT, DTYPE_DOUBLE):
        return None
    number, at, size = spans[0]
    own = TENSOR_FLOAT if dtype == DTYPE_FLOAT else TENSOR_DOUBLE
    kind = "<f" if dtype == DTYPE_FLOAT else "<d"
    return (at, kind) if number in (own, TENSOR_CONTENT) and size == SIZES[kind] else None


def first_string(record: bytes, start: int, end: int) -> str | None:
    """First text of a value's tensor."""
    for part in fields(record, start, end):
        if part.number == VALUE_TENSOR and part.wire == LENGTH:
            for inner in fields(record, part.start, part.end):
                if inner.number == TENSOR_STRING and inner.wire == LENGTH:
                    return record[inner.start : inner.end].decode("utf-8", "replace")
    return None


def session_hparams(record: bytes, start: int, end: int) -> dict[str, Any]:
    """Hyperparameters in the metadata of a value of the ``hparams`` plugin."""
    path = (VALUE_METADATA, METADATA_PLUGIN, PLUGIN_CONTENT, PLUGIN_SESSION_START, SESSION_HPARAMS)
    found: dict[str, Any] = {}
    for at, stop in _descend(record, start, end, path):
        key, value = "", None
        for part in fields(record, at, stop):
            if part.number == MAP_KEY and part.wire == LENGTH:
                key = record[part.start : part.end].decode("utf-8", "replace")
            elif part.number == MAP_VALUE and part.wire == LENGTH:
                value = _any_value(record, part.start, part.end)
        if key:
            found[key] = value
    return found


def _descend(
    record: bytes, start: int, end: int, path: tuple[int, ...]
) -> Iterator[tuple[int, int]]:
    """Spans of all messages that lie along a path of field numbers."""
    if not path:
        yield start, end
        return
    for part in fields(record, start, end):
        if part.number == path[0] and part.wire == LENGTH:
            yield from _descend(record, part.start, part.end, path[1:])


def _any_value(record: bytes, start: int, end: int) -> float | str | bool | None:
    for part in fields(record, start, end):
        if part.number == ANY_NUMBER and part.wire == DOUBLE:
            return float(struct.unpack_from("<d", record, part.start)[0])
        if part.number == ANY_STRING and part.wire == LENGTH:
            return record[part.start : part.end].decode("utf-8", "replace")
        if part.number == ANY_BOOL and part.wire == VARINT:
            return bool(part.value)
    return None


def fields(record: bytes, at: int, end: int) -> Iterator[Field]:
    """Fields of the message between two places.

    Raises
    ------
    MalformedError
        A field runs past the end, or has a wire type that is no longer in use.
    """
    while at < end:
        key, at = _varint(record, at, end)
        wire = key & 7
        start, value = at, 0
        if wire == VARINT:
            value, at = _varint(record, at, end)
        elif wire == LENGTH:
            size, start = _varint(record, at, end)
            at = start + size
        elif wire in (DOUBLE, FLOAT):
            at += 8 if wire == DOUBLE else 4
        else:
            raise MalformedError(f"wire type {wire}")
        if at > end:
            raise MalformedError("a field runs past the end")
        yield Field(key >> 3, wire, start, at, value)


def _varint(record: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = record[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise MalformedError("a number runs past the end")
