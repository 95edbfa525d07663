"""What the pilots say, in words, and which exponents they can tell at all.

Where a factor never changed, or changed only together with another, its exponent is the prior's.
All but the model size is judged within groups (task, model), which have starts, plateaus and
stiffnesses of their own. Pilots that collapsed at once speak for stability only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from advisor.common import counted, scientific
from advisor.findings.gates import gate
from advisor.forecast import interval_of
from advisor.model import (
    FAMILIES,
    INTERVAL,
    MIN_SIZES,
    SENSITIVE,
    SPECTRUM,
    Meta,
    Posterior,
    RunSummary,
    deciding_numbers,
    misfit_caution,
    prior_sensitivity,
    shifted_share,
)
from advisor.theory import FloatArray, IntArray


def describe(posterior: Posterior) -> str:
    """Write what was piloted, what may be published of it, and what the design can tell.

    Parameters
    ----------
    posterior : Posterior

    Returns
    -------
    text : str
        Several lines.
    """
    lines = [
        _opening(posterior),
        *(f"  {group.text}" for group in gate(posterior)),
        misfit_caution(posterior),
        _family(posterior),
        *_evaluations(posterior),
        _spread_of_repeats(posterior),
        _exponents(posterior),
        "What the pilots can tell of them:",
        *(f"  {check.text}." for check in design_check(posterior.meta)),
        _sensitivity(posterior),
    ]
    return "\n".join(filter(None, lines))


def _opening(posterior: Posterior) -> str:
    meta = posterior.meta
    collapsed = sum(run.collapse_step is not None for run in meta.runs)
    return (
        f"{counted(len(meta.runs), 'pilot')} of {counted(len(meta.groups), 'model-task pair')}, "
        f"{collapsed or 'none'} of which collapsed. At learning rate "
        f"{meta.reference.learning_rate:.2g}, group size {meta.reference.group_size:.3g}:"
    )


def _family(posterior: Posterior) -> str:
    name = posterior.meta.family
    # Files of earlier versions name families that are fitted no longer.
    title = FAMILIES[name].title if name in FAMILIES else name
    return "" if name == SPECTRUM.name else f"Curve: {title}."


def _evaluations(posterior: Posterior) -> list[str]:
    gains = np.exp(posterior.flat("log_eval_gain"))
    named = zip(posterior.meta.groups, posterior.meta.evaluated, gains.T, strict=True)
    return [
        f"  {model} on {task}: the odds of the headroom gained are {interval_of(gain).written(2)} "
        "times those of the train reward on held-out prompts; forecasts are of the latter."
        for (task, model), is_evaluated, gain in named
        if is_evaluated
    ]


def _spread_of_repeats(posterior: Posterior) -> str:
    """By how much runs differ from the laws of their settings, as standard deviations."""
    meta = posterior.meta
    who = "Repeats of one configuration differ"
    if len({(run.task, run.model, run.settings) for run in meta.runs}) == len(meta.runs):
        who = "No configuration was run twice; runs differ from the laws of their settings"
    rate = float(np.median(np.exp(posterior.flat("log_run_rate_spread"))))
    rng = np.random.default_rng(0)
    spread = np.exp(posterior.flat("log_run_plateau_spread"))
    level = posterior.flat("plateau")[:, 0]
    share = np.clip((level - meta.floor) / (meta.ceiling - meta.floor), 1e-6, 1 - 1e-6)
    moved = shifted_share(share, spread * rng.standard_normal(spread.size)) - share
    plateau = float(moved.std()) * (meta.ceiling - meta.floor)
    return (
        f"{who} by {100 * rate:.0f} % in stiffness and {plateau:.2g} in plateau (standard "
        "deviations): smaller differences cannot be told from luck."
    )


def _exponents(posterior: Posterior) -> str:
    parts = [
        f"{name} {interval_of(posterior.flat(key)).written(2)}"
        for name, key in (
            ("curvature exponent", "curvature_exponent"),
            ("of learning rate", "rate.learning_rate"),
            ("of group size", "rate.group_size"),
            ("of prompts per step", "rate.prompts_per_step"),
        )
    ]
    return f"Exponents of the stiffness ({100 * INTERVAL:.0f} % intervals): {', '.join(parts)}."


def _sensitivity(posterior: Posterior) -> str:
    """Plateaus and stiffnesses that rest on the priors, in one sentence."""
    quantities = {
        name: draws
        for name, draws in deciding_numbers(posterior).items()
        if name.startswith(("plateau", "stiffness"))
    }
    moved = prior_sensitivity(posterior, quantities)
    leaning = [name for name, distance in moved.items() if distance >= SENSITIVE]
    line = f"Would move with the priors (power scaling): {', '.join(leaning)}."
    return line if leaning else ""


# The design --------------------------------------------------------------------------------------

FACTORS = {
    "learning_rate": "learning rate",
    "group_size": "group size",
    "prompts_per_step": "prompts per step",
    "minibatches_per_refresh": "mini-batches per refresh",
    "epochs_per_refresh": "epochs per refresh",
}
"""Settings with an exponent in a law, and what they are called."""

SIZE = "model size"

LEAST_RATIO = 1.1
"""Largest over smallest value below which a factor counts as constant: rounding, not a design."""

ALIASED = 0.95
"""Multiple correlation with other factors from which two effects are one: the variance of the
exponent is inflated by 1 / (1 - 0.95^2) = 10, the customary limit."""

AT_ONCE = 0.25
"""A pilot collapsed at once when it did so within this share of the longest pilot's steps: a
quarter of the timescale tells no curve either (docs/theory, T36)."""

Verdict = Literal["varied", "not varied", "aliased"]


@dataclass(frozen=True)
class FactorCheck:
    """What the pilots can tell of one factor."""

    factor: str
    verdict: Verdict
    values: tuple[float, ...]
    aliased_with: tuple[str, ...]
    detail: str

    @property
    def text(self) -> str:
        """One line."""
        if self.verdict == "aliased":
            what = f"aliased with {' and '.join(self.aliased_with)}"
        elif self.verdict == "varied":
            ends = f"{_number(self.values[0])} to {_number(self.values[-1])}"
            what = f"varied, {len(self.values)} values from {ends}"
        else:
            given = f" ({', '.join(map(_number, self.values))})" if self.values else ""
            what = f"not varied{given}: its exponent is the prior's word"
        return f"{self.factor}: {what}" + (f" ({self.detail})" if self.detail else "")


def design_check(meta: Meta) -> tuple[FactorCheck, ...]:
    """Say of each factor whether the pilots can tell its exponents."""
    at_once = AT_ONCE * meta.longest
    lived = [run for run in meta.runs if run.collapse_step is None or run.collapse_step > at_once]
    groups = sorted({(run.task, run.model) for run in lived})
    of = np.array([groups.index((run.task, run.model)) for run in lived], dtype=int)
    logs = {label: np.log(_values(lived, name)) for name, label in FACTORS.items()}
    within = {label: _centred(values, of) for label, values in logs.items()}
    moved = [label for label in logs if _varies(within[label], of)]
    # What was constant in every group has one value per group.
    fixed = {
        label: _group_means(values, of)
        for label, values in logs.items()
        if label not in moved and _ratio(values) >= LEAST_RATIO
    }
    checks = []
    for name, label in FACTORS.items():
        values = _distinct(_values(lived, name))
        details = [_not_counted(_values(meta.runs, name), values)]
        verdict: Verdict = "not varied"
        others: tuple[str, ...] = ()
        if label in moved:
            rest = {other: within[other] for other in moved if other != label}
            others = _explained(within[label], rest)
            verdict = "aliased" if others else "varied"
            details.append(_relation(within[label], rest, others))
        elif label in fixed:
            verdict, others = "aliased", (_group_alias(fixed[label], groups, lived),)
            details.append("it differs only between groups of pilots, never within one")
        checks.append(FactorCheck(label, verdict, values, others, _clauses(details)))
    return (*checks, _size_check(meta, lived, groups, fixed))


def _size_check(
    meta: Meta,
    lived: list[RunSummary],
    groups: list[tuple[str, str]],
    fixed: Mapping[str, FloatArray],
) -> FactorCheck:
    """Judge the size between groups of one task: each task has a stiffness of its own."""
    sizes = _distinct(np.array([run.parameters for run in lived]))
    details = [_not_counted(np.array([run.parameters for run in meta.runs]), sizes)]
    log_size, task_of = _log_sizes(lived, groups), _task_of(groups)
    if _ratio(log_size) < LEAST_RATIO:
        return FactorCheck(SIZE, "not varied", sizes, (), _clauses(details))
    if len(sizes) < MIN_SIZES:
        details.append(f"below {MIN_SIZES} sizes the curvature exponent is prior-dominated")
    centred = _centred(log_size, task_of)
    if _varies(centred, task_of):
        rest = {label: _centred(means, task_of) for label, means in fixed.items()}
        others = _explained(centred, rest)
    else:
        details.append("no task was piloted at two sizes")
        others = ("task",)
    verdict: Verdict = "aliased" if others else "varied"
    return FactorCheck(SIZE, verdict, sizes, others, _clauses(details))


def _group_alias(means: FloatArray, groups: list[tuple[str, str]], lived: list[RunSummary]) -> str:
    """Name what a factor goes with that differs only between groups."""
    task_of = _task_of(groups)
    if _explained(_centred(means, task_of), {SIZE: _centred(_log_sizes(lived, groups), task_of)}):
        return SIZE
    models = sorted({model for _, model in groups})
    model_of = np.array([models.index(model) for _, model in groups])
    if not _varies(_centred(means, task_of), task_of):
        return "task"
    if not _varies(_centred(means, model_of), model_of):
        return "model"
    return "the pair of task and model"


def _explained(target: FloatArray, others: Mapping[str, FloatArray]) -> tuple[str, ...]:
    """Fewest others of which ``target`` is nearly a linear function; empty where there are none."""
    for count in range(1, len(others) + 1):
        sets = list(combinations(others, count))
        fits = [_correlation(target, [others[name] for name in chosen]) for chosen in sets]
        best = int(np.argmax(fits))
        if fits[best] >= ALIASED:
            return sets[best]
    return ()


def _correlation(target: FloatArray, others: list[FloatArray]) -> float:
    """Multiple correlation R of centred arrays of shape (n,); 0 where the target is constant."""
    total = float(target @ target)
    if total < 1e-12:
        return 0.0
    design = np.stack(others, axis=1)
    left = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(np.sqrt(max(0.0, 1.0 - float(left @ left) / total)))


def _relation(target: FloatArray, rest: Mapping[str, FloatArray], others: tuple[str, ...]) -> str:
    """How a factor follows the one other that it is aliased with, where that is simple to say."""
    if len(others) != 1:
        return ""
    other = rest[others[0]]
    for sign, name in ((-1.0, "product"), (1.0, "ratio")):
        if np.allclose(target, sign * other, atol=np.log(LEAST_RATIO) / 2):
            return f"their {name} never changes"
    return ""


def _values(runs: Sequence[RunSummary], name: str) -> FloatArray:
    return np.array([getattr(run.settings, name) for run in runs], dtype=float)


def _distinct(values: FloatArray) -> tuple[float, ...]:
    return tuple(np.unique(values).tolist())


def _not_counted(values: FloatArray, counted: tuple[float, ...]) -> str:
    """Values that only pilots had which collapsed at once."""
    lost = [_number(value) for value in _distinct(values) if value not in counted]
    return f"not counted, collapsed at once: {', '.join(lost)}" if lost else ""


def _clauses(details: list[str]) -> str:
    return "; ".join(filter(None, details))


def _log_sizes(lived: list[RunSummary], groups: list[tuple[str, str]]) -> FloatArray:
    """Log parameters per group, shape (groups,)."""
    size = {(run.task, run.model): run.parameters for run in lived}
    return np.asarray(np.log([size[pair] for pair in groups]), dtype=float)


def _task_of(groups: list[tuple[str, str]]) -> IntArray:
    tasks = sorted({task for task, _ in groups})
    return np.array([tasks.index(task) for task, _ in groups], dtype=np.int64)


def _group_means(values: FloatArray, of: IntArray) -> FloatArray:
    return np.asarray(np.bincount(of, values) / np.bincount(of))


def _centred(values: FloatArray, of: IntArray) -> FloatArray:
    """Differences from the mean of the own group."""
    return values - _group_means(values, of)[of]


def _varies(centred: FloatArray, of: IntArray) -> bool:
    """Whether values, as logs, differ within any group by more than rounding."""
    return any(_ratio(centred[of == group]) >= LEAST_RATIO for group in np.unique(of))


def _ratio(logs: FloatArray) -> float:
    return float(np.exp(np.ptp(logs))) if logs.size else 1.0


def _number(value: float) -> str:
    """Write ``1e-4``, ``2.7e4``, ``16``."""
    if 1e-2 <= value < 1e4:
        return f"{value:.3g}" if value < 1e3 else f"{value:.0f}"
    return scientific(value)
