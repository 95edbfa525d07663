"""A team's own preset: what its past posteriors say about the next study.

Each posterior is summed up by a `PastStudy`: a normal likelihood of all its parameters together,
the prior under which it was fitted divided out as precision. Over these likelihoods lies a normal
hierarchical model: entries differ between studies, levels between tasks and between models, and
means and spreads are learned together. What all studies share, such as the loss of the plateau that
a level trades off against, is so doubted once and not again in each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from advisor import model
from advisor.common import digest_of, scientific
from advisor.errors import InputError
from advisor.model import Domain, KnownOptimum, NormalPrior, Posterior, Priors, RunSummary
from advisor.theory import FloatArray

STUDY_SHARE = 0.16
"""Share of the variance of a base entry that is spread between studies, the rest being doubt about
their mean: with this share one perfect study that agrees with the base leaves half of its sd."""

TASK_SHARE = 0.5
"""The same for levels of tasks, of which one says little about the next."""

PSEUDO_STUDIES = 4
"""Degrees of freedom of the prior of the spread: with as many studies, half of what is known of
the spread is theirs."""

NAMES = {
    name.replace(".", "_"): name
    for name in (*model.POPULATION, *model.TASK_LEVELS, *model.GROUP_LEVELS)
}
"""Parameters of the model by their entries."""

MODEL_SPREADS = {"headroom_logit": "log_headroom_spread", "log_slope": "log_model_spread"}
"""Levels of tasks from which those of models differ, and the entry that holds by how much."""

GRID = np.linspace(-8.0, 16.0, 121)
"""Logarithms of a spread around the likeliest, in widths of what is known of it."""


class PastRun(BaseModel, frozen=True, extra="forbid"):
    """A run of a past study; ``fingerprint`` is empty where it cannot be known again."""

    id: str
    fingerprint: str
    parameters: float
    adapter: str
    optimizer: str


class PastStudy(BaseModel, frozen=True, extra="forbid"):
    """What the data of one study said, its prior divided out: a page of numbers, as JSON."""

    data: str
    preset: str
    preset_digest: str
    tasks: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    runs: tuple[PastRun, ...]
    reference: model.Reference
    said: dict[str, tuple[tuple[float | None, ...], tuple[float | None, ...]]]
    # Of all `_components` together, a triangle of the matrix; older ones have each entry alone.
    information: tuple[float, ...] = ()
    score: tuple[float, ...] = ()
    best_learning_rate: float | None = None  # of the run that ended highest; older ones lack it


def past_study(posterior: Posterior) -> PastStudy:
    """Sum up a posterior for learning."""
    meta = posterior.meta
    alone = {
        entry: data_alone(posterior, parameter, getattr(meta.placed_priors, entry))
        for entry, parameter in NAMES.items()
    }
    information, score = _together(posterior)
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
        said={entry: (_finite(value), _finite(error)) for entry, (value, error) in alone.items()},
        information=_short(information[np.tril_indices(len(score))]),
        score=_short(score),
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


def _short(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(f"{value:.7g}") for value in values)


def _components(
    tasks: Sequence[str], groups: Sequence[tuple[str, str]]
) -> list[tuple[str, int, int]]:
    """Entry, unit and task of what a study's likelihood is about; levels as its models show them.

    Of a level of a task and a model's offset the runs tell the sum alone, and how widely offsets
    spread is for all studies to tell.
    """
    of_groups = [(group, tasks.index(task)) for group, (task, _) in enumerate(groups)]
    of_tasks = [(task, task) for task in range(len(tasks))]
    return [
        (entry, *unit)
        for entry in NAMES
        if entry not in MODEL_SPREADS.values()
        for unit in (
            of_groups
            if entry in model.GROUP_LEVELS or entry in MODEL_SPREADS
            else of_tasks
            if entry in model.TASK_LEVELS
            else [(0, 0)]
        )
    ]


def _together(posterior: Posterior) -> tuple[FloatArray, FloatArray]:
    """Information and score of a study's likelihood, its prior divided out."""
    meta, placed = posterior.meta, posterior.meta.placed_priors
    own = _components(meta.tasks, meta.groups)
    offsets = dict(zip(MODEL_SPREADS, ("headroom", "stiffness"), strict=True))
    draws, priors = [], [getattr(placed, entry) for entry, *_ in own]
    covariance = np.diag([prior.sd**2 for prior in priors])
    for place, (entry, unit, task) in enumerate(own):
        values = posterior.as_in_priors(NAMES[entry])
        values = values.reshape(*posterior.draws[NAMES[entry]].shape[:2], -1)
        if entry not in MODEL_SPREADS:
            draws.append(values[..., unit])
            continue
        spread = MODEL_SPREADS[entry]
        offset = posterior.draws[f"group_offset.{offsets[entry]}"][..., unit]
        draws.append(values[..., task] + np.exp(posterior.draws[NAMES[spread]]) * offset)
        same = [(its_entry, its_task) == (entry, task) for its_entry, _, its_task in own]
        covariance[place, same] = priors[place].sd ** 2
        doubt = getattr(placed, spread)
        covariance[place, place] += np.exp(2 * (doubt.mean + doubt.sd**2))
    mean = np.array([prior.mean for prior in priors])
    return likelihood(np.stack(draws, axis=-1), mean, covariance)


def likelihood(
    draws: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Divide a normal prior out of draws, (chains, draws, n): precision, and precision x mean.

    Where the posterior is no narrower than noise alone lets the narrowest direction of so many
    seem (the edge of Marchenko and Pastur), the data say nothing.
    """
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    white = (draws - mean) @ root.T
    center = white.mean(axis=(0, 1))
    left, directions = np.linalg.eigh(np.cov(white.reshape(-1, mean.size).T))
    squares = ((white - center) @ directions) ** 2
    effective = model.convergence({"directions": squares})["directions"][1]
    says = left < np.maximum(1 - np.sqrt(mean.size / effective), 0) ** 2
    back = root.T @ directions
    information = (back * np.where(says, 1 / left - 1, 0)) @ back.T
    return information, back @ np.where(says, center @ directions / left, 0) + information @ mean


def without_prior(
    mean: FloatArray, variance: FloatArray, prior: NormalPrior, effective_draws: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """What the data alone said: estimates and standard errors."""
    ratio = variance / prior.sd**2
    # By three standard errors it must be below the variance of its prior.
    is_informed = 1 - ratio > 3.0 * np.sqrt(2 / effective_draws)
    left = np.where(is_informed, 1 - ratio, np.nan)
    return (mean - ratio * prior.mean) / left, np.sqrt(variance / left)


class Evidence(NamedTuple):
    """What one study says about its effects, each a draw of an entry: a normal likelihood."""

    entry: Any  # of each effect, its place among the entries
    information: FloatArray
    score: FloatArray
    weight: FloatArray  # by entry: of several studies of one task each counts in part, as a power


class Believed(NamedTuple):
    """What is believed of entries: normal means, and inverse chi-square spreads around them."""

    mean: FloatArray
    doubt: FloatArray  # variance of the mean
    freedom: FloatArray
    scale: FloatArray


class Learned(NamedTuple):
    """An entry of a study to come: mean, sd, spread between studies, and the spread's logarithm."""

    mean: float
    sd: float
    between: float
    log_spread: float
    log_spread_sd: float


def believed_of(entries: Mapping[str, NormalPrior]) -> Believed:
    """Split the variance of every entry into spread and doubt; models spread around their task."""
    from scipy.special import digamma

    rows = []
    for entry, prior in entries.items():
        if entry in MODEL_SPREADS.values():
            # The logarithm of such a variance has nearly this mean and sd.
            freedom = 2 / (np.sqrt(1 + 8 * prior.sd**2) - 1)
            scale = np.exp(2 * prior.mean + digamma(freedom / 2)) * 2 / freedom
            rows.append((0.0, 1e-9, freedom, scale))
            continue
        is_level = entry in model.TASK_LEVELS + model.GROUP_LEVELS
        expected = (TASK_SHARE if is_level else STUDY_SHARE) * prior.sd**2
        # The scale that makes the mean of an inverse chi-square variance the expected one.
        scale = expected * (PSEUDO_STUDIES - 2) / PSEUDO_STUDIES
        rows.append((prior.mean, prior.sd**2 - expected, PSEUDO_STUDIES, scale))
    return Believed(*np.array(rows, dtype=float).T)


def new_study(evidence: Sequence[Evidence], believed: Believed) -> list[Learned]:
    """Predict every entry of a study to come (arXiv:2007.08352).

    Means and effects are integrated out exactly; the spread of each entry over a grid, those of
    the others at their likeliest.
    """
    size, freedom = believed.mean.size, believed.freedom
    prior = freedom * believed.scale, np.maximum(freedom - 1, 0.5)
    variance, everyone = prior[0] / prior[1], np.ones(len(evidence))
    for _ in range(200):  # 5 to 20 are enough for most
        within = [_within(one, variance, believed.mean) for one in evidence]
        precision, pulls = _pooled(within, everyone, believed.doubt)
        covariance = np.linalg.inv(precision)
        center = covariance @ pulls
        squares, resolved = np.zeros(size), np.zeros(size)
        for (own, pull, at), (entry, *_, weights) in zip(within, evidence, strict=True):
            shrunk = variance[entry] * (pull - own @ center[entry])
            gained = variance[entry] * np.diag(own - own @ at @ covariance @ at.T @ own)
            np.add.at(squares, entry, weights[entry] * shrunk**2)
            np.add.at(resolved, entry, weights[entry] * gained)
        # What a study does not resolve of an effect is no degree of freedom of its spread.
        before, variance = variance, (prior[0] + squares) / (prior[1] + resolved)
        if np.abs(np.log(variance / before)).max() < 1e-3:
            break
    # Fisher's information on the logarithms of all variances: what one may gain another may lose.
    within = [_within(one, variance, believed.mean) for one in evidence]
    known = np.diag(freedom / 2)
    for (own, _, at), (entry, *_, weights) in zip(within, evidence, strict=True):
        both = own * np.sqrt(np.outer(variance[entry], variance[entry]))
        known += 0.5 * at.T @ (both**2 * weights[entry]) @ at
    widths = 0.5 / np.sqrt(np.diag(known)), 0.5 * np.sqrt(np.diag(np.linalg.inv(known)))
    return [
        _marginal(place, evidence, within, believed, variance[place], *each)
        for place, each in enumerate(zip(*widths, strict=True))
    ]


def _within(
    one: Evidence, variance: FloatArray, mean: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Information and score of a study about means, less those believed, and whose they are."""
    scaled = np.eye(one.entry.size) + one.information * variance[one.entry]
    score = one.score - one.information @ mean[one.entry]
    both = np.linalg.solve(scaled, np.column_stack([one.information, score]))
    return both[:, :-1], both[:, -1], np.eye(mean.size)[one.entry]


def _pooled(
    within: Sequence[tuple[FloatArray, FloatArray, FloatArray]], weights: Any, doubt: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Precision of all means, and it times the means."""
    precision, pulls = np.diag(1 / doubt), np.zeros(doubt.size)
    for (own, pull, at), weight in zip(within, weights, strict=True):
        precision += weight * at.T @ own @ at
        pulls += weight * at.T @ pull
    return precision, pulls


def _marginal(
    place: int,
    evidence: Sequence[Evidence],
    within: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    believed: Believed,
    variance: float,
    width: float,
    width_together: float,
) -> Learned:
    """One entry over a grid of its spread: each value changes a study by a matrix of low rank."""
    precision, pulls = _pooled(within, (one.weight[place] for one in evidence), believed.doubt)
    rows = []
    for (own, pull, at), one in zip(within, evidence, strict=True):
        effects = np.flatnonzero(one.entry == place)
        values, turned = np.linalg.eigh(own[np.ix_(effects, effects)])
        directions = turned.T @ own[effects] @ at
        for row in zip(values, turned.T @ pull[effects], directions, strict=True):
            rows.append((one.weight[place], *row[:2], *row[2]))
    weight, value, pull, *columns = np.array(rows).reshape(-1, 3 + pulls.size).T
    direction, value = np.array(columns).T, np.clip(value, 0, 1 / variance)  # but for rounding
    log_spread = 0.5 * np.log(variance) + width * GRID
    spread = np.exp(2 * log_spread)
    ratio = 1 + (spread - variance)[:, None] * value
    factor = weight * (spread - variance)[:, None] / ratio
    covariance = np.linalg.inv(precision - (factor[:, None] * direction.T) @ direction)
    left = pulls - (factor * pull) @ direction
    center = np.einsum("gab,gb->ga", covariance, left)
    log_density = 0.5 * (
        factor @ pull**2
        - np.log(ratio) @ weight
        + np.linalg.slogdet(covariance)[1]
        + (left * center).sum(axis=1)
    ) - believed.freedom[place] * (log_spread + believed.scale[place] / (2 * spread))
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean, log_mean = density @ center[:, place], density @ log_spread
    doubt = covariance[:, place, place] + (center[:, place] - mean) ** 2
    return Learned(
        believed.mean[place] + mean,
        np.sqrt(density @ (spread + doubt)),
        np.sqrt(density @ spread),
        log_mean,
        np.sqrt(density @ (log_spread - log_mean) ** 2) * width_together / width,
    )


def learn_from_studies(studies: Sequence[PastStudy], *, base: Priors, name: str = "team") -> Priors:
    """Turn what past studies said into a preset for the next.

    A random-effects meta-analysis of all entries together. How far models of a task lie apart is
    learned from their levels. Levels of plateau loss and collapse are at their anchors
    (:func:`advisor.model.equations.at_reference`); others such as ``log_slope`` are at each study's
    own reference configuration (the geometric mean of its pilots), moved to where the base's law of
    the speed stands, which is how a new study reads them.

    A learned preset is no base for the next: how studies differ would be taken for doubt about
    their mean, and what is learned would be too sure.
    """
    check_name(name)
    check_studies(studies, base)
    learned = {}
    entries = {
        entry: prior
        for entry, prior in model.prior_entries(base).items()
        if isinstance(prior, NormalPrior)
    }
    weights = {entry: _weights(studies, entry) for entry in entries}
    evidence = [evidence_of(one, base, weights, number) for number, one in enumerate(studies)]
    predicted = dict(zip(entries, new_study(evidence, believed_of(entries)), strict=True))
    for entry, prior in model.prior_entries(base).items():
        narrowed = weights.get(entry, {})
        if not narrowed or not isinstance(prior, NormalPrior):
            kept = f"Kept from {base.name}: no posterior narrowed it."
            source = f"{prior.source.removesuffix('.')}. {kept}"
            learned[entry] = {**prior.model_dump(), "source": source}
            continue
        found = predicted[entry]
        mean, sd = found.mean, found.sd
        if entry in MODEL_SPREADS.values():
            mean, sd = found.log_spread, found.log_spread_sd
        learned[entry] = {
            "mean": _rounded(mean, sd),
            "sd": _rounded(sd, sd),
            "source": _source(studies, entry, narrowed, found.between, prior, base.name),
        }
    marks = (mark for study in studies for mark in _marks(study).values())
    return Priors(
        name=name,
        description=_description(studies, base),
        evidence=f"{base.evidence}; {_extent(studies)}",
        learned_from=(*base.learned_from, *marks),
        **learned,
        stability_line=base.stability_line,
        speed_law=base.speed_law,
        extrapolation=base.extrapolation,
        discrepancy=base.discrepancy,
        pool=base.pool,
        growth=base.growth,
        elsewhere=base.elsewhere,
        decision=base.decision,
        known_optimum=_known_optimum(studies) or base.known_optimum,
        domain=_domain(studies, base),
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


def _weights(studies: Sequence[PastStudy], entry: str) -> dict[int, list[float]]:
    """Of studies that narrowed an entry what each unit counts; those of one task count as one."""
    levels = {spread: level for level, spread in MODEL_SPREADS.items()}
    narrowed = {
        number: [
            _unit(study, entry, place, number)
            for place, value in enumerate(study.said.get(levels.get(entry, entry), ((),))[0])
            if value is not None
        ]
        for number, study in enumerate(studies)
        if study.information or entry not in levels
    }
    shared = Counter(unit for units in narrowed.values() for unit in units)
    return {at: [1 / shared[unit] for unit in units] for at, units in narrowed.items() if units}


def _unit(study: PastStudy, entry: str, place: int, number: int) -> str | tuple[int, int]:
    """What an estimate stands for: the name of its task, or else itself."""
    if entry in model.TASK_LEVELS:
        return study.tasks[place]
    if entry in model.GROUP_LEVELS:
        return study.groups[place][0]
    return number, place


def evidence_of(
    study: PastStudy, base: Priors, weights: Mapping[str, dict[int, list[float]]], number: int
) -> Evidence:
    """What a study says about its effects, where the base speaks of them."""
    own = _components(study.tasks, study.groups)
    if study.information:
        information, score = np.zeros((len(own), len(own))), np.array(study.score)
        information[np.tril_indices(len(own))] = study.information
        information += np.tril(information, -1).T
    else:
        alone = [
            ((entry, unit, unit), value, error)
            for entry, pair in study.said.items()
            for unit, (value, error) in enumerate(zip(*pair, strict=True))
            if value is not None and error is not None and entry not in MODEL_SPREADS.values()
        ]
        own = [component for component, *_ in alone]
        information = np.diag([error**-2 for *_, error in alone])
        score = information @ np.array([value for _, value, _ in alone])
    effects, to_own = dict[tuple[str, int], int](), np.zeros((len(own), 2 * len(own)))
    for place, (entry, unit, task) in enumerate(own):
        parts = [(entry, unit)]
        if study.information and entry in MODEL_SPREADS:
            parts = [(entry, task), (MODEL_SPREADS[entry], unit)]
        for part in parts:
            to_own[place, effects.setdefault(part, len(effects))] = 1
    to_own, placed, names = to_own[:, : len(effects)], base.at(study.reference), list(weights)
    shift = [getattr(base, entry).mean - getattr(placed, entry).mean for entry, *_ in own]
    return Evidence(
        np.array([names.index(entry) for entry, _ in effects], dtype=int),
        to_own.T @ information @ to_own,
        to_own.T @ (score + information @ shift),
        np.array([np.mean(weights[entry].get(number, 1.0)) for entry in names]),
    )


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
            why = f"{both} ({study.data[:8]}), which would count twice"
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
    narrowed: dict[int, list[float]],
    between: float,
    base: NormalPrior,
    base_name: str,
) -> str:
    pooled, between_what = "", "studies"
    if entry in model.TASK_LEVELS + model.GROUP_LEVELS:
        tasks = round(sum(sum(one) for one in narrowed.values()))
        pooled = f", pooled over {_count(tasks, 'task')},"
        between_what = "tasks"
    named = [_named(studies[place]) for place in list(narrowed)[:3]]
    rest = len(narrowed) - len(named)
    who = "; ".join(named) + (f"; and {rest} more" if rest else "")
    return (
        f"Learned from {len(narrowed)} of {_count(len(studies), 'posterior')}{pooled} by "
        f"random-effects meta-analysis: {who}. Spread between {between_what} {between:.2g}; "
        f"{base_name} said {base.mean:g} with sd {base.sd:g}."
    )


def _named(study: PastStudy) -> str:
    """Name a study by its data: ``3f2a91bc (12 runs, 1 task)``."""
    runs, tasks = _count(len(study.runs), "run"), _count(len(study.tasks), "task")
    return f"{study.data[:8]} ({runs}, {tasks})"


def _description(studies: Sequence[PastStudy], base: Priors) -> str:
    tasks = list(dict.fromkeys(task for study in studies for task in study.tasks))
    named = ", ".join(tasks[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")
    return f"{base.name}, updated by {_count(len(studies), 'past posterior')} on {named}."


def _extent(studies: Sequence[PastStudy]) -> str:
    sizes = [run.parameters for study in studies for run in study.runs]
    span = " to ".join(dict.fromkeys(scientific(end, 0) for end in (min(sizes), max(sizes))))
    return f"{_count(len(studies), 'posterior')} of {_count(len(sizes), 'run')}, {span} parameters"
