"""Find out what two paths are, and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import InputError
from advisor.runs import PilotRun, inspect, is_source, known_formats
from advisor.study.compared_lines import Comparison
from advisor.study.compared_runs import compare_runs

if TYPE_CHECKING:
    from advisor.study.study import Study

MOST_NAMED = 5
"""Runs of a folder that an error names."""


def compare(
    one: Study | str | Path,
    other: Study | str | Path,
    *,
    sidecar: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare two studies, two runs, or a study with what came of its forecasts.

    Parameters
    ----------
    one, other : Study or path-like
        Studies, or folders of studies; logs, or folders of one run each; or a study and the log, or
        folder of logs, of finished runs. As text also ``wandb:ENTITY/PROJECT/RUN`` and what else
        `advisor.read_runs` asks of a tracker's own client.
    sidecar, overrides, columns
        Of runs, as in `advisor.read_runs`.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    InputError
        A folder does not hold exactly one run, or finished runs are not of the study's model and
        task.

    Warns
    -----
    UserWarning
        Another version of the package made a study.
    """
    both = one, other
    for path in both:
        if isinstance(path, str | Path) and not is_source(path) and not Path(path).exists():
            raise InputError("there is no such file or folder", path=path)
    names = _name(one), _name(other)
    are_studies = [_is_study(item) for item in both]
    if all(are_studies):
        from advisor.study.compared_studies import compare_studies
        from advisor.study.study import Study

        studies = [Study.load(item) if isinstance(item, str | Path) else item for item in both]
        return compare_studies(names, studies[0], studies[1])
    if any(are_studies):
        from advisor.study.compared_outcomes import compare_outcomes
        from advisor.study.study import Study

        study, path = both if are_studies[0] else both[::-1]
        loaded = study if isinstance(study, Study) else Study.load(study)
        finished = _runs(_name(path), sidecar, overrides, columns)
        paths = _name(study), _name(path)
        return compare_outcomes(paths, loaded.posterior, loaded.recommendation, finished)
    runs = [_only_run(name, sidecar, overrides, columns) for name in names]
    return compare_runs(names, runs[0], runs[1])


def _name(item: Study | str | Path) -> str:
    """Path, or that of a study."""
    return str(item if isinstance(item, str | Path) else item.path or "study not saved")


def _is_study(item: Study | str | Path) -> bool:
    """Whether it is one; where it is none that is said without loading what studies need."""
    if not isinstance(item, str | Path):
        return True
    if not (Path(item) / "manifest.json").is_file():
        return False
    from advisor.study.study import is_study

    return is_study(Path(item))


def _runs(
    path: str,
    sidecar: Path | None,
    overrides: Mapping[str, Any] | None,
    columns: Mapping[str, str] | None,
) -> list[PilotRun]:
    found = inspect([path], sidecar=sidecar, overrides=overrides, columns=columns)
    runs = [run for run in found.runs if run.copy_of is None]
    if not runs:
        why = "; ".join(f"{item.path.name}: {item.reason}" for item in found.unread[:3])
        raise InputError(
            "no run was found, and it is no study" + (f" ({why})" if why else ""),
            path=path,
            advice=f"Give a study, or a run in one of: {known_formats()}",
        )
    return runs


def _only_run(
    path: str,
    sidecar: Path | None,
    overrides: Mapping[str, Any] | None,
    columns: Mapping[str, str] | None,
) -> PilotRun:
    runs = _runs(path, sidecar, overrides, columns)
    if len(runs) > 1:
        named = ", ".join(run.id for run in runs[:MOST_NAMED])
        more = f" and {len(runs) - MOST_NAMED} more" if len(runs) > MOST_NAMED else ""
        raise InputError(
            f"there are {len(runs)} runs ({named}{more})",
            path=path,
            advice="Give the log of one of them; advisor inspect lists them with their paths",
        )
    return runs[0]
