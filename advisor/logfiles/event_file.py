"""Records of a TensorBoard event file, each checked by its CRC32C.

A record is its length (8 bytes), a checksum of these, its bytes, and a checksum of those. Bytes
are handled a block at a time: only the walk from record to record is a Python loop.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.crc import Bytes, Places, masked_crc
from advisor.logfiles.log_file import LogFile

HEADER, FOOTER = 12, 4


class Records(NamedTuple):
    """Records of one block whose checksums hold.

    Attributes
    ----------
    raw : ndarray of shape (bytes,)
        The block.
    starts, lengths : ndarray of shape (records,)
        Where the bytes of each record stand in it.
    """

    raw: Bytes
    starts: Places
    lengths: Places


def read_records(log: LogFile, warnings: list[str]) -> Iterator[Records]:
    """Read the records that can be trusted; ones above `limits.MOST_EVENT_BYTES` are passed over.

    Parameters
    ----------
    log : LogFile
    warnings : list of str
        Takes what was left out, with the byte at which it begins; complete at the end.

    Raises
    ------
    InputError
        The file is empty, or holds no record at all.

    Notes
    -----
    Bytes that fail their own checksum cost one record. Where the checksum of a length fails, the
    next place at which a length and its checksum agree is taken as the next record: by chance
    they agree once in 2^32 places.
    """
    walk = _Walk(log)
    with log.open() as stream:
        for records in walk.run(stream):
            if records.starts.size:
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

    def run(self, stream: BinaryIO) -> Iterator[Records]:
        rest, base, is_lost = b"", 0, False
        while block := stream.read(limits.BLOCK_BYTES):
            self.size += len(block)
            raw = rest + block
            heads, stop = ([], 0) if is_lost else _chain(raw)
            hold = _headers_hold(raw, [*heads, stop])
            if is_lost or not all(hold):
                good = 0 if is_lost else hold.index(False)
                stop = [*heads, stop][good]
                found, stop, is_lost = self._search(raw, stop, base, is_lost)
                heads = heads[:good] + found
            yield self._checked(raw, heads, base)
            if not is_lost and len(raw) >= stop + HEADER:
                (length,) = struct.unpack_from("<Q", raw, stop)
                missing = HEADER + length + FOOTER - (len(raw) - stop)
                if length > limits.MOST_EVENT_BYTES:
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

    def _search(self, raw: bytes, at: int, base: int, is_lost: bool) -> tuple[list[int], int, bool]:
        """Find records behind a place where none begins.

        Returns
        -------
        heads, stop : list of int, int
            Where whole records begin, and up to where the block was understood.
        is_lost : bool
            Whether the way is still lost there.
        """
        places = _headers(raw, at)
        known = set(places)
        heads: list[int] = []
        unpack = struct.Struct("<Q").unpack_from
        while True:
            if not is_lost:
                self._lose(base + at)
            next_one = bisect.bisect_left(places, at)
            if next_one == len(places):
                return heads, max(at, len(raw) - HEADER + 1), True
            at, is_lost = places[next_one], False
            self.lost[-1][1] = base + at
            while at in known:
                after = at + HEADER + unpack(raw, at)[0] + FOOTER
                if after > len(raw):
                    return heads, at, False
                heads.append(at)
                at = after
            if at + HEADER > len(raw):
                return heads, at, False

    def _lose(self, at: int) -> None:
        self.losses += 1
        del self.lost[limits.MOST_DAMAGED_PLACES_SHOWN :]
        self.lost.append([at, at])

    def _checked(self, raw: bytes, heads: list[int], base: int) -> Records:
        """Of whole records those that are short enough and whose bytes hold."""
        block = np.frombuffer(raw, dtype=np.uint8)
        at = np.array(heads, dtype=np.int64)
        lengths = _words(block, at, "<u8").astype(np.int64)
        self.trusted += at.size
        short = lengths <= limits.MOST_EVENT_BYTES
        at, lengths = at[short], lengths[short]
        starts = at + HEADER
        holds = masked_crc(block, starts, lengths) == _words(block, starts + lengths, "<u4")
        broken = at[~holds] + base
        if broken.size and not self.broken:
            self.first_broken = int(broken[0])
        self.broken += broken.size
        self.trusted -= broken.size
        return Records(block, starts[holds], lengths[holds])

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


def header_holds(raw: bytes) -> bool:
    """Whether bytes begin with a length and its checksum."""
    return len(raw) >= HEADER and _headers_hold(raw[:HEADER], [0])[0]


def _chain(raw: bytes) -> tuple[list[int], int]:
    """Follow lengths from record to record: where they begin, and where the last whole one ends."""
    heads, at, end = [], 0, len(raw)
    unpack = struct.Struct("<Q").unpack_from
    while at + HEADER <= end:
        after = at + HEADER + unpack(raw, at)[0] + FOOTER
        if after > end:
            break
        heads.append(at)
        at = after
    return heads, at


def _headers_hold(raw: bytes, heads: list[int]) -> list[bool]:
    """Whether the length of each record agrees with its checksum; an unfinished one does."""
    block = np.frombuffer(raw, dtype=np.uint8)
    at = np.array(heads, dtype=np.int64)
    whole = at + HEADER <= block.size
    at = at[whole]
    sums = masked_crc(block, at, np.full(at.size, 8))
    hold = np.ones(len(heads), dtype=bool)
    hold[whole] = sums == _words(block, at + 8, "<u4")
    return [bool(each) for each in hold]


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
    places = np.flatnonzero((low != 0) & (high == 0))
    sums = masked_crc(block, places, np.full(places.size, 8))
    return [at + int(each) for each in places[sums == _words(block, places + 8, "<u4")]]


def _skip(stream: BinaryIO, count: int) -> int:
    """Read past bytes; fewer where the file ends."""
    skipped = 0
    while skipped < count and (block := stream.read(min(limits.BLOCK_BYTES, count - skipped))):
        skipped += len(block)
    return skipped


def _words(block: Bytes, at: Places, kind: str) -> npt.NDArray[Any]:
    """Whole numbers that stand at the places given."""
    if not at.size:
        return np.zeros(0, dtype=kind)
    size = np.dtype(kind).itemsize
    windows = np.lib.stride_tricks.sliding_window_view(block, size)
    return np.ascontiguousarray(windows[at]).view(kind).ravel()
