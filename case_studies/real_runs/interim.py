"""Fit every cohort of finished real runs under wide priors, then learn presets from all of them.

Both stages are the package's (`cohort_fits`). The first is kept in a folder as lines
of JSON, so that a repository can be left out of the second in a second.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from cohort_fits import History, read_history
from learned_priors import PastStudy

from advisor.common import progress_of, usable_jobs
from advisor.model import NormalPrior, Priors, load_priors
from advisor.runs import PilotRun

HERE = Path(__file__).parent
INTERIM = HERE / "interim.toml"
BEFORE = "theory"
"""What was believed of language models before any of these runs was looked at."""

ONE_SIDED = ("hazard_level", "plateau_loss_level")
"""Entries that only runs which fell, or lost, narrow: a meta-analysis of those would learn that
all do."""


def interim_studies(
    cohorts: Sequence[Sequence[PilotRun]], folder: Path
) -> list[tuple[int, PastStudy]]:
    """What every cohort that teaches something says, with its number; kept in a folder."""
    found: History = read_history(
        [(f"cohort {number}", runs) for number, runs in enumerate(cohorts)],
        load_priors(INTERIM),
        progress=progress_of(True),
        on={"jobs": usable_jobs(), "keep": folder},
    )
    return [(i, study) for i, study in enumerate(found.studies) if study is not None]


def learned_preset(studies: Sequence[PastStudy], name: str) -> Priors:
    """Preset that such cohorts teach, where nothing else was believed than before them."""
    before, wide = load_priors(BEFORE), load_priors(INTERIM)
    learned = History(tuple(studies), ()).learned(before, name)
    changed = {}
    for entry in type(learned).model_fields:
        found = getattr(learned, entry)
        if entry in ONE_SIDED:
            changed[entry] = getattr(before, entry)
        elif isinstance(found, NormalPrior) and found.sd > getattr(wide, entry).sd:
            changed[entry] = found.model_copy(update={"sd": getattr(wide, entry).sd})
    return learned.model_copy(update=changed)
