"""How bytes are damaged: at random, and where a text holds numbers by odd numbers."""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile
from collections.abc import Sequence

MOST = 1 << 21
"""Bytes of a damaged file; longer ones are cut."""

TOKENS = (
    b"\0", b"\xff", b"\xff\xfe", b"nan", b"inf", b"-", b"1e999", b"9" * 5000, b"{" * 300,
    b"[" * 4000, b'"', b"'", b"\r", b"\n", b"\n" * 50, b",", b":", b" - ", b"\\u0000", b"null",
    b"true", b"1e8", b"-1", b"0", b"step", b"reward", b"{}", b"[]", b"\x1b[36m", b"\xf0\x9f\x98",
)  # fmt: skip

VALUES = (
    b"1e308", b"-1e308", b"1e400", b"9" * 400, b"-" + b"9" * 400, b"18446744073709551616", b"NaN",
    b"Infinity", b"null", b"true", b'""', b'"a"', b"[]", b"{}", b"[1]", b"0", b"-1", b"1e-320",
    b"[" * 2000 + b"]" * 2000, b"9" * 5000,
)  # fmt: skip
"""What a value of a text may become."""

NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")


def damaged(whole: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """Bytes with one to six injuries; a third of texts only have values replaced."""
    if chance.randrange(3) == 0:
        odd = with_odd_values(whole, chance)
        if odd is not None:
            return odd
    data = bytearray(whole)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        size = chance.choice((1, 2, 5, 20, 100, 1000))
        match chance.randrange(8):
            case 0 if at < len(data):
                data[at] = chance.randrange(256)
            case 1 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                del data[at : at + size]
            case 3:
                data[at:at] = data[at : at + size] * chance.choice((1, 2, 30))
            case 4:
                data[at:at] = chance.choice(TOKENS)
            case 5:
                other = chance.choice(others)
                start = chance.randrange(len(other) + 1)
                data[at : at + size] = other[start : start + size]
            case 6:
                del data[at:]
            case _:
                lines = bytes(data).split(b"\n")
                chance.shuffle(lines)
                data = bytearray(b"\n".join(lines))
    return bytes(data[:MOST])


def with_odd_values(whole: bytes, chance: random.Random) -> bytes | None:
    """Text of which one to three numbers are odd; None where it is none or holds none."""
    if b"\0" in whole[:1000] or len(whole) > MOST:
        return None
    found = list(NUMBER.finditer(whole))
    if not found:
        return None
    data = bytearray(whole)
    chosen = chance.sample(found, min(len(found), chance.randint(1, 3)))
    for one in sorted(chosen, key=lambda match: -match.start()):
        data[one.start() : one.end()] = chance.choice(VALUES)
    return bytes(data)


def packed(name: str, data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Now and then a log stands compressed, or in an archive that plays tricks."""
    roll = chance.randrange(20)
    if roll == 0:
        return f"{name}.gz", damaged(gzip.compress(data), chance, [data])
    if roll == 1:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(chance.choice(("../../", "/", "", "a/../", "C:\\")) + name, data)
        whole = stream.getvalue()
        return "logs.zip", whole if chance.randrange(2) else damaged(whole, chance, [data])
    return name, data
