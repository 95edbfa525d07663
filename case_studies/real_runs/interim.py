"""Fit every cohort of finished real runs under wide priors, then learn presets from all of them.

The first stage runs in parallel and is kept in a folder; the second is a meta-analysis over the
cohorts' draws with the wide priors divided out (`advisor.findings.learned_priors`), so that a
repository can be left out of it in a second.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from advisor.errors import InputError
from advisor.findings.learned_priors import learn_priors
from advisor.model.families import SPECTRUM
from advisor.model.posterior import Posterior
from advisor.model.priors import Priors, load_priors
from advisor.model.priors.loader import NormalPrior
from advisor.model.sampling import Sampling, cohort_of, sampled
from advisor.run.pilot_run import PilotRun
from advisor.run.progress import silent

HERE = Path(__file__).parent
INTERIM = HERE / "interim.toml"
BEFORE = "theory"
"""What was believed of language models before any of these runs was looked at."""

ATTEMPTS = (
    Sampling(draws=500, tune=700, target_accept=0.95),
    Sampling(draws=1500, tune=1000, target_accept=0.97, seed=2),
)
ONE_SIDED = ("hazard_level", "plateau_loss_level")
"""Entries that only runs which fell, or lost, narrow: a meta-analysis of those would learn that
all do."""

NOT_SAMPLED = {"stability_line", "speed_law", "domain"}
"""Entries of a preset on which no draw turns: fits are kept across their changes."""

RHAT, ESS, DIVERGENT = 1.05, 100.0, 0.02
"""Gate of the first stage: moments of draws are wanted, not their tails."""


def interim_posteriors(
    cohorts: Sequence[Sequence[PilotRun]], folder: Path
) -> list[tuple[int, Posterior]]:
    """Posterior of every cohort that teaches something, with its number; kept in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(_fitted, list(runs), folder) for runs in cohorts]
        paths = [job.result() for job in jobs]
    return [(i, Posterior.load(path)) for i, path in enumerate(paths) if path is not None]


def learned_preset(posteriors: Sequence[Posterior], name: str) -> Priors:
    """Preset that such posteriors teach, where nothing else was believed than before them."""
    own, marks = [], set[str]()
    for posterior in posteriors:
        told = {run.fingerprint for run in posterior.meta.runs if run.fingerprint}
        if not told & marks:  # a log that stands in two folders counts once
            own.append(posterior)
            marks |= told
    before, wide = load_priors(BEFORE), load_priors(INTERIM)
    learned = learn_priors(own, base=before, name=name)
    changed = {}
    for entry in type(learned).model_fields:
        found = getattr(learned, entry)
        if entry in ONE_SIDED:
            changed[entry] = getattr(before, entry)
        elif isinstance(found, NormalPrior) and found.sd > getattr(wide, entry).sd:
            changed[entry] = found.model_copy(update={"sd": getattr(wide, entry).sd})
    return learned.model_copy(update=changed)


def _fitted(runs: list[PilotRun], folder: Path) -> Path | None:
    """File of the posterior of one cohort; None where its runs teach nothing."""
    warnings.simplefilter("ignore")
    priors = load_priors(INTERIM)
    try:
        cohort = cohort_of(runs)
    except InputError:
        return None
    mark = hashlib.sha256(
        (cohort.digest + priors.model_dump_json(exclude=NOT_SAMPLED)).encode()
    ).hexdigest()[:16]
    path, refused = folder / f"{mark}.nc", folder / f"{mark}.refused"
    if path.exists() or refused.exists():
        return path if path.exists() else None
    for attempt in ATTEMPTS:
        posterior = sampled(cohort, priors, SPECTRUM, attempt, silent)
        why = posterior.convergence.complaint(RHAT, ESS, DIVERGENT)
        if why is None:
            posterior.save(path)
            return path
    refused.write_text(f"{why}\n", encoding="utf-8")
    return None
