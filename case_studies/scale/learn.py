"""Learn a preset from past studies or finished runs of a team.

    python case_studies/scale/learn.py SOURCE... --out team.toml [--keep FOLDER] [--jobs N]

A source is a posterior.nc, a folder of studies, or finished runs as `advisor inspect` reads them.
Finished runs are fitted by task and model first. What studies agree on becomes narrower, and what
they do not touch stays as it is. The preset remembers its data and must not be scored on them.
Use it with `advisor advise LOGS --priors team.toml`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cohort_fits import read_history, read_posteriors
from engine_flags import add_engine_flags, on_engine
from learned_priors import (
    PastStudy,
    check_name,
    check_studies,
    learn_from_studies,
    refuse_different_presets,
)
from preset_files import check_preset_file, write_preset

from advisor.backtesting import finished_runs, grouped
from advisor.cli.flags import pairs
from advisor.common import Progress, counted, progress_of
from advisor.errors import AdvisorError, InputError
from advisor.model import (
    Posterior,
    Priors,
    load_priors,
    preset_for,
    preset_names,
    prior_table,
)
from advisor.runs import PilotRun, inspect, is_source
from advisor.study import is_study


def sorted_out(sources: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Saved posteriors, those of study folders among them, and places with runs."""
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


def finished(
    folders: Sequence[str], stated: Sequence[str] | None
) -> tuple[list[PilotRun], list[str]]:
    """Finished runs, and what cannot be read or used."""
    found = inspect(folders, overrides=pairs(list(stated or ()), "--set"))
    logs = set(found.unread_logs)
    unread = [f"{one.path}: {one.reason}" for one in found.unread_logs]
    others = [one.path for one in found.unread if one not in logs]
    if others:
        unread.append(f"{counted(len(others), 'file')} without a run, for example {others[0]}")
    runs, left_out = finished_runs(found.runs)
    return runs, [*unread, *left_out]


def each_once(
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


def read(
    given: argparse.Namespace, progress: Progress
) -> tuple[list[PastStudy], Priors, list[str]]:
    """Past studies, runs fitted first; the preset to start from; what was passed over."""
    files, folders = sorted_out(given.sources)
    start = None if given.base is None else load_priors(given.base)
    studies = read_posteriors(files, progress=progress)
    if start is None and studies:
        refuse_different_presets(studies)
        start = Posterior.load(files[0]).meta.priors
    if start is not None:
        check_studies(studies, start, [str(file) for file in files])
    runs, passed_over = finished(folders, given.set) if folders else ([], [])
    start = start or load_priors(preset_for(runs)[0])
    if not folders:
        return studies, start, passed_over
    fresh, known = each_once(runs, start, studies)
    found = read_history(grouped(fresh), start, progress=progress, on=on_engine(given))
    passed_over = [*known, *passed_over, *found.left_out]
    studies = [*studies, *found.told]
    if not studies:
        raise InputError(
            f"no source can be learned from ({len(passed_over)} passed over; for example "
            f"{next(iter(passed_over), 'no run')})",
            advice="Give finished runs with their settings, four or more of a task and model",
        )
    return studies, start, passed_over


def show(learned: Priors, base: Priors) -> None:
    """Print the entries that a preset learned, next to those of its base."""
    both = list(zip(prior_table(base), prior_table(learned), strict=True))
    moved = [(old, new) for old, new in both if (old.mean, old.sd) != (new.mean, new.sd)]
    if moved:
        print(f"Learned: {len(moved)} of {len(both)} entries")
    for old, new in moved:
        means = [f"{row.mean or 0:.2f} ± {row.sd:.2f}" for row in (old, new)]
        print(f"  {new.name}: {means[0]} -> {means[1]}, {new.lower:.2g} to {new.upper:.2g}")
    kept = [new.name for old, new in both if (old.mean, old.sd) == (new.mean, new.sd)]
    print(f"Kept from {base.name} ({len(kept)}): {', '.join(kept)}.")


def learn(given: argparse.Namespace) -> None:
    """Read the sources, learn, write the preset and print it."""
    check_preset_file(given.out)
    name = given.out.stem
    check_name(name)  # before an hour of fits
    studies, start, passed_over = read(given, progress_of(True))
    learned = learn_from_studies(studies, base=start, name=name)
    for line in passed_over:
        print(f"Note: passed over {line}.", file=sys.stderr)
    if start.learned_from and start.name not in preset_names():
        print(
            f"Note: the base '{start.name}' was learned itself. A preset learned on top of it is "
            "too narrow. Give all studies at once, with --base the preset of the first of them.",
            file=sys.stderr,
        )
    write_preset(given.out, learned)
    show(learned, start)
    print(f"\nPreset '{name}' in {given.out}. Use it: advisor advise LOGS --priors {given.out}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn as the flags say; 2 where an input is refused."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("sources", nargs="+", help="posteriors, studies, finished runs")
    parser.add_argument("--out", type=Path, required=True, help="preset to write")
    parser.add_argument("--base", help="preset to start from [default: that of the sources]")
    parser.add_argument("--set", action="append", help="NAME=VALUE of all runs; repeat")
    add_engine_flags(parser)

    def note(message: Any, *_: Any, **__: Any) -> None:
        print(f"Note: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        try:
            learn(parser.parse_intermixed_args(arguments))
        except AdvisorError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
