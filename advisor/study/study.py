"""A study: the folder that one answer leaves behind."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from advisor.advice import Recommendation
from advisor.diagnosis import Diagnosis
from advisor.diagnosis.text import as_json
from advisor.errors import InputError, StudyError, unwritable
from advisor.model.compat import Progress
from advisor.model.posterior import Posterior
from advisor.trainers.export import export_config
from advisor.trainers.registry import exports

if TYPE_CHECKING:
    from advisor.reporting.figures.figure import Drawn

MANIFEST = "manifest.json"
REPORT = "report.html"
DIAGNOSES = "diagnosis.json"
KIND = "grpo-advisor study"


def write_study(
    folder: str | Path,
    posterior: Posterior,
    advice: Recommendation,
    progress: Progress,
    diagnoses: Sequence[Diagnosis] = (),
) -> list[Path]:
    """Write a study folder, whole or not at all.

    Parameters
    ----------
    folder : path-like
        Replaced where it already holds a study; refused where it holds anything else.
    posterior : Posterior
    advice : Recommendation
    progress : callable
    diagnoses : sequence of Diagnosis
        Of the pilots.

    Returns
    -------
    files : list of Path

    Raises
    ------
    InputError
        The folder exists and is no study, or cannot be written.
    """
    from advisor.reporting import draw_all, drawings, write_report

    drawn = cache(lambda: drawings(posterior, advice))
    configs = _configs(advice)
    out = Path(folder)
    check_folder(out)
    steps: list[tuple[str, Callable[[Path], object]]] = [
        ("Saving the posterior", lambda at: posterior.save(at / "posterior.nc")),
        ("Writing the recommendation", lambda at: _write_answer(advice, at)),
        ("Writing the trainer configs", lambda at: _write_configs(configs, at)),
        ("Drawing figures", lambda at: draw_all(posterior, advice, at / "figures", drawn=drawn())),
        ("Writing the diagnosis", lambda at: _write_diagnoses(diagnoses, at)),
        (
            "Writing the report",
            lambda at: write_report(
                posterior,
                advice,
                at / REPORT,
                diagnoses=diagnoses,
                configs=configs,
                drawn=drawn(),
            ),
        ),
    ]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
            draft = Path(scratch) / "study"
            draft.mkdir()
            for index, (what, write) in enumerate(steps):
                progress(what, index / len(steps), "")
                write(draft)
            names = sorted(p.relative_to(draft).as_posix() for p in draft.rglob("*") if p.is_file())
            manifest = {
                "kind": KIND,
                "files": names,
                "provenance": advice.provenance.model_dump(),
            }
            (draft / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
            if out.exists():
                shutil.rmtree(out)
            draft.rename(out)
    except OSError as error:
        raise unwritable("the study", error, out, "out") from error
    return [out / name for name in [*names, MANIFEST]]


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something other than a study, before any work is done.

    Raises
    ------
    InputError
        It exists and is no study, or holds files that no study wrote.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    manifest = _manifest(folder)
    if manifest is None:
        raise InputError(
            "it exists and is no study: nothing was overwritten",
            path=folder,
            argument="out",
            advice="Choose another folder",
        )
    own = {MANIFEST, *manifest["files"]}
    held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    if held - own:
        raise InputError(
            f"a new study would take the place of this one, and '{min(held - own)}' in it is not "
            "the advisor's: nothing was overwritten",
            path=folder,
            argument="out",
            advice="Move the file, or choose another folder",
        )


def is_study(folder: Path) -> bool:
    """Whether a folder was written by :func:`write_study`."""
    return _manifest(folder) is not None


def _manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a study, or None where the folder holds none of ours."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("kind") == KIND else None


def load_study(folder: str | Path) -> tuple[Posterior, Recommendation]:
    """Load what a study folder holds.

    Parameters
    ----------
    folder : path-like
        Written by :func:`write_study`.

    Returns
    -------
    posterior : Posterior
    advice : Recommendation

    Raises
    ------
    StudyError
        It is no study, incomplete, or one of another version.
    """
    at = Path(folder)
    if _manifest(at) is None:
        raise StudyError(
            "it is no study",
            path=at,
            advice="Give the folder that advisor advise or advisor demo wrote",
        )
    try:
        text = (at / "recommendation.json").read_text(encoding="utf-8")
        advice = Recommendation.model_validate(json.loads(text))
    except ValidationError as error:
        key = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise StudyError(
            f"its answer cannot be read (at '{key}'): it was written by another version",
            path=at / "recommendation.json",
            advice="Run advisor advise on the pilots again",
        ) from error
    except (OSError, ValueError) as error:
        raise StudyError(
            "its answer is missing or damaged",
            path=at / "recommendation.json",
            advice="Run advisor advise on the pilots again",
        ) from error
    return Posterior.load(at / "posterior.nc"), advice


def trainer_config(advice: Recommendation, framework: str, devices: int | None = None) -> str:
    """Text of a trainer's configuration that runs what was advised.

    Parameters
    ----------
    advice : Recommendation
    framework : str
        Name of an export: ``trl``, ``verl``, ``openrlhf`` or a registered one.
    devices : int, optional
        By default those that the advice was for.

    Notes
    -----
    A decaying schedule keeps the length of the budget: cut short, it would be another schedule. A
    run with a goal is then stopped by hand where the goal is reached.
    """
    decays = advice.settings.schedule not in (None, "constant")
    steps = advice.settings.planned_steps if decays else None
    origin = advice.provenance
    note = [
        f"Advised by grpo-advisor {origin.package} for {advice.target.model} on "
        f"{advice.target.task}, from pilots {origin.data_sha256[:8]} under priors "
        f"'{advice.priors}', seed {advice.seed}."
    ]
    if advice.kind != "recommendation":
        note.insert(0, f"NOT a recommendation ({advice.kind}): see recommendation.json.")
    return export_config(
        advice.settings,
        steps or advice.steps,
        framework,
        devices=devices or advice.devices,
        model=advice.target.model,
        note="\n".join(note),
    )


def _write_answer(advice: Recommendation, folder: Path) -> None:
    (folder / "recommendation.json").write_text(advice.to_json(), encoding="utf-8")
    (folder / "recommendation.txt").write_text(advice.text + "\n", encoding="utf-8")


def load_diagnoses(folder: str | Path) -> list[Diagnosis]:
    """Diagnoses of the pilots of a study; empty where it holds none."""
    try:
        found = json.loads((Path(folder) / DIAGNOSES).read_text(encoding="utf-8"))
        return [Diagnosis.model_validate(one) for one in found]
    except (OSError, ValueError):
        return []


def rewrite_report(folder: str | Path, more: Sequence[Drawn] = ()) -> Path:
    """Write the report of a study anew, in its place.

    Parameters
    ----------
    folder : path-like
    more : sequence of Drawn
        Figures besides those that every report shows: the check of forecasts.

    Raises
    ------
    StudyError
        It is no study, incomplete, or one of another version.
    InputError
        The file cannot be written.
    """
    from advisor.reporting import drawings, write_report

    posterior, advice = load_study(folder)
    out = Path(folder) / REPORT
    try:
        return write_report(
            posterior,
            advice,
            out,
            diagnoses=load_diagnoses(folder),
            configs=_configs(advice),
            drawn=[*drawings(posterior, advice), *more],
        )
    except OSError as error:
        raise unwritable("the report", error, out, "study") from error


def _write_diagnoses(diagnoses: Sequence[Diagnosis], folder: Path) -> None:
    if diagnoses:
        (folder / DIAGNOSES).write_text(as_json(diagnoses), encoding="utf-8")


def _configs(advice: Recommendation) -> dict[str, str]:
    """Config of every framework that can run the advised settings.

    Why another cannot is said by ``advisor export``.
    """
    found = {}
    for name in exports():
        try:
            found[name] = trainer_config(advice, name)
        except InputError:
            continue
    return found


def _write_configs(configs: dict[str, str], folder: Path) -> None:
    for name, text in configs.items():
        (folder / exports()[name].file_name).write_text(text, encoding="utf-8")
