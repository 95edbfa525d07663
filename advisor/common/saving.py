"""Files and folders written whole or not at all: beside, to the disk, then in place of the old.

What stands under a name is the old or the new, at any moment; a process that is killed leaves a
draft, which the next one that writes there sweeps.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from advisor.errors import KeptElsewhereError, unwritable

if sys.platform != "win32":
    import fcntl

DRAFT, ASIDE = ".draft", ".aside"
"""How names end of what is being written, and of an older folder that waits to be replaced."""

ROOM = 16 << 20
"""Bytes that must be free before work whose result is a study or a posterior; ours: the demo's
study takes 5 MB, sixty-four pilots 12 MB."""

WAIT = 60.0
"""Seconds to wait for another writer: drawing and writing a study takes under ten."""

OLD = 86400.0
"""Seconds after which a draft is swept where locks cannot tell whether its writer lives."""

NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}

_AT_FDCWD, _EXCHANGE = -100, 2
"""Of Linux, for renameat2."""


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file in place of an older one, which stands until the new one is on the disk.

    Parameters
    ----------
    path : Path
        Its folder is made where it is missing; a link is followed, a device or pipe written to.
    data : bytes or str

    Raises
    ------
    OSError
        It cannot be written; an older file stands as it was.
    """
    target = Path(os.path.realpath(path))
    whole = data.encode("utf-8") if isinstance(data, str) else data
    if target.exists() and not target.is_file() and not target.is_dir():
        target.write_bytes(whole)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    for last in (False, True):
        try:
            with _draft(target, whole) as draft:
                os.replace(draft, target)
            break
        except FileNotFoundError:
            if last or not target.parent.is_dir():
                raise  # swept by another before it was locked: once more
    to_disk(target.parent)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, whole or not at all.

    Raises
    ------
    FileExistsError
        It exists, and was left as it is.
    OSError
        It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with _draft(path, data) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            os.replace(draft, path)
    to_disk(path.parent)


def write_or_keep(path: Path, data: bytes | str, what: str, key: str) -> None:
    """Write a file that took work, or keep it in a second place.

    Parameters
    ----------
    path : Path
    data : bytes or str
    what : str
        The subject of the sentence where it fails.
    key : str
        The argument or flag that names the file.

    Raises
    ------
    KeptElsewhereError
        It could not be written there and was written elsewhere.
    InputError
        It could not be written anywhere.
    """
    try:
        write_whole(path, data)
    except OSError as error:
        for place in second_places(path):
            try:
                write_whole(place / path.name, data)
            except OSError:
                shutil.rmtree(place, ignore_errors=True)
                continue
            raise KeptElsewhereError(what, error, path, key, place / path.name) from error
        raise unwritable(what, error, path, key, "file") from error


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
    """Prove, before work is done, that a file or folder can be written.

    Parameters
    ----------
    path : Path
        Need not exist, nor its folder; nothing is left behind.
    what : str
        What will be written, as the subject of a sentence.
    key : str
        The argument or flag that names it.
    place : {"file", "folder"}

    Raises
    ------
    InputError
        It cannot be written, or there is no room.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and place == "file" and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            return
        if place == "folder" and mode is not None and os.path.ismount(target):
            raise OSError(errno.EBUSY, "another file system begins there: name a folder within it")
        folder = target.parent
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(file.fileno())
    except OSError as error:
        raise unwritable(what, error, path, key, place) from error


def _reserve(file: int) -> None:
    """Take room on a disk, so that quotas count too; file systems without it are asked."""
    try:
        os.posix_fallocate(file, 0, ROOM)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        found = os.fstatvfs(file)
        if found.f_blocks and found.f_bavail * found.f_frsize < ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


@contextlib.contextmanager
def replacing(folder: Path, say: Callable[[str], object] | None = None) -> Iterator[Path]:
    """Draft of a folder, which takes the place of an older one where the block ends well.

    Parameters
    ----------
    folder : Path
        What stands there must be the caller's to replace.
    say : callable, optional
        Told who else is writing, while this one waits.

    Yields
    ------
    draft : Path
        An empty folder beside it.

    Raises
    ------
    OSError
        It cannot be written, or another process goes on writing there; an older folder stands as
        it was.
    """
    out = Path(os.path.realpath(folder))
    out.parent.mkdir(parents=True, exist_ok=True)
    with owned(out, say):
        _restore(out)
        for left in out.parent.glob(f".{_literal(out.name[:100])}.*{DRAFT}"):
            shutil.rmtree(left, ignore_errors=True)  # who holds the lock is the only writer
        draft = _beside(out)
        try:
            draft.mkdir()
            yield draft
            for each in sorted(draft.rglob("*")):
                to_disk(each)
            to_disk(draft)
            _exchange(draft, out)
            to_disk(out.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def standing(folder: Path) -> Path:
    """Folder that stands under a name: where a writer was killed between two renames, the older."""
    if not folder.exists():
        aside = _aside(Path(os.path.realpath(folder)))
        if aside.is_dir():
            return aside
    return folder


@contextlib.contextmanager
def owned(path: Path, say: Callable[[str], object] | None = None) -> Iterator[None]:
    """Hold the lock of a file or folder; it goes with the process that holds it.

    Parameters
    ----------
    path : Path
        The lock stands beside it while it is held, and names its owner.
    say : callable, optional
        Told the owner, where it has to wait.

    Raises
    ------
    OSError
        It is held by another for a minute.
    """
    lock = path.parent / f".{path.name}.lock"
    held = _locked(lock, say)
    try:
        if held is not None:
            os.ftruncate(held, 0)
            owner = f"process {os.getpid()} on {socket.gethostname()}"
            with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
                os.write(held, owner.encode())
        yield
    finally:
        if held is not None:
            with contextlib.suppress(OSError):
                lock.unlink()
            os.close(held)


def to_disk(path: Path) -> None:
    """Write what the system still holds of a file or folder to the disk."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return  # folders cannot be opened everywhere
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):
            raise
    finally:
        os.close(file)


def _locked(lock: Path, say: Callable[[str], object] | None) -> int | None:
    """Open lock file that is held; None where the file system has no locks."""
    if sys.platform == "win32":  # no such locks
        return None
    until, has_said = time.monotonic() + WAIT, False
    while True:
        file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The owner before may have removed the file that was opened.
            if _is_same(file, lock):
                return file
            os.close(file)
            continue
        except OSError as error:
            owner = os.pread(file, 200, 0).decode("utf-8", "replace") or "another process"
            os.close(file)
            if error.errno in NO_LOCKS:
                lock.unlink(missing_ok=True)
                return None
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
        if not has_said and say is not None:
            say(f"{owner} is writing there: waiting for it")
            has_said = True
        if time.monotonic() > until:
            # As where a disk is full: what took work is then kept in a second place.
            raise OSError(
                errno.EBUSY, f"{owner} is writing there and does not end: wait for it or stop it"
            )
        time.sleep(0.05)


def _is_same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _draft(target: Path, data: bytes) -> Iterator[Path]:
    """File beside a target that holds the data, locked while its writer lives."""
    _sweep(target)
    draft = _beside(target)
    file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with contextlib.suppress(OSError):
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if target.is_file():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
        yield draft
    finally:
        os.close(file)
        draft.unlink(missing_ok=True)


def _sweep(target: Path) -> None:
    """Remove drafts of killed processes."""
    for left in target.parent.glob(f".{_literal(target.name[:100])}.*{DRAFT}"):
        with contextlib.suppress(OSError):
            if left.is_dir():
                continue
            file = os.open(left, os.O_RDWR)
            try:
                if sys.platform != "win32":
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            except OSError as error:
                if error.errno in NO_LOCKS and time.time() - left.stat().st_mtime > OLD:
                    left.unlink()
            finally:
                os.close(file)


def _exchange(draft: Path, out: Path) -> None:
    """Put a draft in the place of a folder, at no moment without either."""
    if not out.exists():
        draft.rename(out)
        return
    if _swapped(draft, out):
        return  # the draft's name now holds the old one
    aside = _aside(out)
    out.rename(aside)
    try:
        draft.rename(out)
    except OSError:
        aside.rename(out)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _swapped(one: Path, other: Path) -> bool:
    """Exchange two names in one step, where system and file system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0)


def _restore(out: Path) -> None:
    """Put back an older folder that a killed process left between two renames."""
    aside = _aside(out)
    if not aside.is_dir():
        return
    if out.exists():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.rename(out)


def _aside(out: Path) -> Path:
    return out.parent / f".{out.name}{ASIDE}"


def _beside(target: Path) -> Path:
    """Name for a draft that no other has."""
    return target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}{DRAFT}"


def _literal(name: str) -> str:
    """Name as a pattern that means itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
