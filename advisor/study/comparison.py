"""Two studies or two runs, or a study and finished runs: find out which, and compare them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice import Recommendation, percent
from advisor.diagnosis import Level, diagnose
from advisor.errors import InputError
from advisor.forecast import Interval
from advisor.runs import PilotRun, inspect, is_source
from advisor.study.outcomes import (
    Comparison,
    Judged,
    Section,
    Value,
    compare_outcomes,
    compared,
    rounded,
)
from advisor.study.study import Study, is_study

if TYPE_CHECKING:
    import pandas as pd

APART = 2.0  # Standard errors from which two levels are called different


def compare(
    one: Study | str | Path,
    other: Study | str | Path,
    *,
    sidecar: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare two studies, two runs, or a study with what came of its forecasts.

    Parameters
    ----------
    one, other : Study or path-like
        Studies, or folders of studies; logs, or folders of one run each; or a study and the log, or
        folder of logs, of finished runs. As text also ``wandb:ENTITY/PROJECT/RUN`` and what else
        `advisor.read_runs` asks of a tracker's own client.
    sidecar, overrides, columns
        Of runs, as in `advisor.read_runs`.

    Returns
    -------
    comparison : Comparison

    Raises
    ------
    InputError
        A folder does not hold exactly one run, or finished runs are not of the study's model and
        task.

    Warns
    -----
    UserWarning
        Another version of the package made a study.
    """
    both = one, other
    for item in both:
        if isinstance(item, str | Path) and not is_source(item) and not Path(item).exists():
            raise InputError("there is no such file or folder", path=item)
    names = _name(one), _name(other)
    stated = {"sidecar": sidecar, "overrides": overrides, "columns": columns}
    studies = [_study(item) for item in both]
    if studies[0] is not None and studies[1] is not None:
        return compare_studies(names, studies[0], studies[1])
    runs = [
        [] if study is not None else _runs(name, stated)
        for name, study in zip(names, studies, strict=True)
    ]
    for at, study in enumerate(studies):
        if study is not None:
            advice, paths = study.recommendation, (names[at], names[1 - at])
            return compare_outcomes(paths, study.posterior, advice, runs[1 - at])
    left, right = map(_only_run, names, runs)
    return compare_runs(names, left, right)


def _name(item: Study | str | Path) -> str:
    """Path, or that of a study."""
    return str(item if isinstance(item, str | Path) else item.path or "study not saved")


def _study(item: Study | str | Path) -> Study | None:
    """Study that is given, or lies in a folder."""
    if isinstance(item, Study):
        return item
    is_one = (Path(item) / "manifest.json").is_file() and is_study(Path(item))
    return Study.load(item) if is_one else None


def _runs(path: str, stated: dict[str, Any]) -> list[PilotRun]:
    found = inspect([path], **stated)
    runs = [run for run in found.runs if run.copy_of is None]
    if not runs:
        problem = "no run was found, and it is no study"
        raise found.refused([path], problem, "a study, or")
    return runs


def _only_run(path: str, runs: list[PilotRun]) -> PilotRun:
    if len(runs) > 1:
        named = ", ".join(run.id for run in runs[:5])
        more = f" and {len(runs) - 5} more" if len(runs) > 5 else ""
        advice = "Give the log of one of them; advisor inspect lists them with their paths"
        raise InputError(f"there are {len(runs)} runs ({named}{more})", path=path, advice=advice)
    return runs[0]


Facts = Mapping[Any, Any]
"""What one side has, by name; of a name that occurs several times the first part of a tuple."""


def _section(title: str, sides: Iterable[Facts], notes: tuple[str, ...] = ()) -> Section:
    """Section of the facts of both sides."""
    one, other = sides
    keys = dict.fromkeys([*one, *other])
    named = [(key if isinstance(key, str) else key[0], key) for key in keys]
    lines = [compared(name, one.get(key), other.get(key)) for name, key in named]
    return Section(title, tuple(lines), notes)


# Studies -----------------------------------------------------------------------------------------


def compare_studies(paths: tuple[str, str], one: Study, other: Study) -> Comparison:
    """Advised settings and what is forecast of them."""
    answers = one.recommendation, other.recommendation
    measure = answers[0].measure
    sections = (
        _section("Settings", map(_advised, answers)),
        _section("Forecast", (_forecast(measure, side) for side in answers)),
    )
    return Comparison("studies", paths, sections)


def _advised(advice: Recommendation) -> Facts:
    return {
        "answer": advice.kind,
        **advice.settings.model_dump(),
        "refresh_interval": advice.settings.refresh_interval,
        "steps": advice.steps,
    }


def _forecast(measure: str, advice: Recommendation) -> Facts:
    stability, cost = advice.stability, advice.cost
    return {
        f"{measure} at the last step": _outcome(advice.reward),
        "peak on the way": _outcome(advice.peak),
        "P(stable)": Value(stability.probability, percent(stability.probability)),
        "completions": rounded(cost.completions, ",.0f"),
        "tokens": rounded(cost.tokens),
        "GPU-hours": rounded(cost.gpu_hours),
        "95 % of the gain by step": rounded(advice.steps_to_95, ".0f"),
    }


def _outcome(found: Interval) -> Value:
    text = f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"
    return Value(found.model_dump(), text, _judge_outcomes)


def _judge_outcomes(one: dict[str, float], other: dict[str, float]) -> Judged:
    gap = other["mean"] - one["mean"]
    differs = any(f"{one[name]:.3f}" != f"{other[name]:.3f}" for name in ("mean", "low", "high"))
    return differs, f"{gap:+.3f}", gap


# Runs --------------------------------------------------------------------------------------------


def table(runs: Sequence[PilotRun]) -> pd.DataFrame:
    """A row for each run, by its id: model, settings, length, and its reward at both ends."""
    import pandas as pd

    rows = [{**_settings(run), **_lengths(run), **_levels(run)} for run in runs]
    cells = [
        {name: one.value["mean"] if isinstance(one, Value) else one for name, one in row.items()}
        for row in rows
    ]
    found = pd.DataFrame(cells, index=pd.Index([run.id for run in runs], name="run"))
    return found.dropna(axis="columns", how="all")


def compare_runs(paths: tuple[str, str], one: PilotRun, other: PilotRun) -> Comparison:
    """Settings, lengths, first and last level, and verdicts of two runs."""
    note = (
        "Levels are means of the first and of the last fifth of the rows, with standard errors "
        f"inflated for autocorrelation; they differ from {APART:g} standard errors on."
    )
    runs = one, other
    sections = (
        _section("Settings", map(_settings, runs)),
        _section("Lengths", map(_lengths, runs)),
        _section("Levels", map(_levels, runs), (note,)),
        _section("Diagnosis", (_verdicts(run, runs) for run in runs)),
    )
    return Comparison("runs", paths, sections)


def _settings(run: PilotRun) -> Facts:
    named = ("model", "parameters", "task", "reward_floor", "reward_ceiling")
    return {
        **{name.replace("_", " "): getattr(run, name) for name in named},
        **run.hyperparameters.model_dump(),
        "refresh interval (K)": run.hyperparameters.refresh_interval,
    }


def _lengths(run: PilotRun) -> Facts:
    return {
        "rows": int(run.step.size),
        "first step": float(run.step[0]) if run.step.size else None,
        "last step": float(run.step[-1]) if run.step.size else None,
        "steps per row": run.logging_steps,
        "steps count": run.step_unit,
        "evaluations": int(run.eval_step.size),
        "series": sorted(run.series),
        "format": run.format,
        "trainer": run.framework or None,
    }


def _levels(run: PilotRun) -> Facts:
    found = {}
    for name, values in (("reward", run.reward), ("held-out reward", run.eval_reward)):
        levels = Level.first_and_last(values[np.isfinite(values)])
        for place, level in zip(("first", "last"), levels, strict=False):
            error = f" +- {level.error:.3f}" if math.isfinite(level.error) else ""
            value = {"mean": level.mean, "error": level.error}
            found[f"{place} {name}"] = Value(value, f"{level.mean:.3f}{error}", _judge_levels)
    return found


def _judge_levels(one: dict[str, float], other: dict[str, float]) -> Judged:
    if not math.isfinite(one["error"] + other["error"]):
        # Too few rows for an error: what is written differently is shown.
        return f"{one['mean']:.3f}" != f"{other['mean']:.3f}", "too few to judge", None
    apart = Level(**other).above(Level(**one))
    gap = other["mean"] - one["mean"]
    return abs(apart) >= APART, f"{gap:+.3f}, {apart:+.1f} standard errors", apart


def _verdicts(run: PilotRun, both: Sequence[PilotRun]) -> Facts:
    found = diagnose(run, siblings=both)

    def judge(one: str, other: str) -> Judged:
        """Whether the status differs: headlines carry numbers that always differ a little."""
        return one.partition(":")[0] != other.partition(":")[0], "", None

    texts = {
        card.title: "not applicable"
        if card.status == "NOT APPLICABLE"
        else f"{card.status}: {card.headline}"
        for card in found.by_cause
    }
    return {
        "verdict": found.verdict,
        "collapse at step": found.collapse_step,
        **{title: Value(text, text, judge) for title, text in texts.items()},
    }
