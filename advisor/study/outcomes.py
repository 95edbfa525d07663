"""What a comparison is, and that of a study's forecasts with the ends of finished runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic_core import to_json

from advisor.advice import AXES, Recommendation, percent, what_if_rows
from advisor.diagnosis import diagnose
from advisor.errors import InputError
from advisor.forecast import FINAL_SHARE, Forecaster, final_rows
from advisor.model import Posterior
from advisor.reporting import Came
from advisor.runs import PilotRun, Settings
from advisor.text import counted

SAME = 1e-6  # Relative difference below which two learning rates are one: logs round them


@dataclass(frozen=True)
class ComparedLine:
    """One quantity of both sides: values as JSON holds them (None where a side has none), texts."""

    name: str
    one: Any
    other: Any
    shown: tuple[str, str]
    differs: bool
    note: str = ""  # how far they are apart, where that can be said
    apart: float | None = None  # the same as a number


@dataclass(frozen=True)
class Section:
    """Lines that belong together, and notes on how to read them."""

    title: str
    lines: tuple[ComparedLine, ...]
    notes: tuple[str, ...] = ()

    def table(self, heads: Sequence[str]) -> dict[str, Any]:
        """Title, columns, rows of texts, and notes, as the page lays out tables."""
        return {
            "title": self.title,
            "columns": ["", *heads],
            "rows": [[line.name, *line.shown, line.note] for line in self.lines],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Comparison:
    """Two studies, two runs, or a study and finished runs."""

    kind: Literal["studies", "runs", "study and runs"]
    paths: tuple[str, str]
    sections: tuple[Section, ...]
    heads: tuple[str, str, str] = ("A", "B", "B - A")  # of both sides, and of what lies between
    is_whole: bool = False  # shown with the lines that do not differ

    def __repr__(self) -> str:
        """Paths, and how many lines of each section differ."""
        counts = ", ".join(
            f"{sum(line.differs for line in section.lines)} of {len(section.lines)} "
            f"{section.title.lower()}"
            for section in self.sections
        )
        return f"Comparison({self.paths[0]} and {self.paths[1]}; different: {counts})"

    @property
    def differs(self) -> bool:
        """Whether any line does."""
        return any(line.differs for section in self.sections for line in section.lines)

    def to_json(self) -> str:
        """All lines, those that do not differ too; numbers that are not finite are null."""
        document = {
            "kind": self.kind,
            "one": self.paths[0],
            "other": self.paths[1],
            "differs": self.differs,
            "sections": self.sections,
        }
        unshown = {"sections": {"__all__": {"lines": {"__all__": {"shown"}}}}}
        return to_json(document, indent=2, inf_nan_mode="null", exclude=unshown).decode()


Judged = tuple[bool, str, float | None]
"""Whether two values differ, how far in words, and as a number."""


@dataclass(frozen=True)
class Value:
    """A value with a text of its own; two differ by their judge, without one by their texts."""

    value: Any
    text: str
    judge: Callable[[Any, Any], Judged] | None = None


def rounded(value: float | None, form: str = ".3g") -> Value | None:
    """Result that differs where it is written differently."""
    return None if value is None else Value(value, f"{value:{form}}")


def compared(name: str, one: Any, other: Any) -> ComparedLine:
    """Line of two values: settings differ as soon as they are not equal, a `Value` as it says."""
    if not isinstance(one, Value) and not isinstance(other, Value):
        shown = written(one), written(other)
        if one != other and shown[0] == shown[1]:
            shown = repr(one), repr(other)  # six digits do not tell them apart
        return ComparedLine(name, one, other, shown, one != other)
    left, right = (Value(None, written(None)) if side is None else side for side in (one, other))
    values, shown = (left.value, right.value), (left.text, right.text)
    if one is None or other is None or one.judge is None:
        return ComparedLine(name, *values, shown, shown[0] != shown[1])
    return ComparedLine(name, *values, shown, *one.judge(*values))


def written(value: Any) -> str:
    """A setting as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {written(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(written, value))
    return str(value)


def compare_outcomes(
    paths: tuple[str, str], posterior: Posterior, advice: Recommendation, runs: Sequence[PilotRun]
) -> Comparison:
    """Forecasts of a study at each finished run's own settings and length, and what came."""
    forecaster = Forecaster(posterior, advice.target, seed=advice.terms.seed)
    roles = {"advised": advice.settings, "best pilot's settings": advice.best_piloted.settings}
    roles |= {one.name: one.settings for one in advice.recipes}
    found = []
    for run in runs:
        settings = _settings(advice, posterior, run)
        names = [name for name, role in roles.items() if _is_same(role, settings)]
        name = ", ".join(names) + ": " * bool(names) + run.id
        fell = diagnose(run, siblings=runs).collapse_step
        place = list(roles).index(names[0]) if names else len(roles)
        found.append((place, _line(forecaster, advice, name, settings, run, fell)))
    found.sort(key=lambda one: one[0])
    had, price = advice.evidence, advice.cost.completions
    notes = [
        f"Forecast: {advice.measure} at the last step of a run of exactly these settings, with the "
        "80 % interval of one run that stays stable, and P(stable). Outcome: mean of its last "
        "tenth, and what it generated.",
        f"The {counted(had.pilots, 'pilot')} generated {had.pilots_cost:,.0f} completions, "
        f"{100 * had.pilots_cost / price:.0f} % of the advised run's {price:,.0f}.",
    ]
    if not any(place == 0 for place, _ in found):
        notes.append("None of these runs has the advised settings.")
    section = Section("Forecast and outcome", tuple(line for _, line in found), tuple(notes))
    return Comparison(
        "study and runs", paths, (section,), ("forecast", "outcome", "difference"), True
    )


def came_of(posterior: Posterior, advice: Recommendation, runs: Sequence[PilotRun]) -> list[Came]:
    """How finished runs ended, of those that logged it."""
    ended = [(run, _came(advice, run)) for run in runs]
    return [
        Came(
            _settings(advice, posterior, run),
            int(run.step[-1]),
            reward,
            diagnose(run, siblings=runs).collapse_step is not None,
        )
        for run, reward in ended
        if reward is not None
    ]


def _settings(advice: Recommendation, posterior: Posterior, run: PilotRun) -> Settings:
    """Settings of a run that the study can forecast: one that names no model has its only one."""
    target = advice.target
    for what, own, wanted in (("model", run.model, target.model), ("task", run.task, target.task)):
        if own != wanted and (own is not None or len(posterior.meta.groups) > 1):
            raise InputError(
                f"{run.id} is of {what} '{own or '-'}', and the study advises on '{wanted}'",
                path=run.path,
                advice=f"Give finished runs of {target.subject}, or say it with `{what}`",
            )
    if not run.step.size:
        raise InputError(f"{run.id} logged no training step", path=run.path)
    return run.hyperparameters.completed()


def _is_same(one: Settings, other: Settings) -> bool:
    return all(math.isclose(getattr(one, of), getattr(other, of), rel_tol=SAME) for of in AXES)


def _line(
    forecaster: Forecaster,
    advice: Recommendation,
    name: str,
    settings: Settings,
    run: PilotRun,
    fell: float | None,
) -> ComparedLine:
    steps = int(run.step[-1])
    row = what_if_rows(forecaster, advice.terms.cost_model, settings, {"steps": steps})[0]
    came = _came(advice, run)
    columns = ("reward", "reward_low", "reward_high", "p_stable")
    mean, low, high, sure = (float(row[column]) for column in columns)
    ended = "stable" if fell is None else f"collapsed at step {fell:.0f}"
    reward = "no evaluation in its last tenth" if came is None else f"{came:.3f}"
    # By the digits shown: nobody can see why 0.919 is outside [0.919, 1.000].
    is_inside = came is not None and round(low, 3) <= round(came, 3) <= round(high, 3)
    where = "inside" if is_inside else "outside"
    apart = None if came is None else came - mean
    return ComparedLine(
        name=name,
        one={"mean": mean, "low": low, "high": high, "p_stable": sure, "steps": steps},
        other={"reward": came, "collapse_step": fell, "completions": row["completions"]},
        shown=(
            f"{mean:.3f} [{low:.3f}, {high:.3f}], stable {percent(sure)}",
            f"{reward}, {ended}, {row['completions']:,.0f} completions",
        ),
        differs=not is_inside,  # from the forecast's interval
        note="" if apart is None else f"{apart:+.3f}, {where} the interval",
        apart=apart,
    )


def _came(advice: Recommendation, run: PilotRun) -> float | None:
    """Mean of the last tenth of what the study forecasts; None where nothing was logged there."""
    values = run.reward[final_rows(run)]
    if advice.measure != "reward":
        values = run.eval_reward[run.eval_step > (1 - FINAL_SHARE) * run.step[-1]]
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else None
