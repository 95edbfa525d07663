"""What ``advisor priors learn`` is given: saved posteriors, study folders, folders of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.common import EngineSettings, Progress
    from advisor.findings import PastStudy
    from advisor.model import Priors
    from advisor.runs import PilotRun

POSTERIOR = "posterior.nc"


@dataclass(frozen=True)
class Told:
    """What all sources said.

    Attributes
    ----------
    studies : list of PastStudy
    base : Priors
        What is believed where they say nothing.
    passed_over : list of str
        Logs, runs and cohorts that say nothing, and why.
    """

    studies: list[PastStudy]
    base: Priors
    passed_over: list[str]

    @property
    def is_learned_again(self) -> bool:
        """Whether the base was itself learned from past studies."""
        from advisor.model import preset_names

        return bool(self.base.learned_from) and self.base.name not in preset_names()

    def learned(self, name: str) -> Priors:
        """Preset for the next study."""
        from advisor.findings import learn_from_studies

        return learn_from_studies(self.studies, base=self.base, name=name)


def read(
    sources: Sequence[str],
    base: str | None,
    beside: dict[str, Any],
    where: EngineSettings,
    progress: Progress,
) -> Told:
    """Read all sources, and fit what is not fitted yet.

    Raises
    ------
    InputError
        A posterior cannot be read, nothing says anything, or what was fitted under different
        presets needs a base to be named.
    """
    from advisor.backtesting import grouped
    from advisor.errors import InputError
    from advisor.findings import (
        check_studies,
        read_history,
        read_posteriors,
        refuse_different_presets,
    )
    from advisor.model import Posterior, load_priors

    files, folders = _sorted_out(sources)
    start = None if base is None else load_priors(base)
    studies = read_posteriors(files, progress=progress, on={"engine": where["engine"]})
    if start is None and studies:
        refuse_different_presets(studies)
        start = Posterior.load(files[0]).meta.priors
    if start is not None:
        check_studies(studies, start, [str(file) for file in files])
    if not folders:
        assert start is not None
        return Told(studies, start, [])
    finished, passed_over = _finished(folders, beside)
    start = start or _preset_of(finished)
    fresh, known = _each_once(finished, start, studies)
    found = read_history(grouped(fresh), start, progress=progress, on=where)
    passed_over = [*known, *passed_over, *found.left_out, *found.repeated]
    if not studies and not found.told:
        raise InputError(
            f"nothing there says anything ({len(passed_over)} passed over; for example "
            f"{next(iter(passed_over), 'no run')})",
            advice="Give finished runs with their settings, four or more of a task and model",
        )
    return Told([*studies, *found.told], start, passed_over)


def _sorted_out(sources: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Saved posteriors, of study folders those within, and where runs are."""
    from advisor.runs import is_source
    from advisor.study import is_study

    files: list[Path] = []
    folders: list[str] = []
    for text in sources:
        if is_source(text):
            folders.append(text)
            continue
        source = Path(text)
        within = sorted(at.parent for at in source.rglob(POSTERIOR) if is_study(at.parent))
        if within:
            files += [folder / POSTERIOR for folder in within]
        elif source.is_dir() or (source.exists() and source.suffix != ".nc"):
            folders.append(text)
        else:
            files.append(source)
    return files, folders


def _finished(folders: Sequence[str], beside: dict[str, Any]) -> tuple[list[PilotRun], list[str]]:
    """Finished runs; logs that cannot be read are named, not in the way."""
    from advisor.backtesting import finished_runs
    from advisor.common import counted
    from advisor.runs import NO_LOG, inspect

    found = inspect(folders, **beside)
    unread = [f"{one.path}: {one.reason}" for one in found.unread if one.reason not in NO_LOG]
    others = [one.path for one in found.unread if one.reason in NO_LOG]
    if others:
        held = "holds" if len(others) == 1 else "hold"
        files = counted(len(others), "file")
        unread.append(f"{files} that {held} no run, for example {others[0]}")
    finished, left_out = finished_runs(found.runs)
    return finished, [*unread, *left_out]


def _each_once(
    runs: Sequence[PilotRun], base: Priors, studies: Sequence[PastStudy]
) -> tuple[list[PilotRun], list[str]]:
    """Runs that nothing else has learned from, and why the others are passed over."""
    from advisor.runs import fingerprint

    owner = dict.fromkeys(base.learned_from, f"the base '{base.name}' has learned from it")
    for study in studies:
        for past in study.runs:
            owner.setdefault(past.fingerprint, "a posterior that is given too was fitted to it")
    fresh, known = [], []
    for run in runs:
        mark = fingerprint(run)
        if mark and mark in owner:
            known.append(f"{run.id}: {owner[mark]}, and it would count twice")
            continue
        owner[mark] = f"it begins as {run.id} does"
        fresh.append(run)
    return fresh, known


def _preset_of(runs: Sequence[PilotRun]) -> Priors:
    """Preset whose evidence all runs lie in."""
    from advisor.model import load_priors, preset_for

    return load_priors(preset_for(runs)[0])
