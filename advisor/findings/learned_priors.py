"""A team's own preset: what its past posteriors say about the next study.

Every entry is meta-analysed by itself over the posteriors, each summed up by a `PastStudy`; of
levels each task or model is a unit, those of one task name together count as one task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor import model
from advisor.common import digest_of, scientific
from advisor.errors import InputError
from advisor.model import Domain, KnownOptimum, NormalPrior, Posterior, Priors, RunSummary
from advisor.theory import FloatArray

MOST_NAMED = 3
"""Posteriors that a source names; the others it counts."""

HASH = 8
"""Characters of a data hash that a source names."""

STUDY_SHARE = 0.16
"""Share of the variance of a base entry that is spread between studies, the rest being doubt about
their mean: with this share one perfect study that agrees with the base leaves half of its sd."""

TASK_SHARE = 0.5
"""The same for levels of tasks, of which one says little about the next."""

PSEUDO_STUDIES = 4
"""Degrees of freedom of the prior of the spread: with as many studies, half of what is known of
the spread is theirs."""

MONTE_CARLO_ERRORS = 3.0
"""Standard errors of a posterior's variance by which it must be below that of its prior."""

_GRID = np.linspace(np.log(1e-3), np.log(1e3), 600)
"""Log of the spread between studies over its prior scale."""


class PastRun(BaseModel):
    """A run of a past study; ``fingerprint`` is empty where it cannot be known again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    fingerprint: str
    parameters: float
    adapter: str
    optimizer: str


class PastStudy(BaseModel):
    """What the data of one study said, its prior divided out: a page of numbers, as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: str
    preset: str
    preset_digest: str
    tasks: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    runs: tuple[PastRun, ...]
    reference: model.Reference
    said: dict[str, tuple[tuple[float | None, ...], tuple[float | None, ...]]]
    best_learning_rate: float | None = None  # of the run that ended highest; older ones lack it


def past_study(posterior: Posterior) -> PastStudy:
    """Sum up a posterior for learning."""
    meta = posterior.meta
    said = {}
    names = {name.replace(".", "_"): name for name in model.POPULATION}
    for entry, prior in model.prior_entries(meta.priors).items():
        parameter = names.get(entry, entry)
        if not isinstance(prior, NormalPrior) or parameter not in posterior.draws:
            continue
        value, error = data_alone(posterior, parameter, getattr(meta.placed_priors, entry))
        said[entry] = _finite(value), _finite(error)
    return PastStudy(
        data=meta.provenance.data_sha256,
        preset=meta.priors.name,
        preset_digest=digest_of(meta.priors.model_dump(mode="json")),
        tasks=meta.tasks,
        groups=meta.groups,
        runs=tuple(
            PastRun(
                id=run.id,
                fingerprint=run.fingerprint,
                parameters=run.parameters,
                adapter=str(run.settings.adapter),
                optimizer=str(run.settings.optimizer),
            )
            for run in meta.runs
        ),
        reference=meta.reference,
        said=said,
        best_learning_rate=_best_learning_rate(meta.runs),
    )


def _best_learning_rate(runs: Sequence[RunSummary]) -> float | None:
    """Learning rate of the run whose last tenth stands highest; None where no row was kept."""
    logged = [run for run in runs if run.logged_rewards]
    if not logged:
        return None

    def ended(run: RunSummary) -> float:
        return float(np.mean(run.logged_rewards[-max(1, len(run.logged_rewards) // 10) :]))

    return max(logged, key=ended).settings.learning_rate


def data_alone(
    posterior: Posterior, parameter: str, prior: NormalPrior
) -> tuple[FloatArray, FloatArray]:
    """Estimates and standard errors of a parameter with its prior divided out."""
    draws = posterior.as_in_priors(parameter)
    draws = draws.reshape(*posterior.draws[parameter].shape[:2], -1)
    mean = draws.mean(axis=(0, 1))
    squares = (draws - mean) ** 2
    # Each variance by its own draws: the worst parameter of a fit mixes ten times as slowly as one
    # that the data say little about, and would silence it.
    effective_draws = model.convergence({parameter: squares})[parameter][1]
    return without_prior(mean, squares.mean(axis=(0, 1)), prior, effective_draws)


def _finite(values: Any) -> tuple[float | None, ...]:
    """Numbers, and None for those that are not: JSON has no NaN."""
    return tuple(float(value) if np.isfinite(value) else None for value in values)


@dataclass(frozen=True)
class Estimates:
    """What the data of past studies said about one entry, the prior divided out."""

    value: FloatArray
    error: FloatArray
    weight: FloatArray
    studies: tuple[int, ...]


def without_prior(
    mean: FloatArray, variance: FloatArray, prior: NormalPrior, effective_draws: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """What the data alone said: estimates and standard errors."""
    ratio = variance / prior.sd**2
    is_informed = 1 - ratio > MONTE_CARLO_ERRORS * np.sqrt(2 / effective_draws)
    left = np.where(is_informed, 1 - ratio, np.nan)
    return (mean - ratio * prior.mean) / left, np.sqrt(variance / left)


def new_study(found: Estimates, base: NormalPrior, share: float) -> tuple[float, float, float]:
    """Predict the parameter of a study to come (arXiv:2007.08352); weights are powers."""
    expected = share * base.sd**2
    doubt = base.sd**2 - expected
    spread = expected * np.exp(2 * _GRID)
    # The scale that makes the mean of an inverse chi-square variance the expected one.
    scale = expected * (PSEUDO_STUDIES - 2) / PSEUDO_STUDIES
    total = spread[:, None] + found.error**2
    precision = 1 / doubt + (found.weight / total).sum(axis=1)
    center = (base.mean / doubt + (found.weight * found.value / total).sum(axis=1)) / precision
    misfit = (found.weight * (found.value - center[:, None]) ** 2 / total).sum(axis=1)
    log_density = (
        -PSEUDO_STUDIES * (_GRID + scale / (2 * spread))
        - 0.5 * (found.weight * np.log(total)).sum(axis=1)
        - 0.5 * np.log(precision)
        - 0.5 * (misfit + (center - base.mean) ** 2 / doubt)
    )
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = density @ center
    variance = density @ (spread + 1 / precision + (center - mean) ** 2)
    return float(mean), float(np.sqrt(variance)), float(np.sqrt(density @ spread))


def learn_priors(
    posteriors: Sequence[Posterior], *, base: Priors | str | None = None, name: str = "team"
) -> Priors:
    """Turn past posteriors into a preset for the next study.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Of different data; they may have been fitted under different presets.
    base : Priors or str, optional
        What is believed where they say nothing [default: the preset they were all fitted under].
    name : str
        Of the new preset; none that comes with the package.

    Returns
    -------
    priors : Priors
        With a source for every entry, and the runs' fingerprints in ``learned_from``: on those
        runs it must not be scored.

    Raises
    ------
    InputError
        There is no posterior, two are of the same data or share a run, the base has learned from
        one of them, they were fitted under different presets and no base is named, or the name
        is taken.

    Notes
    -----
    A random-effects meta-analysis. Levels of plateau
    loss and collapse are at their anchors (:func:`advisor.model.equations.at_reference`); others
    such as ``log_slope`` are at each study's own reference configuration (the geometric mean of its
    pilots), moved to where the base's law of the speed stands, which is how a new study reads them.

    A learned preset is no base for the next: how studies differ would be taken for doubt about
    their mean, and what is learned would be too sure.
    """
    if not posteriors:
        raise InputError("there is no posterior to learn from", advice="Give at least one")
    studies = [past_study(one) for one in posteriors]
    if base is None:
        refuse_different_presets(studies)
    start = posteriors[0].meta.priors if base is None else base
    base = model.load_priors(start) if isinstance(start, str) else start
    return learn_from_studies(studies, base=base, name=name)


def learn_from_studies(studies: Sequence[PastStudy], *, base: Priors, name: str = "team") -> Priors:
    """Turn what past studies said into a preset: `learn_priors` without their draws."""
    check_name(name)
    check_studies(studies, base)
    learned = {}
    for entry, prior in model.prior_entries(base).items():
        found = _estimates(studies, entry, base)
        if found is None or not isinstance(prior, NormalPrior):
            kept = f"Kept from {base.name}: no posterior narrowed it."
            source = f"{prior.source.removesuffix('.')}. {kept}"
            learned[entry] = {**prior.model_dump(), "source": source}
            continue
        is_level = entry in model.TASK_LEVELS + model.GROUP_LEVELS
        mean, sd, between = new_study(found, prior, TASK_SHARE if is_level else STUDY_SHARE)
        learned[entry] = {
            "mean": _rounded(mean, sd),
            "sd": _rounded(sd, sd),
            "source": _source(studies, entry, found, between, prior, base.name),
        }
    return Priors.model_validate(
        {
            "name": name,
            "description": _description(studies, base),
            "evidence": f"{base.evidence}; {_extent(studies)}",
            "learned_from": (
                *base.learned_from,
                *(mark for study in studies for mark in _marks(study).values()),
            ),
            **learned,
            "stability_line": base.stability_line,
            "speed_law": base.speed_law,
            "extrapolation": base.extrapolation,
            "known_optimum": _known_optimum(studies) or base.known_optimum,
            "domain": _domain(studies, base),
        }
    )


def _known_optimum(studies: Sequence[PastStudy]) -> KnownOptimum | None:
    """Geometric mean of the learning rates that ended highest, where any study tells."""
    rates = [rate for study in studies if (rate := study.best_learning_rate) is not None]
    if not rates:
        return None
    return KnownOptimum(
        learning_rate=float(f"{np.exp(np.mean(np.log(rates))):.3g}"),
        projects=len(rates),
        source=f"Geometric mean of the best learning rates of {_count(len(rates), 'posterior')}.",
    )


def _domain(studies: Sequence[PastStudy], start: Priors) -> Domain:
    """Adapters, optimizers and sizes of the runs, and those that the base rests on."""
    runs = [run for study in studies for run in study.runs]
    sizes = [run.parameters for run in runs]
    adapters, optimizers = [run.adapter for run in runs], [run.optimizer for run in runs]
    if (known := start.domain) is not None:
        sizes += [known.least_parameters, known.most_parameters]
        adapters, optimizers = [*adapters, *known.adapters], [*optimizers, *known.optimizers]
    return Domain(
        adapters=tuple(sorted(set(adapters))),
        optimizers=tuple(sorted(set(optimizers))),
        least_parameters=min(sizes),
        most_parameters=max(sizes),
    )


def refuse_different_presets(studies: Sequence[PastStudy]) -> None:
    """Stop where studies were fitted under different presets."""
    if len({study.preset_digest for study in studies}) < 2:
        return
    several = list(dict.fromkeys(study.preset for study in studies))
    which = ", ".join(several) if len(several) > 1 else f"{several[0]} of different versions"
    raise InputError(
        f"the posteriors were fitted under different presets ({which})",
        argument="base",
        advice=f"Name the one to start from: {', '.join(model.preset_names())}, or a .toml",
    )


def _estimates(studies: Sequence[PastStudy], entry: str, base: Priors) -> Estimates | None:
    """Estimates of one entry, where the base speaks of it; None where no posterior says any."""
    values, errors, units, sources = [], [], [], []
    for index, study in enumerate(studies):
        value, error = study.said.get(entry, ((), ()))
        placed = getattr(base.at(study.reference), entry)
        for unit, (one, its_error) in enumerate(zip(value, error, strict=True)):
            if one is None or its_error is None:
                continue
            values.append(one + getattr(base, entry).mean - placed.mean)
            errors.append(its_error)
            units.append(_unit(study, entry, unit, index))
            sources.append(index)
    if not values:
        return None
    shared = Counter(units)
    return Estimates(
        np.array(values),
        np.array(errors),
        np.array([1 / shared[unit] for unit in units]),
        tuple(dict.fromkeys(sources)),
    )


def _unit(study: PastStudy, entry: str, place: int, number: int) -> str | int:
    """What an estimate stands for: the name of its task, or else its study."""
    if entry in model.TASK_LEVELS:
        return study.tasks[place]
    if entry in model.GROUP_LEVELS:
        return study.groups[place][0]
    return number


def check_name(name: str) -> None:
    """Stop where a new preset cannot be called so."""
    if not name.strip() or name in model.preset_names():
        raise InputError(
            f"'{name}' is no name for a new preset",
            argument="name",
            advice="Choose a name of its own",
        )


def check_studies(
    studies: Sequence[PastStudy], base: Priors, names: Sequence[str] | None = None
) -> None:
    """Stop where something would count twice."""
    called = names or [f"posterior {number}" for number in range(1, len(studies) + 1)]
    seen: dict[str, str] = {}
    owner: dict[str, str] = {}
    for name, study in zip(called, studies, strict=True):
        if study.data in seen:
            both = f"{seen[study.data]} and {name} were fitted to the same data"
            why = f"{both} ({study.data[:HASH]}), which would count twice"
            raise InputError(why, advice="Give each once")
        seen[study.data] = name
        for run, mark in _marks(study).items():
            if owner.setdefault(mark, name) != name:
                why = f"run '{run}' is in {owner[mark]} and in {name}, and would count twice"
                advice = "Give only the posterior that was fitted to more runs"
                raise InputError(why, advice=advice)
            if mark in base.learned_from:
                why = f"the base '{base.name}' has already learned from run '{run}' of {name}"
                advice = "Leave it out, or start from a base that has not seen it"
                raise InputError(f"{why}, which would count twice", argument="base", advice=advice)


def _marks(study: PastStudy) -> dict[str, str]:
    """Fingerprints by the ids of the runs that can be known again."""
    return {run.id: run.fingerprint for run in study.runs if run.fingerprint}


def _rounded(value: float, sd: float) -> float:
    """To a hundredth of the sd."""
    return round(value, 2 - int(np.floor(np.log10(sd))))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _source(
    studies: Sequence[PastStudy],
    entry: str,
    found: Estimates,
    between: float,
    base: NormalPrior,
    base_name: str,
) -> str:
    pooled, between_what = "", "studies"
    if entry in model.TASK_LEVELS + model.GROUP_LEVELS:
        pooled = f", pooled over {_count(round(found.weight.sum()), 'task')},"
        between_what = "tasks"
    named = [_named(studies[place]) for place in found.studies[:MOST_NAMED]]
    rest = len(found.studies) - len(named)
    who = "; ".join(named) + (f"; and {rest} more" if rest else "")
    return (
        f"Learned from {len(found.studies)} of {_count(len(studies), 'posterior')}{pooled} by "
        f"random-effects meta-analysis: {who}. Spread between {between_what} {between:.2g}; "
        f"{base_name} said {base.mean:g} with sd {base.sd:g}."
    )


def _named(study: PastStudy) -> str:
    """Name a study by its data: ``3f2a91bc (12 runs, 1 task)``."""
    runs, tasks = _count(len(study.runs), "run"), _count(len(study.tasks), "task")
    return f"{study.data[:HASH]} ({runs}, {tasks})"


def _description(studies: Sequence[PastStudy], base: Priors) -> str:
    tasks = list(dict.fromkeys(task for study in studies for task in study.tasks))
    named = ", ".join(tasks[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")
    return f"{base.name}, updated by {_count(len(studies), 'past posterior')} on {named}."


def _extent(studies: Sequence[PastStudy]) -> str:
    sizes = [run.parameters for study in studies for run in study.runs]
    span = " to ".join(dict.fromkeys(scientific(end, 0) for end in (min(sizes), max(sizes))))
    return f"{_count(len(studies), 'posterior')} of {_count(len(sizes), 'run')}, {span} parameters"
