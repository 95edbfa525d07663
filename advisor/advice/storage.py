"""Where Optuna studies are kept, so that optuna-dashboard opens them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import InputError

if TYPE_CHECKING:
    import optuna


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
    from optuna.storages.journal import JournalFileBackend

    if storage is None:
        return None
    try:
        if "://" in storage:
            return optuna.storages.RDBStorage(storage)
        path = Path(storage)
        _check_journal(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    except Exception as error:  # each database driver raises classes of its own
        reason = str(error).strip().splitlines()
        raise InputError(
            f"the studies cannot be kept there ({reason[0] if reason else type(error).__name__})",
            path=_without_password(storage),
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


def _is_journal(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline()
    try:
        return not first or "op_code" in json.loads(first)
    except (ValueError, TypeError):
        return False


def _without_password(storage: str) -> str:
    return re.sub("(://[^:/@]*):[^@]*@", r"\1:***@", storage)
