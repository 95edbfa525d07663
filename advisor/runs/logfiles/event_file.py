"""Records of a TensorBoard event file, each checked by its CRC32C.

A record is its length (8 bytes), a checksum of these, its bytes, and a checksum of those.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from typing import BinaryIO

import google_crc32c
import numpy as np

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.log_file import LogFile

HEADER, FOOTER = 12, 4


def read_records(log: LogFile, warnings: list[str]) -> Iterator[list[bytes]]:
    """Read the records that can be trusted, block by block; long ones are passed over.

    Bytes that fail their own checksum cost one record. Where the checksum of a length fails, the
    next place at which a length and its checksum agree is taken as the next record: by chance they
    agree once in 2^32 places.
    """
    walk = _Walk(log)
    with log.open() as stream:
        for records in walk.run(stream):
            if records:
                yield records
    if not walk.size:
        raise InputError(
            "the event file is empty",
            path=log.path,
            advice="Give the file once the trainer has logged a step",
        )
    if not walk.trusted:
        raise InputError(
            "no TensorBoard record from byte 0 on is whole and agrees with its checksum",
            path=log.path,
            advice="Copy the file again, or give it once the trainer has logged a step",
        )
    warnings += walk.remarks()


class _Walk:
    """The way through one file from record to record."""

    def __init__(self, log: LogFile) -> None:
        self.name = log.name
        self.size = self.trusted = 0
        self.broken = self.losses = 0
        self.first_broken = 0
        self.lost: list[list[int]] = []
        self.tail: int | None = None

    def run(self, stream: BinaryIO) -> Iterator[list[bytes]]:
        rest, base, is_lost = b"", 0, False
        while block := stream.read(limits.BLOCK_BYTES):
            self.size += len(block)
            raw = rest + block
            records, stop, is_lost = self._records(raw, base, is_lost)
            yield records
            if not is_lost and len(raw) >= stop + HEADER:
                missing = HEADER + _length(raw, stop) + FOOTER - (len(raw) - stop)
                if _length(raw, stop) > limits.MOST_EVENT_BYTES:
                    skipped = _skip(stream, missing)
                    self.size += skipped
                    self.trusted += 1
                    if skipped < missing:
                        self.tail = base + stop
                    base, rest = base + len(raw) + skipped, b""
                    continue
            base, rest = base + stop, raw[stop:]
        if is_lost:
            self.lost[-1][1] = self.size
        elif rest:
            self.tail = base

    def _records(self, raw: bytes, base: int, is_lost: bool) -> tuple[list[bytes], int, bool]:
        """Whole records of a block, up to where it was understood, and whether it is lost there."""
        records: list[bytes] = []
        places: list[int] | None = None
        at = 0
        while is_lost or at + HEADER <= len(raw):
            if not is_lost and not header_holds(raw, at):
                self._lose(base + at)
                is_lost = True
            if is_lost:
                places = _headers(raw, at) if places is None else places
                next_one = bisect.bisect_left(places, at)
                if next_one == len(places):
                    return records, max(at, len(raw) - HEADER + 1), True
                at, is_lost = places[next_one], False
                self.lost[-1][1] = base + at
            after = at + HEADER + _length(raw, at) + FOOTER
            if after > len(raw):
                break
            self._check(raw, at, after, base, records)
            at = after
        return records, at, is_lost

    def _lose(self, at: int) -> None:
        self.losses += 1
        del self.lost[limits.MOST_DAMAGED_PLACES_SHOWN :]
        self.lost.append([at, at])

    def _check(self, raw: bytes, at: int, after: int, base: int, records: list[bytes]) -> None:
        """Keep a record that is short enough and whose bytes hold."""
        if after - at - HEADER - FOOTER > limits.MOST_EVENT_BYTES:
            self.trusted += 1
            return
        record = raw[at + HEADER : after - FOOTER]
        if masked_crc(record) == raw[after - FOOTER : after]:
            self.trusted += 1
            records.append(record)
            return
        if not self.broken:
            self.first_broken = base + at
        self.broken += 1

    def remarks(self) -> list[str]:
        said = []
        if self.broken:
            what = "1 record fails its" if self.broken == 1 else f"{self.broken} records fail their"
            were = "was" if self.broken == 1 else "were"
            said.append(
                f"{self.name}: {what} checksum (first at byte {self.first_broken}) and {were} left "
                "out"
            )
        said += [
            f"{self.name}: bytes {start} to {end} are no records and were passed over"
            for start, end in self.lost[: limits.MOST_DAMAGED_PLACES_SHOWN]
        ]
        if self.losses > limits.MOST_DAMAGED_PLACES_SHOWN:
            said.append(
                f"{self.name}: {self.losses - limits.MOST_DAMAGED_PLACES_SHOWN} more such places"
            )
        if self.tail is not None:
            said.append(
                f"{self.name}: the last record, at byte {self.tail}, is cut and was left out (the "
                "run may still be writing)"
            )
        return said


def masked_crc(data: bytes) -> bytes:
    """CRC32C, rotated and shifted as TFRecord has it."""
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def header_holds(raw: bytes, at: int = 0) -> bool:
    """Whether a length and its checksum stand at a place."""
    header = raw[at : at + HEADER]
    return len(header) == HEADER and masked_crc(header[:8]) == header[8:]


def _length(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 8], "little")


def _headers(raw: bytes, at: int) -> list[int]:
    """Places from which a length, above 0 and below 2^32, and its checksum agree."""
    block = np.frombuffer(raw, dtype=np.uint8)[at:]
    count = block.size - HEADER + 1
    if count <= 0:
        return []
    low = np.zeros(count, dtype=np.uint8)
    high = np.zeros(count, dtype=np.uint8)
    for byte in range(4):
        low |= block[byte : byte + count]
        high |= block[byte + 4 : byte + 4 + count]
    places = at + np.flatnonzero((low != 0) & (high == 0))
    return [place for place in places.tolist() if header_holds(raw, place)]


def _skip(stream: BinaryIO, count: int) -> int:
    """Read past bytes; fewer where the file ends."""
    skipped = 0
    while skipped < count and (block := stream.read(min(limits.BLOCK_BYTES, count - skipped))):
        skipped += len(block)
    return skipped
