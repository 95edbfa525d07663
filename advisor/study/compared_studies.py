"""Two studies side by side: what went in, what was learned, what is advised."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from advisor.advice import NextPilot, Recommendation, percent
from advisor.forecast import Interval, interval_of
from advisor.model import INTERVAL, Posterior, RunSummary, prior_entries
from advisor.study.compared_lines import (
    Comparison,
    Section,
    Value,
    difference,
    each,
    rounded,
    section,
)
from advisor.study.study import Study
from advisor.theory import FloatArray

CHANCE = 4.0
"""Monte Carlo standard errors beyond which two samplers do not disagree by chance: of a hundred
scalars not one in a hundred comparisons."""

PER_GROUP = ("plateau", "stiffness", "start")
PER_TASK = ("log_onset",)


def compare_studies(paths: tuple[str, str], one: Study, other: Study) -> Comparison:
    """Compare two studies.

    Parameters
    ----------
    paths : tuple of str
    one, other : Study

    Returns
    -------
    comparison : Comparison
        Inputs differ where they are not equal, posteriors where sampling alone would not do it,
        advice where it is written differently.
    """
    posteriors = one.posterior, other.posterior
    answers = one.recommendation, other.recommendation
    error = math.sqrt(sum(1 / posterior.convergence.ess for posterior in posteriors))
    measure = answers[0].measure
    return Comparison(
        "studies",
        paths,
        (
            Section("Pilots", difference(*_pilots(*posteriors))),
            section("Asked", _asked, answers),
            section("Priors", _priors, posteriors),
            section("Provenance", _provenance, posteriors),
            section("Posterior", partial(_scalars, error), posteriors, _notes(*posteriors)),
            section("Advice", partial(_advice, measure), answers),
        ),
    )


# What went in ------------------------------------------------------------------------------------


def _pilots(one: Posterior, other: Posterior) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts of all pilots of both sides, under the same name where they are the same run."""
    sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for found, posterior in zip(sides, (one, other), strict=True):
        found["pilots"] = len(posterior.meta.runs)
        found["reward floor"] = posterior.meta.floor
        found["reward ceiling"] = posterior.meta.ceiling
    for pair in _pairs(one.meta.runs, other.meta.runs):
        runs = [run for run in pair if run is not None]
        for found, run in zip(sides, pair, strict=True):
            if run is not None:
                found |= _pilot(run, runs[0].id) if len(runs) == 2 else {run.id: _whole(run)}
    return sides


def _pairs(
    one: tuple[RunSummary, ...], other: tuple[RunSummary, ...]
) -> list[tuple[RunSummary | None, RunSummary | None]]:
    """Runs and their twins: by their first rows, which a longer log shares, else by their names."""
    left = list(other)
    pairs: list[tuple[RunSummary | None, RunSummary | None]] = []
    for run in one:
        same = [twin for twin in left if run.fingerprint and twin.fingerprint == run.fingerprint]
        same += [twin for twin in left if twin.id == run.id]
        twin = same[0] if same else None
        if twin is not None:
            left.remove(twin)
        pairs.append((run, twin))
    return [*pairs, *((None, twin) for twin in left)]


def _pilot(run: RunSummary, name: str) -> dict[str, Any]:
    facts = {
        "steps": run.steps,
        **{what: getattr(run, what) for what in ("task", "model", "parameters")},
        "collapse_step": run.collapse_onset,
    }
    return {
        **{f"{name}: {what}": value for what, value in facts.items()},
        **{f"{name}: {what}": value for what, value in run.settings.model_dump().items()},
        f"{name}: last reward": rounded(run.last_reward),
    }


def _whole(run: RunSummary) -> Value:
    end = "" if run.collapse_onset is None else f", collapsed at {run.collapse_onset:.0f}"
    return Value(run.model_dump(), f"{run.model} on {run.task}, {run.steps:.0f} steps{end}")


def _asked(advice: Recommendation) -> dict[str, Any]:
    return {
        **{f"target {name}": value for name, value in vars(advice.target).items()},
        **{f"objective {name}": value for name, value in advice.objective},
        **{f"budget {name}": value for name, value in advice.budget},
        "P(stable) wanted": advice.level,
        "measure": advice.measure,
        "devices": advice.devices,
        **{f"choices of {name}": list(values) for name, values in advice.choices.items()},
        **{f"price: {name}": value for name, value in advice.cost_model},
        "seed of the search": advice.seed,
    }


def _priors(posterior: Posterior) -> dict[str, Any]:
    priors = posterior.meta.priors
    return {
        "preset": priors.name,
        **{
            name: f"{getattr(entry, 'mean', 0.0):g} +- {entry.sd:g}"
            for name, entry in prior_entries(priors).items()
        },
        "learned from (runs)": len(priors.learned_from),
    }


def _provenance(posterior: Posterior) -> dict[str, Any]:
    origin = posterior.meta.provenance
    return {
        "data (SHA-256)": origin.data_sha256[:16],
        "family of curves": posterior.meta.family,
        "seed of the sampler": origin.seed,
        "advisor": origin.package,
        "schema": origin.schema_version,
        **origin.versions,
        # A fit made again is no other fit: the time is told, and does not count as a difference.
        "fitted": Value(origin.created, origin.created, lambda one, other: (False, "", None)),
    }


# What was learned --------------------------------------------------------------------------------


def _scalars(error: float, posterior: Posterior) -> dict[str, Value]:
    """What the population, the groups and the tasks have, by name."""
    meta = posterior.meta
    draws = {
        # Levels are told as priors speak of them, since that does not depend on the pilots.
        name: posterior.as_in_priors(name)
        for name, values in posterior.draws.items()
        if values.ndim == 2 and name != "is_oscillator"
    }
    for name in PER_GROUP:
        for index, (task, model) in enumerate(meta.groups):
            draws[f"{name} [{task} / {model}]"] = posterior.flat(name)[:, index]
    for name in PER_TASK:
        for index, task in enumerate(meta.tasks):
            draws[f"{name} [{task}]"] = posterior.flat(name)[:, index]
    return {name: _scalar(values, error) for name, values in draws.items()}


def _scalar(values: FloatArray, error: float) -> Value:
    found = interval_of(values)
    text = f"{found.mean:.3g} [{found.low:.3g}, {found.high:.3g}]"
    told = {"mean": found.mean, "low": found.low, "high": found.high, "sd": float(values.std())}
    return Value(told, text, partial(_judge_scalars, error))


def _judge_scalars(
    error: float, one: dict[str, float], other: dict[str, float]
) -> tuple[bool, str, float | None]:
    """Whether means or widths differ by more than sampling alone would do."""
    spreads = one["sd"], other["sd"]
    spread, gap = math.hypot(*spreads) / math.sqrt(2), other["mean"] - one["mean"]
    if spread == 0 or min(spreads) == 0:
        return bool(gap) or spreads[0] != spreads[1], "", None
    shift, width = gap / spread, math.log(spreads[1] / spreads[0])
    note = f"{shift:+.2f} sd"
    if abs(width) > CHANCE * error:
        note += f", {math.exp(width):.2g} times as wide"
    return max(abs(shift), abs(width)) > CHANCE * error, note, shift


def _notes(one: Posterior, other: Posterior) -> tuple[str, ...]:
    how = (
        f"Means with central {100 * INTERVAL:.0f} % intervals; the shift of the mean counts in "
        "posterior standard deviations (root mean square of both). Shifts and widths differ "
        f"where they do so by more than {CHANCE:g} Monte Carlo errors."
    )
    if one.meta.reference == other.meta.reference:
        return (how,)
    return (
        how,
        "Plateau and stiffness stand at the mean configuration of each study's own pilots, and "
        f"those differ: {_reference(one)} against {_reference(other)}.",
    )


def _reference(posterior: Posterior) -> str:
    at = posterior.meta.reference
    return (
        f"learning rate {at.learning_rate:.3g}, group size {at.group_size:.3g}, "
        f"{at.prompts_per_step:.3g} prompts, {at.parameters:.3g} parameters"
    )


# What is advised ---------------------------------------------------------------------------------


def _advice(measure: str, advice: Recommendation) -> dict[Any, Any]:
    stability, cost = advice.stability, advice.cost
    parts = {name: getattr(stability, name) for name in ("refresh", "tolerance", "fluctuation")}
    return {
        "answer": advice.kind,
        **advice.settings.model_dump(),
        "refresh_interval": advice.settings.refresh_interval,
        "steps": advice.steps,
        f"{measure} at the last step": _outcome(advice.reward),
        "peak on the way": _outcome(advice.peak),
        "P(stable)": Value(stability.probability, percent(stability.probability)),
        **{f"P(stable): {name}": Value(part, percent(part)) for name, part in parts.items()},
        "completions": rounded(cost.completions, ",.0f"),
        "tokens": rounded(cost.tokens),
        "GPU-hours": rounded(cost.gpu_hours),
        "95 % of the gain by step": rounded(advice.steps_to_95, ".0f"),
        "what limits it": advice.binding,
        "outside the evidence": advice.outside,
        "next pilot": _next_pilot(advice.next_pilot),
        **each("caution", advice.cautions),
        **each("assumed", advice.assumptions),
    }


def _outcome(found: Interval) -> Value:
    text = f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return Value(found.model_dump(), text, _judge_outcomes)


def _judge_outcomes(
    one: dict[str, float], other: dict[str, float]
) -> tuple[bool, str, float | None]:
    gap = other["mean"] - one["mean"]
    written = [
        tuple(f"{side[name]:.3f}" for name in ("mean", "low", "high")) for side in (one, other)
    ]
    return written[0] != written[1], f"{gap:+.3f}", gap


def _next_pilot(pilot: NextPilot | None) -> str | None:
    if pilot is None:
        return None
    own = pilot.settings
    return (
        f"learning rate {own.learning_rate:.3g}, group size {own.group_size}, "
        f"K {own.refresh_interval}, {pilot.steps} steps"
    )
