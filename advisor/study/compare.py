"""Find out what two paths are, and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.logs import inspect, known_formats
from advisor.run.pilot_run import PilotRun
from advisor.study.compared_lines import Comparison
from advisor.study.compared_runs import compare_runs

MOST_NAMED = 5
"""Runs of a folder that an error names."""


def compare(
    one: str | Path,
    other: str | Path,
    *,
    sidecar: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare two studies, or two runs.

    Parameters
    ----------
    one, other : path-like
        Folders that ``advisor advise`` wrote; or logs, or folders of one run each.
    sidecar, overrides, columns
        Of runs, as in `advisor.read_runs`.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    InputError
        One is a study and the other is not, or a folder does not hold exactly one run.

    Warns
    -----
    UserWarning
        Another version of the package made a study.
    """
    paths = Path(one), Path(other)
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or folder", path=path)
    studies = [path for path in paths if _is_study(path)]
    if len(studies) == 2:
        from advisor.study.compared_studies import compare_studies
        from advisor.study.study import load_study

        return compare_studies(_names(paths), load_study(paths[0]), load_study(paths[1]))
    if studies:
        (rest,) = (path for path in paths if path not in studies)
        raise InputError(
            f"this is no study, and {studies[0]} is one",
            path=rest,
            advice="Give two studies (folders that advisor advise or demo wrote), or two runs",
        )
    runs = [_only_run(path, sidecar, overrides, columns) for path in paths]
    return compare_runs(_names(paths), runs[0], runs[1])


def _names(paths: tuple[Path, Path]) -> tuple[str, str]:
    return str(paths[0]), str(paths[1])


def _is_study(path: Path) -> bool:
    if not (path / "manifest.json").is_file():
        return False  # said without loading what studies need
    from advisor.study.study import is_study

    return is_study(path)


def _only_run(
    path: Path,
    sidecar: Path | None,
    overrides: Mapping[str, Any] | None,
    columns: Mapping[str, str] | None,
) -> PilotRun:
    found = inspect([path], sidecar=sidecar, overrides=overrides, columns=columns)
    runs = [run for run in found.runs if run.copy_of is None]
    if not runs:
        why = "; ".join(f"{item.path.name}: {item.reason}" for item in found.unread[:3])
        raise InputError(
            "no run was found, and it is no study" + (f" ({why})" if why else ""),
            path=path,
            advice=f"Give a study, or a run in one of: {known_formats()}",
        )
    if len(runs) > 1:
        named = ", ".join(run.id for run in runs[:MOST_NAMED])
        more = f" and {len(runs) - MOST_NAMED} more" if len(runs) > MOST_NAMED else ""
        raise InputError(
            f"there are {len(runs)} runs ({named}{more})",
            path=path,
            advice="Give the log of one of them; advisor inspect lists them with their paths",
        )
    return runs[0]
