"""CRC32C of many stretches of bytes side by side."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.theory.arrays import IntArray

POLYNOMIAL = 0x82F63B78
"""Castagnoli's polynomial, its bits reversed."""

LANE = 64
"""Bytes that are summed together; most records of one scalar fit."""

Bytes = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.uint32]
Places = IntArray


def masked_crc(block: Bytes, starts: Places, lengths: Places) -> Sums:
    """CRC32C of stretches of a block, rotated and shifted as TFRecord has it.

    Parameters
    ----------
    block : ndarray of shape (bytes,)
    starts, lengths : ndarray of shape (stretches,)

    Returns
    -------
    sums : ndarray of shape (stretches,)

    Notes
    -----
    The sum is linear over the field of two elements. Each stretch is cut from its end into
    pieces of `LANE` bytes, the first filled up with zeros in front, which a register of zero
    passes unchanged; all pieces are summed side by side from zero. Then, from piece to piece, the
    register is moved on by `LANE` zero bytes and the next sum is added; what the customary first
    register of ones would have left is added to the first.
    """
    if not starts.size:
        return np.zeros(0, dtype=np.uint32)
    pieces = np.maximum(1, -(-lengths // LANE))
    first = np.cumsum(pieces) - pieces
    owner = np.repeat(np.arange(starts.size), pieces)
    from_end = pieces[owner] - 1 - (np.arange(owner.size) - first[owner])
    ends = starts[owner] + lengths[owner] - from_end * LANE
    used = np.minimum(LANE, lengths[owner] - from_end * LANE)
    sums = _sum_pieces(block, ends, used)
    tables = _tables()
    register = sums[first] ^ tables.ones[used[first]]
    for step in range(1, int(pieces.max())):
        going = np.flatnonzero(pieces > step)
        register[going] = _move(register[going], tables.lane) ^ sums[first[going] + step]
    register = ~register
    rotated: Sums = (register >> 15) | (register << 17)
    return rotated + np.uint32(0xA282EAD8)


def _sum_pieces(block: Bytes, ends: Places, used: Places) -> Sums:
    """Sums, from a register of zero, of the bytes before each end."""
    width = int(used.max())
    padded = np.concatenate((np.zeros(width, dtype=np.uint8), block))
    windows = np.lib.stride_tricks.sliding_window_view(padded, width) if width else None
    register = np.zeros(ends.size, dtype=np.uint32)
    if windows is None:
        return register
    rows = windows[ends]
    rows[np.arange(width) < (width - used)[:, None]] = 0
    table = _tables().byte
    for column in np.ascontiguousarray(rows.T):
        register = table[(register ^ column) & 0xFF] ^ (register >> 8)
    return register


class _Tables(NamedTuple):
    """What one byte does to a register; ones after 0 to `LANE` zero bytes; `LANE` zero bytes."""

    byte: Sums
    ones: Sums
    lane: Sums


@cache
def _tables() -> _Tables:
    byte = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        byte = np.where(byte & 1, (byte >> 1) ^ np.uint32(POLYNOMIAL), byte >> 1)
    ones = [np.uint32(0xFFFFFFFF)]
    for _ in range(LANE):
        ones.append(byte[ones[-1] & 0xFF] ^ (ones[-1] >> 8))
    lane = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
    for _ in range(LANE):
        lane = byte[lane & 0xFF] ^ (lane >> 8)
    return _Tables(byte, np.array(ones, dtype=np.uint32), lane)


def _move(register: Sums, lane: Sums) -> Sums:
    """Registers after `LANE` zero bytes."""
    moved: Sums = lane[0][register & 0xFF]
    for place in range(1, 4):
        moved = moved ^ lane[place][(register >> (8 * place)) & 0xFF]
    return moved
