"""Files and folders written whole or not at all: as a draft, to the disk, then in place of the old.

A process that is killed leaves a draft; that of a folder is removed by the next one that writes it.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from advisor.errors import InputError, KeptElsewhereError, writing

DRAFT, OLDER = ".draft", ".aside"
"""How names end of what is being written, and of an older folder that is being replaced."""

ROOM = 16 << 20
"""Bytes to be free before work on a study or posterior: the demo's takes 5, 64 pilots' 12 MB."""

NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}
"""Errors of file systems that have no locks."""

WAIT = 60.0  # Seconds to wait for another writer: drawing and writing a study takes under ten


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file, links followed; an older one remains until the new one is on the disk."""
    target = Path(os.path.realpath(path))
    whole = data.encode("utf-8") if isinstance(data, str) else data
    if target.exists() and not target.is_file() and not target.is_dir():
        target.write_bytes(whole)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft_of(target)
    try:
        _write(draft, whole)
        if target.is_file():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_new(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; `FileExistsError` where it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _write(path, data)
    except OSError as error:
        if not isinstance(error, FileExistsError):
            path.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes) -> None:
    """Write a new file down to the disk."""
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def or_keep(
    write: Callable[[Path], None], path: Path, what: str, key: str, kind: str = "file"
) -> None:
    """Write what took work to its place, or to a second one: `KeptElsewhereError`."""
    try:
        with writing(what, path, key, kind):
            write(path)
    except InputError as error:
        for place in second_places(path) if isinstance(error.__cause__, OSError) else ():
            kept = place / path.name
            try:
                write(kept)
            except OSError:
                shutil.rmtree(place, ignore_errors=True)
                continue
            raise KeptElsewhereError(error, kept) from error.__cause__
        raise


def second_places(path: Path) -> Iterator[Path]:
    """New folders for a result that cannot be written where it should be, the nearest first."""
    own = os.path.realpath(path.parent)
    for place in (Path.cwd, lambda: Path(tempfile.gettempdir()), Path.home):
        try:
            if os.path.realpath(place()) != own:
                yield Path(tempfile.mkdtemp(prefix="grpo-advisor-kept-", dir=place()))
        except (OSError, RuntimeError):  # no such folder, not writable, or no home
            continue


def check_output(path: Path, what: str, key: str, place: str = "file") -> None:
    """Prove before work is done that a file or folder can be written; leaves nothing behind."""
    target = Path(os.path.realpath(path))
    with writing(what, path, key, place):
        if place == "file" and target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file() and not target.is_dir():
            return
        if place == "folder" and os.path.ismount(target):
            raise OSError(errno.EBUSY, "another file system begins there: name a folder within it")
        folder = next(parent for parent in target.parents if parent.exists())
        with tempfile.TemporaryFile(dir=folder):
            if shutil.disk_usage(folder).free < ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def replacing(folder: Path, say: Callable[[str], object] | None = None) -> Iterator[Path]:
    """Draft of a folder, which takes the place of an older one where the block ends well."""
    out = Path(os.path.realpath(folder))
    out.parent.mkdir(parents=True, exist_ok=True)
    with owned(out, say):
        older = _older(out)
        if older.is_dir() and not out.exists():
            older.rename(out)  # a writer was killed between its two renames
        for left in [older, *out.parent.glob(f".{glob.escape(out.name[:100])}.*{DRAFT}")]:
            shutil.rmtree(left, ignore_errors=True)  # who holds the lock is the only writer
        draft = _draft_of(out)
        try:
            draft.mkdir()
            yield draft
            for file in (each for each in draft.rglob("*") if each.is_file()):
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
            if out.exists():
                out.rename(older)
            try:
                draft.rename(out)
            except OSError:
                older.rename(out)
                raise
            shutil.rmtree(older, ignore_errors=True)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def standing(folder: Path) -> Path:
    """Folder that has a name: where a writer was killed between two renames, the older."""
    older = _older(Path(os.path.realpath(folder)))
    return older if older.is_dir() and not folder.exists() else folder


@contextlib.contextmanager
def owned(path: Path, say: Callable[[str], object] | None = None) -> Iterator[None]:
    """Hold the lock next to a file or folder; ``say`` gets what it waits for, at most `WAIT`."""
    from filelock import FileLock, Timeout

    file = path.parent / f".{path.name}.lock"
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        owner = "another process"
        with contextlib.suppress(OSError):  # it may end meanwhile
            owner = file.read_text("utf-8", "replace")[:200] or owner
        if say is not None:
            say(f"{owner} is writing there: waiting for it")
        try:
            lock.acquire(timeout=WAIT)
        except Timeout as error:
            # As where a disk is full: what took work is then kept in a second place.
            problem = f"{owner} is writing there and does not end: wait for it or stop it"
            raise OSError(errno.EBUSY, problem) from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    try:
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
            file.write_text(f"process {os.getpid()} on {socket.gethostname()}", "utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
        lock.release()


def _draft_of(target: Path) -> Path:
    """Name for a draft that no other has."""
    return target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}{DRAFT}"


def _older(out: Path) -> Path:
    return out.parent / f".{out.name}{OLDER}"
