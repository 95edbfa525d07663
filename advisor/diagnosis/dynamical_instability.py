"""Dynamical instability: updates that feed on themselves, hold no finite number or move nothing.

Entropy, gradient or mismatch blow up.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.diagnosis import levels
from advisor.diagnosis.card import CARDS, Card, Finding, Status, card_of, filled, finding
from advisor.diagnosis.collapse import UNSURE, find_final_fall, has_collapsed, judged, judged_series
from advisor.runs import PilotRun
from advisor.theory import FloatArray

RULE = SimpleNamespace(**CARDS["dynamical_instability"])


def dynamical_instability(
    run: PilotRun, margin: npt.ArrayLike | None = None, damping: npt.ArrayLike | None = None
) -> Card:
    """Judge blow-ups and importance weights; draws of a posterior where they are given."""
    growths = [growth for name in RULE.times if (growth := find_growth(run, name)) is not None]
    effective = _effective_samples(run)
    verdict, _ = find_final_fall(*judged(run))
    logged = [name for name in (*RULE.times, "importance_ess") if levels.series_of(run, name)]
    updated = dict.fromkeys(("reward", "loss", "kl", *RULE.least, "importance_ess"))
    never = [name for name in updated if name in run.not_finite and name not in run.series]
    broken = [lost for name in updated if (lost := find_lost(run, name)) is not None]
    draws = _finite(margin)
    diverging = None if draws is None else float((draws >= 1).mean())
    margins = []
    if draws is not None:
        texts, dampings = CARDS["dynamical_instability"]["margin"], _finite(damping)
        margins = [texts["stiffness"].format(np.median(draws)), texts["stale"]]
        if dampings is not None:
            quantiles, oscillates = np.quantile(dampings, [0.1, 0.5, 0.9]), (dampings < 1).mean()
            margins[1] = texts["damping"].format(*quantiles, oscillates=oscillates)
    number, unit, threshold = _judged(growths, effective, diverging)
    warnings = list(map(str, growths))
    if effective is not None and effective.interval[1] < RULE.effective:
        warnings.append(f"importance weights leave {effective.mean:.2g} of the samples effective")
    if broken:
        number, unit, threshold = float(broken[0].rows), "rows that are not finite", 3.0
        found = _not_finite(run, broken)
    elif (since := run.frozen_since) is not None:
        rows = np.isfinite(run.series["gradient_norm"]) & (run.step >= since)
        steps, kind = (since, float(run.step[-1])), "dynamical_instability.frozen"
        found = finding(kind, run, steps, rows=int(rows.sum()), since=since)
    elif (idle := _without_rate(run)) is not None:
        found = idle
    elif warnings or (diverging or 0.0) > 0.5:
        found = _unstable_updates(run, warnings, growths, has_collapsed=verdict.unstable)
    elif (high := next(_too_high(run), None)) is not None:
        found = high
    elif never:
        names = ", ".join(map(_words, never))
        is_idle = "loss" in never and not run.has_moved
        kind = f"dynamical_instability.never_{'moved' if is_idle else 'finite'}"
        found = finding(kind, run, names=names)
    elif logged or diverging is not None:
        names = ", ".join(map(_words, logged))
        found = finding("dynamical_instability.calm", run, names=names)
    else:
        found = finding("dynamical_instability.absent", run)
    return card_of(
        "dynamical_instability",
        found,
        number=number,
        unit=unit,
        threshold=threshold,
        witnesses=(*map(str, broken[1:]), *warnings, *margins),
        unknown=_unknown(run, draws is not None),
    )


def _without_rate(run: PilotRun) -> Finding | None:
    """Rows with a learning rate of 0, or a warm-up that the run does not leave."""
    step, rate = levels.series_of(run, "learning_rate") or (np.zeros(0), np.zeros(0))
    still = step[rate == 0]
    # Of rates printed with four decimals some are 0 by rounding.
    is_exact = not np.array_equal(rate, rate.round(4))
    if is_exact and still.size >= max(RULE.fewest_still, RULE.still * rate.size):
        steps, kind = (float(still[0]), float(still[-1])), "dynamical_instability.no_rate"
        status: Status = "FAIL" if still.size == rate.size else "WARNING"
        return finding(kind, run, steps, status, rows=still.size, of=rate.size, since=still[0])
    asked, highest = run.hyperparameters.learning_rate or 0.0, rate.max(initial=0.0)
    if rate.size < RULE.fewest_still or not 0 < highest < RULE.still * asked:
        return None
    return finding("dynamical_instability.warm_up", run, highest=highest, asked=asked)


def _too_high(run: PilotRun) -> Iterator[Finding]:
    """Series that lie far above what any healthy run logs, throughout or in a row of the KL."""
    for name, limit in CARDS["dynamical_instability"]["limits"].items():
        series = levels.series_of(run, name)
        if series is not None and (level := float(np.median(series[1]))) > limit:
            span = (float(series[0][0]), float(series[0][-1]))
            highest = float(series[1].max())
            kind = f"dynamical_instability.high_{name}"
            yield finding(kind, run, span, level=level, highest=highest)
    if (series := levels.series_of(run, "kl")) is not None:
        first, last = levels.ends(series[1])
        latest = np.median(series[1][-max(4, series[1].size // 5) :])
        if latest > max(RULE.far, 10 * first.mean):
            span = levels.steps_above(*series, last, RULE.far)
            yield finding("dynamical_instability.left", run, span, first=first, last=last)
    for name in ("kl_max", "kl"):
        step, values = levels.series_of(run, name) or (np.zeros(1), np.zeros(1))
        usual, at = np.median(values[values > 0]) if (values > 0).any() else 1.0, values.argmax()
        if (highest := float(values[at])) > max(1.0, 100 * usual):
            kind, span, times = "dynamical_instability.spike", (step[at], step[at]), highest / usual
            named = {"name": _words(name), "highest": highest, "step": step[at], "times": times}
            yield finding(kind, run, span, None, **named)


class Lost(NamedTuple):
    """A series that is NaN or infinite in some rows of those that log it."""

    name: str
    rows: int
    of: int
    since: float
    until: float
    is_over: bool

    def __str__(self) -> str:
        """Name, rows, and the first step."""
        return f"{_words(self.name)} in {self.rows} of {self.of} rows from step {self.since:.0f} on"


def find_lost(run: PilotRun, name: str) -> Lost | None:
    """Rows in which a series that was finite is not: three in a row, the last two, or most."""
    lost = run.not_finite.get(name, np.zeros(0))
    known = levels.finite(run.step, run.series.get(name, run.step * np.nan))[0]
    step = np.union1d(lost, known)
    bad = np.isin(step, lost)
    places = np.flatnonzero(~bad)
    # Some write NaN where a value is not logged: then the others come in a rhythm.
    if not lost.size or not known.size or np.gcd.reduce(np.diff(places, prepend=-1)[1:]) > 1:
        return None
    ends = np.append(places, bad.size)
    lengths = np.diff(ends) - 1
    # Many scattered rows count; in the first ones mixed precision looks for its scale.
    is_most = bad.mean() > 0.5 or bad[places[0] :].sum() >= max(5, 0.05 * bad.size)
    long = np.flatnonzero(lengths >= 3)
    if not (long.size or lengths[-1] > 1 or is_most):
        return None
    first = ends[long[0] if long.size else -2] + 1 if not is_most else np.argmax(bad)
    rows, until = int(bad[first:].sum()), float(step[np.flatnonzero(bad)[-1]])
    return Lost(name, rows, int(bad.size), float(step[first]), until, not bad[-1])


def _not_finite(run: PilotRun, broken: list[Lost]) -> Finding:
    """Series that stopped being finite; a WARNING while the reward holds."""
    first = min(broken, key=lambda one: one.since)
    step, reward = judged_series(run)
    before, after = reward[step < first.since], reward[step >= first.since]
    rows = max(levels.LEAST_ROWS, after.size // 2)
    fell = levels.level(before[-rows:]).above(levels.level(after[-rows:])) > UNSURE
    is_held = after.size and not fell and not has_collapsed(run) and first.name != "reward"
    is_free = run.hyperparameters.kl_coefficient == 0 and {one.name for one in broken} == {"kl"}
    status: Status = "INFO" if is_free and is_held else "WARNING" if is_held else "FAIL"
    steps, what = (first.since, max(one.until for one in broken)), _capital(str(first))
    kind = "not_finite" if run.step[0] < first.since - 2 else "not_finite_at_once"
    if is_held and (is_free or all(one.is_over for one in broken)):
        kind = "not_finite_for_free" if is_free else "was_not_finite"
    return finding(f"dynamical_instability.{kind}", run, steps, status, what=what, first=first)


def _unstable_updates(
    run: PilotRun, warnings: list[str], growths: list[SeriesGrowth], *, has_collapsed: bool
) -> Finding:
    """Series that blew up, few effective samples, or a refresh map that diverges."""
    what = _capital(warnings[0]) if warnings else "The refresh map diverges under the posterior"
    return finding(
        "dynamical_instability.unstable",
        run,
        (min(growth.since for growth in growths), float(run.step[-1])) if growths else None,
        "FAIL" if growths and has_collapsed else None,
        what=what,
        more=f", with {len(warnings) - 1} more" if len(warnings) > 1 else "",
    )


def _effective_samples(run: PilotRun) -> levels.Level | None:
    """Effective share of the last fifth; None where it is not logged, or as a count."""
    found = levels.series_of(run, "importance_ess")
    if found is None or found[1].max() > 1 or found[1].min() < 0:
        return None
    return levels.ends(found[1])[1]


def _judged(
    growths: list[SeriesGrowth], effective: levels.Level | None, diverging: float | None
) -> tuple[float | None, str, float | None]:
    """Number, unit and threshold of what weighs most."""
    if diverging is not None:
        return diverging, "P(refresh map diverges)", 0.5
    if growths:
        return growths[0].high / growths[0].calm, "growth", RULE.times[growths[0].name]
    if effective is not None:
        return effective.mean, "effective share of the samples", RULE.effective
    return None, "", None


def _finite(draws: npt.ArrayLike | None) -> FloatArray | None:
    """Finite draws, or None where there is none."""
    if draws is None:
        return None
    flat = np.ravel(np.asarray(draws, dtype=float))
    kept = flat[np.isfinite(flat)]
    return kept if kept.size else None


def _words(name: str) -> str:
    return name.replace("_", " ").replace("kl", "KL")


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _unknown(run: PilotRun, has_margin: bool) -> tuple[str, ...]:
    key = next((key for key in run.keys_understood if "rollout_probs_diff" in key), None)
    of_mismatch = "mismatch" if key is None else "of_probabilities"
    # Series of the difference between what samples and what is trained.
    lacking = {
        "entropy": "entropy" not in run.series,
        of_mismatch: frozenset({"mismatch_kl", "mismatch_difference"}).isdisjoint(run.series),
        "importance_ess": "importance_ess" not in run.series,
        "margin": not has_margin,
    }
    texts = CARDS["dynamical_instability"]["unknown"]
    return tuple(filled(texts[name], run, {"key": key}) for name, is_so in lacking.items() if is_so)


class SeriesGrowth(NamedTuple):
    """A series that rose from its calmest stretch."""

    name: str
    calm: float
    high: float
    since: float

    def __str__(self) -> str:
        """Name, both levels, and the step."""
        return f"{_words(self.name)} {self.calm:.3g} -> {self.high:.3g} from step {self.since:.0f}"


def find_growth(run: PilotRun, name: str) -> SeriesGrowth | None:
    """Growth of a series from its calmest stretch to the highest one after it, beyond noise."""
    found = levels.series_of(run, name)
    if found is None:
        return None
    # A blow-up in the last rows stands out of a short window only.
    grown = (_growth_in(name, *found, share) for share in (0.15, 0.05))
    return next((one for one in grown if one is not None), None)


def _growth_in(
    name: str, step: FloatArray, values: FloatArray, share: float
) -> SeriesGrowth | None:
    """Growth between windows of a share of all rows."""
    width = max(4, round(share * values.size))
    if values.size < 2 * width:
        return None
    means = levels.trailing_mean(values, width)
    calm_at = int(np.argmin(np.where(means > 0, means, np.inf)[: -width or None]))
    # A policy that starts wild calms down first: what counts is what comes after the calm.
    high_at = calm_at + int(np.argmax(means[calm_at:]))
    quiet, wild = values[calm_at : calm_at + width], values[high_at : high_at + width]
    calm, high = float(quiet.mean()), float(wild.mean())
    if not calm > 0 or high < RULE.least.get(name, 0.0):
        return None
    is_grown = high >= max(RULE.times[name] * calm, 1.5 * float(values[:width].mean()))
    # What grows on has no level to compare.
    is_apart = wild.min() >= RULE.apart * quiet.max()
    # Of short windows there are many, and one of them is high by chance.
    is_sure = is_apart or (share > 0.1 and _certainty(quiet, wild) >= levels.SURE)
    if not is_grown or not is_sure:
        return None
    above = np.flatnonzero(values[calm_at : high_at + width] > 0.5 * (calm + high))
    return SeriesGrowth(name, calm, high, float(step[calm_at + above[0]]))


def _certainty(quiet: FloatArray, wild: FloatArray) -> float:
    """Growth from one stretch to another in standard errors."""
    rest = np.concatenate([quiet - quiet.mean(), wild - wild.mean()])
    found = levels.lag_one(rest)
    widened = levels.widening(found + (2 + 4 * max(found, 0.0)) / rest.size)
    error = float(np.hypot(quiet.std(ddof=1), wild.std(ddof=1))) / np.sqrt(quiet.size) * widened
    error = max(error, levels.ROUNDING * float(np.abs(wild).max()))
    freedom = max(1.0, (rest.size - 2) / widened**2)
    return levels.as_normal(float(wild.mean() - quiet.mean()) / error, freedom)
