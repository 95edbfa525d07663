"""A log as bytes and lines, wherever it lies: on disk, compressed, or in an archive."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, cast

from advisor.errors import InputError
from advisor.runs.logfiles.limits import limits

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)


class Line(NamedTuple):
    """One line, its one-based number, whether its end was dropped, and whether none follows it."""

    number: int
    text: str
    is_cut: bool
    is_open: bool = False


@dataclass(frozen=True)
class LogFile:
    """A file to read, with the NUL bytes passed over; one of an archive knows all members of it."""

    path: Path
    opener: Callable[[], BinaryIO]
    packed_size: int
    is_gzip: bool = False
    archive: Path | None = None
    members: dict[Path, LogFile] = field(default_factory=dict, compare=False, repr=False)
    folders: dict[Path, set[str]] = field(default_factory=dict, compare=False, repr=False)
    holes: list[int] = field(default_factory=list, compare=False, repr=False)
    _heads: dict[int, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """File name without ``.gz``."""
        return self.path.name.removesuffix(".gz") if self.is_gzip else self.path.name

    @cached_property
    def suffix(self) -> str:
        """Ending of the name in lower case, without ``.gz``: ``".jsonl"``."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def is_packed(self) -> bool:
        """Whether the bytes on disk are not the log's own."""
        return self.is_gzip or self.archive is not None

    def open(self) -> BinaryIO:
        """Open the unpacked bytes."""
        try:
            stream = self.opener()
        except (*BROKEN, RuntimeError, UnicodeError) as error:  # RuntimeError: a password
            raise unreadable(self.path, getattr(error, "strerror", None) or error) from None
        layers = [stream]
        if self.is_gzip:
            layers.append(cast(BinaryIO, gzip.GzipFile(fileobj=stream)))
        return cast(BinaryIO, io.BufferedReader(_Guarded(layers, self), limits.block_bytes))

    def head(self, size: int = limits.head_bytes) -> bytes:
        """First bytes, unpacked, without holes."""
        if size not in self._heads:
            head, left = b"", limits.searched_bytes
            with self.open() as stream:
                while left > 0 and len(head) < size and (more := stream.read(size - len(head))):
                    left, head = left - len(more), head + without_holes(more)
            self._heads[size] = head
        return self._heads[size]

    def readable_head(self, size: int = limits.head_bytes) -> bytes:
        """First bytes; none of a file that cannot be read, since reading it says what is wrong."""
        try:
            return self.head(size)
        except InputError:
            return b""

    def head_text(self) -> bytes:
        """First bytes in UTF-8, also where they start with the mark of UTF-16."""
        head = self.head()
        if not head.startswith(UTF16_MARKS):
            return head
        return head.decode("utf-16", "ignore").encode("utf-8", "ignore")

    def start(self) -> bytes:
        """First bytes in UTF-8 from the first character on."""
        return self.head_text().lstrip(b"\xef\xbb\xbf \t\r\n")

    def blocks(self, most: int, overlap: int) -> Iterator[bytes]:
        """Blocks of the first bytes, each with the end of the one before; none where they break."""
        rest = b""
        with contextlib.suppress(InputError), self.open() as stream:
            while most > 0 and (block := stream.read(min(most, limits.block_bytes))):
                yield rest + block
                most, rest = most - len(block), block[-overlap:]

    def read(self, limit: int = limits.most_document_bytes) -> bytes:
        """All bytes."""
        with self.open() as stream:
            raw = stream.read(limit + 1)
        if len(raw) > limit:
            problem = f"the document is larger than {limit >> 20} MiB"
            advice = "Export the logged rows as CSV or JSONL, which is read row by row"
            raise InputError(problem, path=self.path, advice=advice)
        return raw

    def text(self, *, give: str | None = None, limit: int = limits.most_document_bytes) -> str:
        """All text, in UTF-8 or in UTF-16 with its mark."""
        raw = self.read(limit)
        check_text(raw, self.path, give=give)
        try:
            if raw.startswith(UTF16_MARKS):
                return raw.decode("utf-16")
            return raw.replace(b"\0", b"").decode("utf-8-sig")
        except UnicodeDecodeError:
            raise _binary(self.path, give) from None

    def lines(self, *, strict: bool = True) -> Iterator[Line]:
        r"""Lines, split at ``\n`` only, without it; a JSON string may hold any other line end."""
        check_text(self.head(), self.path)
        encoding = "utf-16" if self.head(2).startswith(UTF16_MARKS) else "utf-8-sig"
        decoder = codecs.getincrementaldecoder(encoding)("strict" if strict else "replace")
        number, rest, is_cut, most = 1, "", False, limits.most_line_characters
        self.holes.clear()
        try:
            with self.open() as stream:
                while block := stream.read(limits.block_bytes):
                    text = rest + decoder.decode(block)
                    self.holes.append(text.count("\0"))
                    *parts, rest = text.replace("\0", "").split("\n")
                    for text in parts:
                        yield Line(number, text[:most], is_cut or len(text) > most)
                        number, is_cut = number + 1, False
                    if len(rest) > most:
                        rest, is_cut = rest[:most], True
            rest += decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise _binary(self.path, None) from None
        if rest:
            yield Line(number, rest, is_cut, is_open=True)

    def names_in(self, folder: Path) -> frozenset[str]:
        """First parts of what lies in a folder, on disk or in the log's archive."""
        if self.archive is not None and folder.is_relative_to(self.archive):
            for path in self.members if not self.folders else ():
                while path.name not in self.folders.setdefault(path.parent, set()):
                    self.folders[path.parent].add(path.name)
                    path = path.parent if path.parent != self.archive else path
            return frozenset(self.folders.get(folder, ()))
        try:
            return frozenset(os.listdir(folder))
        except OSError:
            return frozenset()

    def at(self, path: Path) -> LogFile | None:
        """File at a path, also in the archive in which this one lies, or ``None``."""
        if self.archive is not None:
            whole, inner = self.archive.resolve(), path.resolve()
            if inner.is_relative_to(whole):
                return self.members.get(self.archive / inner.relative_to(whole))
        try:
            return on_disk(path) if path.is_file() else None
        except OSError:
            return None


def on_disk(path: Path) -> LogFile:
    """File on disk, gzip or not."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            is_gzip = stream.read(2) == b"\x1f\x8b"
    except OSError:
        size, is_gzip = 0, False  # opening it will say what is wrong
    return LogFile(path, lambda: path.open("rb"), size, is_gzip)


def open_archive(log: LogFile) -> list[LogFile]:
    """Members of a zip archive, by path; they are read where they lie, never unpacked to disk."""
    try:
        with zipfile.ZipFile(log.path) as packed:
            infos = [info for info in packed.infolist() if info.filename and not info.is_dir()]
    except (*BROKEN, ValueError, RecursionError, MemoryError) as error:
        raise unreadable(log.path, error) from None
    deepest = max((info.filename.replace("\\", "/").count("/") for info in infos), default=0)
    if len(infos) > limits.most_members or deepest > limits.most_folders_deep:
        problem = f"the archive holds {len(infos):,} files in folders up to {deepest:,} deep"
        raise InputError(problem, path=log.path, advice="Pack the logs alone")
    members: dict[Path, LogFile] = {}
    folders: dict[Path, set[str]] = {}
    for info in infos:
        # Members are named as if below the archive, whatever their stored path tries to reach.
        parts = info.filename.replace("\\", "/").split("/")
        safe = [part for part in parts if part.strip(" .") and "\0" not in part]
        path = log.path.joinpath(*safe)
        if safe and path not in members:
            size, is_gzip = max(info.compress_size, 1), path.suffix == ".gz"
            opener = partial(_open_member, log.path, info)
            members[path] = LogFile(path, opener, size, is_gzip, log.path, members, folders)
    return [members[path] for path in sorted(members)]


def without_holes(raw: bytes) -> bytes:
    """Bytes without long runs of NUL, which a file has that was emptied while it was written."""
    return re.sub(rb"\0{16,}", b"", raw) if b"\0" in raw else raw


def check_text(raw: bytes, path: Path, *, give: str | None = None) -> None:
    """Raise where the first bytes of a file already say that it is no text."""
    if not raw.strip(b"\xef\xbb\xbf\xff\xfe \t\r\n"):
        advice = give or "Give a log with at least 3 rows of rewards"
        raise InputError("the file is empty", path=path, advice=advice)
    if raw.startswith(b"version https://git-lfs"):
        raise InputError(
            "the file is a git-LFS pointer, not the data", path=path, advice="Run 'git lfs pull'"
        )
    if b"\0" in without_holes(raw[: limits.head_bytes]) and not raw.startswith(UTF16_MARKS):
        raise _binary(path, give)


def unreadable(path: Path, error: object) -> InputError:
    """Error of a file that cannot be opened, unpacked or parsed."""
    what = (str(error).splitlines() or [type(error).__name__])[0][:200]
    advice = (
        "Check its permissions and whether it can be unpacked, or copy it again (it may have been "
        "cut while it was written)"
    )
    return InputError(f"the file cannot be read ({what})", path=path, advice=advice)


def _binary(path: Path, give: str | None) -> InputError:
    return InputError(
        "the file is binary, has NUL bytes, or is text in an odd encoding",
        path=path,
        advice=give
        or "Give the trainer's own log (trainer_state.json, a console log, event files) "
        "or an export as CSV or JSONL in UTF-8",
    )


def _open_member(path: Path, info: zipfile.ZipInfo) -> BinaryIO:
    stat = path.stat()
    return cast(BinaryIO, _kept_open(path, stat.st_mtime_ns, stat.st_size).open(info))


@lru_cache(maxsize=1)
def _kept_open(path: Path, _changed_ns: int, _size: int) -> zipfile.ZipFile:
    """Archive with its index read once for all of its members, until it changes."""
    return zipfile.ZipFile(path)


class _Guarded(io.RawIOBase):
    """Bytes of a log; what does not unpack, or unpacks to too much, is a typed error."""

    def __init__(self, layers: list[BinaryIO], log: LogFile) -> None:
        self._layers, self._log, self._given = layers, log, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            chunk = self._layers[-1].read(len(buffer))
        except BROKEN as error:
            raise unreadable(self._log.path, error) from None
        buffer[: len(chunk)] = chunk
        self._given += len(chunk)
        if self._log.is_packed and self._given > limits.unchecked_unpacked_bytes:
            ratio = self._given / max(self._log.packed_size, 1)
            is_bomb = ratio > limits.most_unpacked_per_packed_byte
            if is_bomb or self._given > limits.most_unpacked_bytes:
                raise InputError(
                    f"it unpacks to more than {self._given >> 20} MiB, {ratio:.0f} times its size",
                    path=self._log.path,
                    advice="Unpack it by hand if you trust it, and give the unpacked file",
                )
        return len(chunk)

    def close(self) -> None:
        for layer in reversed(self._layers):
            layer.close()
        super().close()
