"""``advisor priors``: look at a preset, learn one from past posteriors and finished runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.cli import flags
from advisor.cli.flags import echo
from advisor.common import counted
from advisor.errors import InputError

if TYPE_CHECKING:
    from advisor.cli.terminal import HarmlessConsole
    from advisor.common import EngineSettings, Progress
    from advisor.findings import PastStudy
    from advisor.model import Priors
    from advisor.runs import PilotRun


def show(preset: str | None = None, as_json: bool = False) -> None:
    """List the presets, or show every number of one and the reward curves that it expects.

    [bold]Example[/]: advisor priors show lora
    """
    from advisor.cli.terminal import output, table
    from advisor.model import load_priors, preset_names, prior_predictive

    if preset is None:
        if as_json:
            listed = {"name", "description", "evidence"}
            presets = [load_priors(name).model_dump(include=listed) for name in preset_names()]
            echo(json.dumps(presets, indent=2))
        else:
            known = map(load_priors, preset_names())
            rows = [(one.name, one.evidence, one.description) for one in known]
            names = ("name", "evidence", "description")
            output().print(table(names, rows, title="Prior presets"))
        return
    priors = load_priors(preset)
    predictive = prior_predictive(priors)
    if as_json:
        echo(json.dumps(_as_dict(priors, predictive), indent=2))
        return
    console = output()
    show_preset(priors, console)
    console.say(f"\n{predictive.text}")


def learn(
    sources: list[str],
    out: Path,
    *,
    name: str | None = None,
    base: str | None = None,
    stated: flags.Stated,
    cohorts: flags.Cohorts,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Turn your past studies, or folders of finished runs, into a preset for the next study.

    What they agree on becomes narrower, what they do not touch stays as it is, and the preset
    remembers their data: it must not be scored on them. Finished runs are fitted by task and model
    first, wherever there are cores; with --keep a command that was stopped goes on where it was.

    [bold]Example[/]: advisor priors learn study-*/posterior.nc --out team.toml
    """
    from advisor.cli.terminal import Reporter, noted, output
    from advisor.findings import check_name, learn_from_studies
    from advisor.model import check_preset_file, preset_names, write_preset

    check_preset_file(out)
    called = out.stem if name is None else name
    check_name(called)  # before an hour of fits
    where = cohorts.keywords
    with Reporter(quiet=quiet) as progress, noted(quiet=quiet):
        studies, start, passed_over = _read(sources, base, stated.keywords, where, progress)
        learned = learn_from_studies(studies, base=start, name=called)
    if not quiet:
        for line in passed_over:
            echo(f"Note: passed over {line}.", err=True)
        if start.learned_from and start.name not in preset_names():
            echo(
                f"Note: the base '{start.name}' was learned itself. Learning on top of it "
                "takes how studies differ for doubt about their mean, and ends too sure. Give all "
                "studies at once, with --base the preset that the first of them started from.",
                err=True,
            )
    write_preset(out, learned)
    if as_json:
        echo(learned.model_dump_json(indent=2))
        return
    console = output()
    show_learned(learned, start, console)
    console.say(
        f"\nPreset '{learned.name}' in {out}. Use it with: advisor advise LOGS --priors {out}"
    )


READ_AS = {"exp": "e^x", "logistic": "share", "as is": "x"}


def show_preset(priors: Priors, console: HarmlessConsole) -> None:
    """Print every entry of a preset with its interval on the natural scale, then its source."""
    from rich.text import Text

    from advisor.cli.terminal import table
    from advisor.model import INTERVAL, prior_table

    rows = prior_table(priors)
    names = ("entry", "mean", "sd", f"{INTERVAL:.0%} interval", "scale")
    cells = []
    for row in rows:
        mean = "-" if row.mean is None else f"{row.mean:g}"
        reach = f"{row.lower:.2g} to {row.upper:.2g}"
        cells.append((row.name, mean, f"{row.sd:g}", reach, READ_AS[row.scale]))
    title = f"{priors.name}: {priors.description}"
    console.print(table(names, cells, right=names[1:4], title=title))
    for row in rows:
        console.print(Text.assemble((row.name, "bold"), f": {row.source}"))
    console.say()
    console.say(f"Evidence: {priors.evidence}.")
    if priors.learned_from:
        runs = counted(len(priors.learned_from), "run")
        console.say(f"Learned from {runs}: it may not be scored on them.")
    console.say(
        "Intervals are on the natural scale: of e^x where the entry is a log, of the share "
        "between 0 and 1 where it is a logit."
    )


def show_learned(learned: Priors, base: Priors, console: HarmlessConsole) -> None:
    """Print which entries a preset learned, beside what its base said."""
    from advisor.cli.terminal import table
    from advisor.model import INTERVAL, prior_table

    both = list(zip(prior_table(base), prior_table(learned), strict=True))
    moved = [(old, new) for old, new in both if (old.mean, old.sd) != (new.mean, new.sd)]
    names = ("entry", base.name, "learned", f"{INTERVAL:.0%} interval", "scale")
    rows = []
    for old, new in moved:
        means = [f"{row.mean or 0:.2f} ± {row.sd:.2f}" for row in (old, new)]  # half-normals at 0
        rows.append((new.name, *means, f"{new.lower:.2g} to {new.upper:.2g}", READ_AS[new.scale]))
    if moved:
        title = f"Learned: {len(moved)} of {len(both)} entries"
        console.print(table(names, rows, right=names[1:4], title=title))
    kept = [new.name for old, new in both if (old.mean, old.sd) == (new.mean, new.sd)]
    console.say(f"Kept from {base.name} ({len(kept)}): {', '.join(kept)}.")


def _as_dict(priors: Priors, predictive: Any) -> dict[str, Any]:
    """Every number of a preset and what it predicts."""
    from dataclasses import asdict

    from advisor.model import COLLAPSE_STEPS, REFERENCE, prior_table

    found: dict[str, Any] = {"reference": REFERENCE}
    for name in ("start", "plateau", "time"):
        found[name] = {"median": predictive.median(name), "bands": predictive.bands(name)}
    found["collapsed"] = {"steps": COLLAPSE_STEPS, "probability": predictive.collapsed}
    return {
        **priors.model_dump(include={"name", "description", "evidence", "learned_from"}),
        "entries": [asdict(row) for row in prior_table(priors)],
        "predictive": found,
    }


def _read(
    sources: Sequence[str],
    base: str | None,
    stated: dict[str, Any],
    where: EngineSettings,
    progress: Progress,
) -> tuple[list[PastStudy], Priors, list[str]]:
    """Past studies, of runs that are fitted first; what else is believed; what was passed over."""
    from advisor.backtesting import grouped
    from advisor.findings import (
        check_studies,
        read_history,
        read_posteriors,
        refuse_different_presets,
    )
    from advisor.model import Posterior, load_priors, preset_for

    files, folders = _sorted_out(sources)
    start = None if base is None else load_priors(base)
    studies = read_posteriors(files, progress=progress)
    if start is None and studies:
        refuse_different_presets(studies)
        start = Posterior.load(files[0]).meta.priors
    if start is not None:
        check_studies(studies, start, [str(file) for file in files])
    finished, passed_over = _finished(folders, stated) if folders else ([], [])
    start = start or load_priors(preset_for(finished)[0])
    if not folders:
        return studies, start, passed_over
    fresh, known = _each_once(finished, start, studies)
    found = read_history(grouped(fresh), start, progress=progress, on=where)
    passed_over = [*known, *passed_over, *found.left_out]
    studies = [*studies, *found.told]
    if not studies:
        raise InputError(
            f"nothing there says anything ({len(passed_over)} passed over; for example "
            f"{next(iter(passed_over), 'no run')})",
            advice="Give finished runs with their settings, four or more of a task and model",
        )
    return studies, start, passed_over


def _sorted_out(sources: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Saved posteriors, of study folders those within, and where runs are."""
    from advisor.runs import is_source
    from advisor.study import is_study

    files: list[Path] = []
    folders: list[str] = []
    for text in sources:
        source = Path(text)
        if is_source(text):
            folders.append(text)
        elif within := sorted(at for at in source.rglob("posterior.nc") if is_study(at.parent)):
            files += within
        elif source.is_dir() or (source.exists() and source.suffix != ".nc"):
            folders.append(text)
        else:
            files.append(source)
    return files, folders


def _finished(folders: Sequence[str], stated: dict[str, Any]) -> tuple[list[PilotRun], list[str]]:
    """Finished runs; logs that cannot be read are named, not in the way."""
    from advisor.backtesting import finished_runs
    from advisor.runs import inspect

    found = inspect(folders, **stated)
    logs = set(found.unread_logs)
    unread = [f"{one.path}: {one.reason}" for one in found.unread_logs]
    others = [one.path for one in found.unread if one not in logs]
    if others:
        hold = "holds" if len(others) == 1 else "hold"
        files = counted(len(others), "file")
        unread.append(f"{files} that {hold} no run, for example {others[0]}")
    finished, left_out = finished_runs(found.runs)
    return finished, [*unread, *left_out]


def _each_once(
    runs: Sequence[PilotRun], base: Priors, studies: Sequence[PastStudy]
) -> tuple[list[PilotRun], list[str]]:
    """Runs that nothing else has learned from, and why the others are passed over."""
    owner = dict.fromkeys(base.learned_from, f"the base '{base.name}' has learned from it")
    for study in studies:
        for past in study.runs:
            owner.setdefault(past.fingerprint, "a posterior that is given too was fitted to it")
    fresh, known = [], []
    for run in runs:
        mark = run.fingerprint
        if mark and mark in owner:
            known.append(f"{run.id}: {owner[mark]}, and it would count twice")
            continue
        owner[mark] = f"it begins as {run.id} does"
        fresh.append(run)
    return fresh, known
