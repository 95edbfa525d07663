"""Where Optuna studies are kept, so that optuna-dashboard opens them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import InputError

if TYPE_CHECKING:
    from advisor.advice.evaluation import Evaluator


def open_storage(storage: str | None) -> Any:
    """Open a storage of Optuna studies.

    Parameters
    ----------
    storage : str, optional
        A file for Optuna's journal, or the URL of a database (``postgresql://user@host/name``) that
        a team shares; None keeps the study in memory.

    Returns
    -------
    storage : optuna storage or None

    Raises
    ------
    InputError
        The file or database cannot be opened.
    """
    import optuna
    from optuna.storages.journal import JournalFileBackend

    if storage is None:
        return None
    try:
        if "://" in storage:
            return optuna.storages.RDBStorage(storage)
        path = Path(storage)
        path.parent.mkdir(parents=True, exist_ok=True)
        return optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    except Exception as error:  # each database driver raises classes of its own
        reason = str(error).strip().splitlines()
        raise InputError(
            f"the studies cannot be kept there ({reason[0] if reason else type(error).__name__})",
            path=storage,
            key="--storage",
            advice="Give a file, or a database URL whose driver is installed",
        ) from error


def study_name(evaluate: Evaluator, storage: Any) -> str:
    """Name of a new study: target, data, and a number where the name is taken."""
    target = evaluate.forecaster.target
    data = evaluate.forecaster.posterior.meta.provenance.data_sha256
    name = f"{target.model} on {target.task}, pilots {data[:8]}"
    taken = set() if storage is None else {s.study_name for s in storage.get_all_studies()}
    number = 1
    while f"{name}, {number}" in taken:
        number += 1
    return f"{name}, {number}"
