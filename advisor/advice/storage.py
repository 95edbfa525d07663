"""Where Optuna studies are kept, so that optuna-dashboard opens them."""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import InputError
from advisor.run.saving import check_output
from advisor.run.shown import without_password

if TYPE_CHECKING:
    import optuna

PATIENCE = 60.0
"""Seconds that a storage may take to be written: no answer waits longer for it."""

CONNECTING = 10
"""Seconds that a database may take to answer at all."""

BLOCK = 1 << 16
"""Bytes that are looked at once for the end of the last whole line."""

ROOM = 4 << 20
"""Bytes that must be free for an Optuna study in a journal: one of 400 trials takes 1 MB."""

GRACE = 10
"""Seconds after which the lock of a killed writer of a journal is passed over."""


def keep_aside(study: optuna.Study, storage: str, name: str) -> None:
    """Copy a finished study into a storage if that can be done; the answer does not rest on it.

    Parameters
    ----------
    study : optuna.Study
    storage : str
        As for `open_storage`.
    name : str

    Warns
    -----
    UserWarning
        The storage was not written, and why.
    """
    failed: list[str] = []

    def run() -> None:
        try:
            with open_storage(storage) as kept:
                keep(study, kept, name)
        except Exception as error:  # of drivers, of Optuna, of the disk
            failed.append(_reason(error))

    writer = threading.Thread(target=run, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer.start()
        writer.join(PATIENCE)
    if writer.is_alive():
        failed.append(f"it did not answer in {PATIENCE:g} seconds")
    if failed:
        warnings.warn(
            f"{without_password(storage)}: the answer stands, its Optuna study was not kept "
            f"({without_password(failed[0])})",
            stacklevel=2,
        )


@contextmanager
def open_storage(storage: str | None) -> Iterator[Any]:
    """Open a storage of Optuna studies, and close its connections in the end.

    Parameters
    ----------
    storage : str, optional
        A file for Optuna's journal, or the URL of a database (``postgresql://user@host/name``) that
        a team shares; None keeps the study in memory.

    Yields
    ------
    storage : optuna storage or None

    Raises
    ------
    InputError
        The file or database cannot be opened, or the file is no journal.
    """
    kept = _opened(storage)
    try:
        yield kept
    finally:
        if hasattr(kept, "engine"):
            kept.remove_session()
            kept.engine.dispose()


def _opened(storage: str | None) -> Any:
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    if storage is None:
        return None
    try:
        if "://" in storage:
            wait = {"connect_timeout": CONNECTING} if storage.startswith("postgresql") else {}
            return optuna.storages.RDBStorage(storage, engine_kwargs={"connect_args": wait})
        path = Path(storage)
        _check_journal(path)
        check_output(path, "the journal", "storage", room=ROOM)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = JournalFileSymlinkLock(str(path), grace_period=GRACE)
        _mend(path, lock)
        return optuna.storages.JournalStorage(JournalFileBackend(str(path), lock))
    except Exception as error:  # each database driver raises classes of its own
        raise InputError(
            f"the studies cannot be kept there ({_reason(error)})",
            path=without_password(storage),
            argument="storage",
            advice="Give a file, or a database URL whose driver is installed",
        ) from error


def keep(study: optuna.Study, storage: Any, name: str) -> None:
    """Copy a finished study into an open storage, under its name and a number that is free.

    All at once, since a search that writes trial by trial takes tens of times as long.
    """
    import optuna

    taken = set(optuna.get_all_study_names(storage))
    for number in count(1):
        if f"{name}, {number}" in taken:
            continue
        try:
            copy = optuna.create_study(
                study_name=f"{name}, {number}", storage=storage, direction="maximize"
            )
        except optuna.exceptions.DuplicatedStudyError:
            continue  # a colleague was quicker
        break
    for key, value in study.user_attrs.items():
        copy.set_user_attr(key, value)
    copy.add_trials(study.trials)


def _check_journal(path: Path) -> None:
    """Refuse to append to a file that Optuna did not write."""
    if re.match("[a-z0-9+]{2,}:/", str(path)):
        raise ValueError("a database URL has two slashes after its colon")
    if path.is_file() and not _is_journal(path):
        raise ValueError("it is no Optuna journal")


def _mend(path: Path, lock: Any) -> None:
    """Drop a last line that a killed writer, or a full disk, left without its end."""
    if not path.is_file():
        return
    lock.acquire()  # whoever is writing a line now ends it first
    try:
        with path.open("r+b") as file:
            size = end = file.seek(0, 2)
            while end:
                start = max(0, end - BLOCK)
                file.seek(start)
                cut = file.read(end - start).rfind(b"\n")
                if cut >= 0:
                    end = start + cut + 1
                    break
                end = start
            if end < size:
                file.truncate(end)
    finally:
        lock.release()


def _reason(error: Exception) -> str:
    """What an error says, in a line."""
    text = error.problem if isinstance(error, InputError) else str(error)
    lines = text.strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _is_journal(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    try:
        return not first or "op_code" in json.loads(first)
    except (ValueError, TypeError):
        return False
