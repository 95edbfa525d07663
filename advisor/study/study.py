"""A study: the folder that one answer leaves behind, and what can be asked of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from advisor import common
from advisor.advice import (
    NextPilot,
    Recommendation,
    export,
    next_pilot,
    trainer_configs,
    what_if_rows,
)
from advisor.diagnosis import Diagnosis
from advisor.errors import AdvisorError, InputError, StudyError, writing
from advisor.forecast import Forecaster
from advisor.model import Posterior
from advisor.runs import Trainer
from advisor.study.outcomes import Comparison, Section, came_of, compare_outcomes

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from advisor.reporting import Came
    from advisor.runs import PilotRun

MANIFEST = "manifest.json"
MISSING = "not-exported.txt"
POSTERIOR = "posterior.nc"
ANSWER = "recommendation.json"
REPORT = "report.html"
DIAGNOSES = "diagnosis.json"
KIND = "grpo-advisor study"

TOGETHER = (POSTERIOR, ANSWER, DIAGNOSES)
"""Files of one answer: the manifest has their hashes. What people edit (a launch config) or write
again (the page) is next to them."""

LOOKS, PAUSE = 5, 0.1  # Looks at a study that is being replaced, and seconds between them


@dataclass(frozen=True, repr=False)
class Study:
    """A posterior, what was advised from it, and the folder that holds both.

    Attributes
    ----------
    posterior : Posterior
    recommendation : Recommendation
    diagnoses : tuple of Diagnosis
        Of the pilots.
    path : Path or None
        Folder of the study; None where it was not saved yet.
    finished : tuple of PilotRun
        Runs that were made since, whose outcome the page shows next to the forecast. The
        folder keeps them in the page alone.

    Examples
    --------
    ::

        study = advisor.Study(posterior, advisor.advise(posterior, steps=500)).save("study")
        study = advisor.Study.load("study")
        study.what_if(learning_rate=[1e-6, 2e-6])
        print(study.export("verl", devices=8))
    """

    posterior: Posterior
    recommendation: Recommendation
    diagnoses: tuple[Diagnosis, ...] = ()
    path: Path | None = None
    finished: tuple[PilotRun, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Load what a study folder holds; needs neither PyMC nor ArviZ.

        Parameters
        ----------
        path : path-like
            Written by `Study.save`, ``advisor advise`` or ``advisor demo``.

        Returns
        -------
        study : Study

        Raises
        ------
        StudyError
            It is no study, incomplete, or one of another version.
        """
        at = Path(path)
        for look in range(LOOKS):
            before = _identity(at)
            try:
                return cls._loaded(at)
            except StudyError:
                # Another process may have put a new study in its place meanwhile.
                if _identity(at) == before or look == LOOKS - 1:
                    raise
                time.sleep(PAUSE)
        raise AssertionError("the last look returns or raises")

    @classmethod
    def _loaded(cls, path: Path) -> Study:
        """Load a study as it is now."""
        at = common.standing(path)
        manifest = _manifest(at)
        if manifest is None:
            advice = "Give the folder that advisor advise or advisor demo wrote"
            raise StudyError("it is no study", path=path, advice=advice)
        held = {name: _held(at / name, manifest) for name in TOGETHER}
        recommendation = _answer(at / ANSWER, held[ANSWER])
        draws = held[POSTERIOR]
        if draws is None:
            raise _damaged(at / POSTERIOR, "its posterior is missing")
        posterior = Posterior.from_bytes(draws, at / POSTERIOR)
        if posterior.meta.provenance != recommendation.provenance:
            raise _damaged(at, "its posterior and its answer are of different fits")
        return cls(posterior, recommendation, _diagnoses(at / DIAGNOSES, held[DIAGNOSES]), path)

    def save(self, path: str | Path, *, progress: bool | common.Progress | None = None) -> Study:
        """Write a study folder, whole or not at all: posterior, answer, configs, figures, report.

        Parameters
        ----------
        path : path-like
            Replaced where it already holds a study; refused where it holds anything else.
        progress : bool or callable, optional
            True prints to standard error.

        Returns
        -------
        study : Study
            The same, with its folder.

        Raises
        ------
        InputError
            The folder exists and is no study, or cannot be written: then the study is kept in a
            second place, which the `KeptElsewhereError` names.
        """
        out = Path(path)
        check_folder(out)
        report_progress = common.progress_of(progress)
        common.or_keep(
            lambda place: self._written(place, report_progress), out, "the study", "out", "folder"
        )
        return replace(self, path=out)

    def _written(self, out: Path, progress: common.Progress) -> None:
        """Write the folder."""
        from advisor.reporting import drawings_made, plot, report

        posterior, advice = self.posterior, self.recommendation
        with common.replacing(out, lambda line: progress(line, None, "")) as draft:
            check_folder(out)  # another may have put something there meanwhile
            progress("Saving the posterior", 0.0, "")
            posterior.save(draft / POSTERIOR)
            progress("Writing the recommendation", 1 / 6, "")
            _write(draft / ANSWER, advice.to_json())
            _write(draft / "recommendation.txt", common.harmless(advice.text) + "\n")
            progress("Writing the trainer configs", 2 / 6, "")
            configs, missing = trainer_configs(advice)
            _write_configs(configs, missing, draft)
            progress("Drawing figures", 3 / 6, "")
            drawn = drawings_made(posterior, advice, self._came)
            plot(posterior, advice, draft / "figures", drawn=drawn)
            progress("Writing the diagnosis", 4 / 6, "")
            if self.diagnoses:
                _write(draft / DIAGNOSES, Diagnosis.json_of(self.diagnoses))
            progress("Writing the report", 5 / 6, "")
            report(posterior, advice, draft / REPORT, drawn=drawn, **self._page(configs))
            files = sorted(
                file.relative_to(draft).as_posix() for file in draft.rglob("*") if file.is_file()
            )
            manifest = {
                "kind": KIND,
                "files": files,
                "sha256": {n: _sha256((draft / n).read_bytes()) for n in TOGETHER if n in files},
                "provenance": advice.provenance.model_dump(),
            }
            _write(draft / MANIFEST, json.dumps(manifest, indent=2))

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the saved study, relative to its folder; the manifest comes last."""
        manifest = None if self.path is None else _manifest(self.path)
        return () if manifest is None else (*manifest["files"], MANIFEST)

    def what_if(
        self, *, at_step: int | None = None, **changes: npt.ArrayLike | None
    ) -> pd.DataFrame:
        """Evaluate other settings under the answer's target, price and seed noise.

        As `advisor.what_if`, but what is not given is as advised, so that ``study.what_if()``
        repeats the answer's numbers.
        With ``at_step`` the advised run changes to these settings on its way. The forecast is
        then of a run that is alive by that step. No pilot has shown such a change.
        """
        import pandas as pd

        return pd.DataFrame(self.what_if_rows(at_step=at_step, **changes))

    def what_if_rows(
        self, *, at_step: int | None = None, **changes: npt.ArrayLike | None
    ) -> list[dict[str, Any]]:
        """Rows of `what_if`, of the same changes, without pandas, whose import takes longer."""
        advice = self.recommendation
        if changes.get("steps") is None:
            changes["steps"] = advice.steps
        own = advice.settings
        return what_if_rows(self._forecaster, advice.terms.cost_model, own, changes, at_step)

    def next_pilot(self, *, steps: int | None = None, seed: int | None = None) -> NextPilot:
        """Name the pilot whose result would improve the decision most; see `advisor.next_pilot`."""
        return next_pilot(self.posterior, self.recommendation, steps=steps, seed=seed)

    def export(
        self,
        trainer: str | None = None,
        devices: int | None = None,
        schedule: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> str:
        """Text of a trainer's configuration; see `advisor.export`."""
        return export(self.recommendation, trainer, devices, schedule, settings)

    def plot(
        self,
        name: str = "all",
        path: str | Path | None = None,
        *,
        formats: Sequence[str] = ("png", "svg"),
    ) -> list[Path]:
        """Draw a figure, or all, into a folder: by default the study's; see `advisor.plot`."""
        from advisor.reporting import drawings, plot

        named = None if name == "all" else [name]
        drawn = drawings(self.posterior, self.recommendation, named, self._came)
        if path is not None:
            return plot(self.posterior, self.recommendation, path, formats=formats, drawn=drawn)
        shown = {f"{one.name}.{kind}": one.rendered(kind) for one in drawn for kind in formats}
        return self.add_figures(shown)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report, by default in place of the study's own."""
        from advisor.reporting import drawings_made, report

        if path is None and self.path is None:
            raise InputError("the study has no folder yet", argument="path", advice="Name a file")
        out = (self.path or Path()) / REPORT if path is None else Path(path)
        is_own = path is None and self.path is not None
        lock = common.owned(self.path) if is_own and self.path else contextlib.nullcontext()
        with writing("the report", out, "study"), lock:
            page = self._page(trainer_configs(self.recommendation)[0])
            drawn = drawings_made(self.posterior, self.recommendation, self._came)
            return report(self.posterior, self.recommendation, out, drawn=drawn, **page)

    def add_figures(self, files: Mapping[str, bytes]) -> list[Path]:
        """Write figures, bytes by file name, into the folder in place of those of the same name."""
        if self.path is None:
            raise InputError("the study has no folder yet", argument="out", advice="Name a file")
        folder = self.path / "figures"
        with writing("the figures", folder, "out"), common.owned(self.path):
            # Another process may have put a new study there until now.
            manifest = _manifest(self.path)
            if manifest is None:
                problem = "it is no study any more"
                raise InputError(problem, path=self.path, argument="out", advice="Name a file")
            for name, data in files.items():
                common.write_whole(folder / name, data)
            held = {*manifest["files"], *(f"figures/{name}" for name in files)}
            manifest["files"] = sorted(held)
            common.write_whole(self.path / MANIFEST, json.dumps(manifest, indent=2))
        return [folder / name for name in files]

    @cached_property
    def _forecaster(self) -> Forecaster:
        """Forecaster with the seed noise of the answer."""
        advice = self.recommendation
        return Forecaster(self.posterior, advice.target, seed=advice.terms.seed)

    def _page(self, configs: Mapping[str, str]) -> dict[str, Any]:
        """What the page shows besides figures; why there is no outcome where it cannot be had."""
        try:
            found = self.outcome()
            outcome = None if found is None else found.sections[0].table(found.heads)
        except AdvisorError as error:
            outcome = Section("Forecast and outcome", (), (str(error),)).table(())
        return {"diagnoses": self.diagnoses, "configs": configs, "outcome": outcome}

    @property
    def _came(self) -> list[Came]:
        """How the finished runs ended, of those that can be compared."""
        try:
            return came_of(self.posterior, self.recommendation, self.finished)
        except AdvisorError:  # the page says why
            return []

    def outcome(self) -> Comparison | None:
        """Forecasts next to the ends of the finished runs, as `advisor.compare` shows them."""
        if not self.finished:
            return None
        paths = str(self.path or "study"), "finished runs"
        return compare_outcomes(paths, self.posterior, self.recommendation, self.finished)

    def __repr__(self) -> str:
        """Folder, target, and the first line of the answer."""
        advice, where = self.recommendation, str(self.path) if self.path else "not saved"
        return (
            f"Study({where!r}: {advice.evidence.pilots} pilots, {advice.target.model} on "
            f"{advice.target.task}, {advice.steps} steps)\n{advice.summary.splitlines()[0]}"
        )


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something other than a study, before any work is done."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    manifest = _manifest(folder)
    if manifest is None:
        problem = "it exists and is no study: nothing was overwritten"
        raise InputError(problem, path=folder, argument="out", advice="Choose another folder")
    own = {MANIFEST, *manifest["files"]}
    held = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(common.DRAFT)
    }
    if held - own:
        raise InputError(
            f"a new study would take the place of this one, and '{min(held - own)}' in it is not "
            "the advisor's: nothing was overwritten",
            path=folder,
            argument="out",
            advice="Move the file, or choose another folder",
        )


def check_place(folder: Path) -> None:
    """Prove, before any work is done, that a study can be written."""
    with writing("the study", folder, "out"):
        check_folder(folder)
    common.check_output(folder, "the study", "out", "folder")


def is_study(folder: Path) -> bool:
    """Whether a folder was written by `Study.save`."""
    return _manifest(common.standing(folder)) is not None


def _identity(folder: Path) -> object:
    """What changes when another study takes a folder's place."""
    try:
        return (folder / MANIFEST).stat().st_ino
    except OSError:
        return None


def _manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a study, or None where the folder holds none of ours."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        return None
    files, hashes = found.get("files"), found.setdefault("sha256", {})
    is_whole = isinstance(files, list) and all(isinstance(name, str) for name in files)
    return found if is_whole and isinstance(hashes, dict) else None


def _held(file: Path, manifest: Mapping[str, Any]) -> bytes | None:
    """Bytes of a file of a study, as they were written; None where the study has none."""
    wanted = manifest["sha256"].get(file.name)
    try:
        held = file.read_bytes() if file.is_file() else None
    except OSError as error:
        raise _damaged(file, f"it cannot be read ({error.strerror})") from error
    if held is None and wanted is not None:
        raise _damaged(file, "the study had this file when it was written, and half was copied")
    if held is not None and wanted is not None and _sha256(held) != wanted:
        raise _damaged(file, "it is not the file that was written with this study")
    return held


def _damaged(path: Path, problem: str) -> StudyError:
    return StudyError(
        problem, path=path, advice="Copy the whole study again, or run advisor advise again"
    )


def _sha256(held: bytes) -> str:
    return hashlib.sha256(held).hexdigest()


def _answer(file: Path, held: bytes | None) -> Recommendation:
    """Saved answer; refuses a damaged one, and that of another version."""
    try:
        return Recommendation.model_validate_json(held or b"")
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])[:80]
        raise StudyError(
            "its answer is missing or damaged"
            if first["type"] == "json_invalid"
            else f"its answer cannot be read (at '{key}'): it was written by another version",
            path=file,
            advice="Run advisor advise on the pilots again",
        ) from error


def _diagnoses(file: Path, held: bytes | None) -> tuple[Diagnosis, ...]:
    """Diagnoses of the pilots; empty where the study holds none."""
    try:
        return TypeAdapter(tuple[Diagnosis, ...]).validate_json(held or b"[]")
    except ValidationError as error:
        raise _damaged(file, "the diagnoses of its pilots are damaged") from error


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _write_configs(configs: Mapping[str, str], missing: Mapping[str, str], folder: Path) -> None:
    files = {name: export.file_name for name, export in Trainer.exports().items()}
    for name, text in configs.items():
        _write(folder / files[name], text)
    if missing:
        lines = [f"{files[name]}: not written. {why}" for name, why in missing.items()]
        _write(folder / MISSING, "\n".join(lines) + "\n")
