"""Two studies side by side: what went in, what was learned, what is advised."""

from __future__ import annotations

import math
from typing import Any

from advisor.advice import Recommendation
from advisor.advice.wording import percent
from advisor.forecast.interval import Interval, interval_of
from advisor.model.posterior import INTERVAL, Posterior, RunSummary
from advisor.model.priors.table import prior_entries
from advisor.study.compared_lines import (
    ABSENT,
    Comparison,
    Line,
    Section,
    exact,
    fields,
    listed,
    rounded,
)
from advisor.theory.arrays import FloatArray

CHANCE = 4.0
"""Monte Carlo standard errors beyond which two samplers do not disagree by chance: of a hundred
scalars not one in a hundred comparisons."""

PER_GROUP = ("plateau", "stiffness", "start")
PER_TASK = ("log_onset",)

Study = tuple[Posterior, Recommendation]


def compare_studies(paths: tuple[str, str], one: Study, other: Study) -> Comparison:
    """Compare two studies.

    Parameters
    ----------
    paths : tuple of str
    one, other : (Posterior, Recommendation)
        As `advisor.load_study` returns them.

    Returns
    -------
    comparison : Comparison
        Inputs differ where they are not equal, posteriors where sampling alone would not do it,
        advice where it is written differently.
    """
    return Comparison(
        "studies",
        paths,
        (
            Section("Pilots", tuple(_pilots(one[0], other[0]))),
            Section("Asked", tuple(_asked(one[1], other[1]))),
            Section("Priors", tuple(_priors(one[0], other[0]))),
            Section("Provenance", tuple(_provenance(one[0], other[0]))),
            _posterior(one[0], other[0]),
            Section("Advice", tuple(_advice(one[1], other[1]))),
        ),
    )


# What went in ------------------------------------------------------------------------------------


def _pilots(one: Posterior, other: Posterior) -> list[Line]:
    lines = [
        exact("pilots", len(one.meta.runs), len(other.meta.runs)),
        exact("reward floor", one.meta.floor, other.meta.floor),
        exact("reward ceiling", one.meta.ceiling, other.meta.ceiling),
    ]
    for run, twin in _pairs(one.meta.runs, other.meta.runs):
        name = (run or twin).id  # type: ignore[union-attr]
        if run is None or twin is None:
            lines.append(Line(name, _told(run), _told(twin), (_short(run), _short(twin)), True))
            continue
        lines.append(exact(f"{name}: steps", run.steps, twin.steps))
        for what in ("task", "model", "parameters", "collapse_step"):
            lines.append(exact(f"{name}: {what}", getattr(run, what), getattr(twin, what)))
        lines += fields(f"{name}:", run.settings.model_dump(), twin.settings.model_dump())
        lines.append(rounded(f"{name}: last reward", run.last_reward, twin.last_reward))
    return lines


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


def _told(run: RunSummary | None) -> dict[str, Any] | None:
    return None if run is None else run.model_dump()


def _short(run: RunSummary | None) -> str:
    if run is None:
        return ABSENT
    end = "" if run.collapse_step is None else f", collapsed at {run.collapse_step:.0f}"
    return f"{run.model} on {run.task}, {run.steps:.0f} steps{end}"


def _asked(one: Recommendation, other: Recommendation) -> list[Line]:
    def of(advice: Recommendation) -> dict[str, Any]:
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

    return fields("", of(one), of(other))


def _priors(one: Posterior, other: Posterior) -> list[Line]:
    def of(posterior: Posterior) -> dict[str, Any]:
        priors = posterior.meta.priors
        entries = {
            name: f"{getattr(entry, 'mean', 0.0):g} +- {entry.sd:g}"
            for name, entry in prior_entries(priors).items()
        }
        return {
            "preset": priors.name,
            **entries,
            "learned from (runs)": len(priors.learned_from),
            **{
                f"weight of {name}": value
                for name, value in priors.family_runs
                if isinstance(value, float)
            },
        }

    return fields("", of(one), of(other))


def _provenance(one: Posterior, other: Posterior) -> list[Line]:
    def of(posterior: Posterior) -> dict[str, Any]:
        origin = posterior.meta.provenance
        return {
            "data (SHA-256)": origin.data_sha256[:16],
            "families": dict(posterior.meta.families),
            "seed of the sampler": origin.seed,
            "advisor": origin.package,
            "schema": origin.schema_version,
            **origin.versions,
        }

    created = one.meta.provenance.created, other.meta.provenance.created
    # A fit made again is no other fit: the time is told, and does not count as a difference.
    return [*fields("", of(one), of(other)), Line("fitted", *created, created, differs=False)]


# What was learned --------------------------------------------------------------------------------


def _posterior(one: Posterior, other: Posterior) -> Section:
    own, its = _scalars(one), _scalars(other)
    error = math.sqrt(1 / one.convergence.ess + 1 / other.convergence.ess)
    lines = [_scalar(name, own.get(name), its.get(name), error) for name in {**own, **its}]
    notes = [
        f"Means with central {100 * INTERVAL:.0f} % intervals; the shift of the mean counts in "
        "posterior standard deviations (root mean square of both). Shifts and widths differ "
        f"where they do so by more than {CHANCE:g} Monte Carlo errors."
    ]
    if one.meta.reference != other.meta.reference:
        notes.append(
            "Plateau and stiffness stand at the mean configuration of each study's own pilots, and "
            f"those differ: {_reference(one)} against {_reference(other)}."
        )
    return Section("Posterior", tuple(lines), tuple(notes))


def _scalars(posterior: Posterior) -> dict[str, FloatArray]:
    """Draws of what the population, the groups and the tasks have, by name."""
    meta = posterior.meta
    found = {
        # Levels are told as priors speak of them, since that does not depend on the pilots.
        name: posterior.as_in_priors(name)
        for name, values in posterior.draws.items()
        if values.ndim == 2 and name != "is_oscillator"
    }
    for name in PER_GROUP:
        for index, (task, model) in enumerate(meta.groups):
            found[f"{name} [{task} / {model}]"] = posterior.flat(name)[:, index]
    for name in PER_TASK:
        for index, task in enumerate(meta.tasks):
            found[f"{name} [{task}]"] = posterior.flat(name)[:, index]
    return found


def _scalar(name: str, one: FloatArray | None, other: FloatArray | None, error: float) -> Line:
    told = _interval(one), _interval(other)
    shown = _between(told[0]), _between(told[1])
    if one is None or other is None:
        return Line(name, *told, shown, differs=True)
    spreads = float(one.std()), float(other.std())
    spread = math.hypot(*spreads) / math.sqrt(2)
    gap = float(other.mean() - one.mean())
    if spread == 0 or min(spreads) == 0:
        return Line(name, *told, shown, differs=bool(gap) or spreads[0] != spreads[1])
    shift, width = gap / spread, math.log(spreads[1] / spreads[0])
    is_other = max(abs(shift), abs(width)) > CHANCE * error
    note = f"{shift:+.2f} sd"
    if abs(width) > CHANCE * error:
        note += f", {math.exp(width):.2g} times as wide"
    return Line(name, *told, shown, is_other, note, shift)


def _interval(values: FloatArray | None) -> dict[str, float] | None:
    if values is None:
        return None
    found = interval_of(values)
    return {
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "sd": float(values.std()),
    }


def _between(told: dict[str, float] | None) -> str:
    if told is None:
        return ABSENT
    return f"{told['mean']:.3g} [{told['low']:.3g}, {told['high']:.3g}]"


def _reference(posterior: Posterior) -> str:
    at = posterior.meta.reference
    return (
        f"learning rate {at.learning_rate:.3g}, group size {at.group_size:.3g}, "
        f"{at.prompts_per_step:.3g} prompts, {at.parameters:.3g} parameters"
    )


# What is advised ---------------------------------------------------------------------------------


def _advice(one: Recommendation, other: Recommendation) -> list[Line]:
    lines = [
        exact("answer", one.kind, other.kind),
        *fields("", one.settings.model_dump(), other.settings.model_dump()),
        exact("refresh_interval", one.settings.refresh_interval, other.settings.refresh_interval),
        exact("steps", one.steps, other.steps),
        _outcome(f"{one.measure} at the last step", one.reward, other.reward),
        _outcome("peak on the way", one.peak, other.peak),
    ]
    for name in ("probability", "refresh", "tolerance", "fluctuation"):
        values = getattr(one.stability, name), getattr(other.stability, name)
        label = "P(stable)" if name == "probability" else f"P(stable): {name}"
        shown = percent(values[0]), percent(values[1])
        lines.append(Line(label, *values, shown, shown[0] != shown[1]))
    lines += [
        rounded("completions", one.cost.completions, other.cost.completions, ",.0f"),
        rounded("tokens", one.cost.tokens, other.cost.tokens, ".3g"),
        rounded("GPU-hours", one.cost.gpu_hours, other.cost.gpu_hours),
        rounded("95 % of the gain by step", one.steps_to_95, other.steps_to_95, ".0f"),
        exact("what limits it", one.binding, other.binding),
        exact("outside the evidence", one.outside, other.outside),
        exact("next pilot", _pilot(one), _pilot(other)),
        *listed("caution", one.cautions, other.cautions),
        *listed("assumed", one.assumptions, other.assumptions),
    ]
    return lines


def _outcome(name: str, one: Interval, other: Interval) -> Line:
    values = one.model_dump(), other.model_dump()
    shown = tuple(f"{v['mean']:.3f} [{v['low']:.3f}, {v['high']:.3f}]" for v in values)
    gap = other.mean - one.mean
    return Line(name, *values, (shown[0], shown[1]), shown[0] != shown[1], f"{gap:+.3f}", gap)


def _pilot(advice: Recommendation) -> str | None:
    pilot = advice.next_pilot
    if pilot is None:
        return None
    own = pilot.settings
    return (
        f"learning rate {own.learning_rate:.3g}, group size {own.group_size}, "
        f"K {own.refresh_interval}, {pilot.steps} steps"
    )
