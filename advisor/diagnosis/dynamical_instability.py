"""Dynamical instability: the updates feed on themselves; entropy, gradient or mismatch blow up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.diagnosis.card import Card
from advisor.diagnosis.collapse import trailing_mean
from advisor.diagnosis.collapse_card import has_collapsed
from advisor.diagnosis.fall import SURE
from advisor.diagnosis.knobs import knob
from advisor.diagnosis.levels import (
    ROUNDING,
    FloatArray,
    as_normal,
    lag_one,
    level,
    series_of,
    widening,
)
from advisor.diagnosis.oscillation import find_oscillation
from advisor.runs.pilot_run import PilotRun

MODE = "dynamical_instability"
TITLE = "Dynamical instability"

TIMES = {
    "entropy": 3.0,
    "gradient_norm": 5.0,
    "mismatch_kl": 10.0,
    "policy_kl": 10.0,
    "clip_share": 5.0,
}
"""Growth over the calmest stretch that counts as a blow-up."""

LEAST = {"entropy": 0.5, "mismatch_kl": 0.01, "policy_kl": 0.05, "clip_share": 0.1}
"""Level below which growth is harmless, whatever its factor (nats; share)."""

SHARE = 0.15
"""Share of the run over which a level is taken."""

SOURCE = (
    "ours, read off the labelled runs: three times the calmest entropy and half a nat, five "
    "times the gradient norm, ten times the mismatch; clip shares above .1 are verl's own warning"
)


class Growth(NamedTuple):
    """A series that rose from its calmest stretch."""

    name: str
    calm: float
    high: float
    since: float

    def __str__(self) -> str:
        """Name, both levels, and the step."""
        name = self.name.replace("_", " ")
        return f"{name} {self.calm:.3g} -> {self.high:.3g} from step {self.since:.0f}"


def dynamical_instability(run: PilotRun, margin: npt.ArrayLike | None = None) -> Card:
    """Judge blow-ups and oscillation, and the refresh margin where draws of it are given.

    Parameters
    ----------
    run : PilotRun
    margin : array_like of shape (draws,), optional
        Stiffness over the largest that the refresh schedule stands
        (`advisor.advice.stability.stiffness_left`); above 1 the refresh map diverges.
    """
    grown = [growth for name in TIMES if (growth := find_growth(run, name)) is not None]
    swing = None if run.is_eval_only else find_oscillation(run.step, run.reward)
    seen = [name for name in TIMES if series_of(run, name) is not None]
    draws = None if margin is None else np.ravel(np.asarray(margin, dtype=float))
    draws = None if draws is None or not np.isfinite(draws).any() else draws[np.isfinite(draws)]
    said = [str(growth) for growth in grown]
    if swing is not None:
        said.append(
            f"reward swings with a period of {swing.period:.0f} steps "
            f"(chance of so strong a peak in noise {swing.chance:.0e})"
        )
    diverging = 0.0 if draws is None else float((draws >= 1).mean())
    number, unit = (None, "") if not grown else (grown[0].high / grown[0].calm, "growth")
    if draws is not None:
        number, unit = diverging, "P(refresh map diverges)"
        said.append(f"stiffness is {np.median(draws):.2g} of what the refresh interval stands")
    common = {
        "mode": MODE,
        "title": TITLE,
        "number": number,
        "unit": unit,
        "threshold": 0.5 if draws is not None else TIMES[grown[0].name] if grown else None,
        "source": SOURCE,
        "witnesses": tuple(said),
        "unknown": _unknown(run, draws is not None),
    }
    if not seen and swing is None and draws is None:
        return Card(
            **common,
            status="NOT APPLICABLE",
            headline="No entropy, gradient norm or mismatch in the log; reward alone gives no "
            "early warning.",
        )
    change = (
        f"Lower {knob(run, 'learning_rate')} to a third, or refresh more often "
        f"({knob(run, 'epochs_per_refresh')}, {knob(run, 'minibatches_per_refresh')}); "
        f"{knob(run, 'clip')} lower."
    )
    span = None if not grown else (min(g.since for g in grown), float(run.step[-1]))
    # One series may wander; two, or one beside a collapse, do not.
    if len(grown) >= 2 or (grown and has_collapsed(run)) or diverging > 0.5:
        return Card(
            **common,
            status="FAIL" if grown and has_collapsed(run) else "WARNING",
            headline=(said[0] if grown else "The refresh map diverges under the posterior")
            + (f", with {len(said) - 1} more" if len(said) > 1 else "")
            + ".",
            steps=span,
            change=change,
        )
    if grown or swing is not None:
        return Card(
            **common,
            status="WARNING" if grown else "INFO",
            headline=f"{said[0][0].upper()}{said[0][1:]}.",
            steps=span,
            change=change if grown else "",
        )
    return Card(
        **common,
        status="PASS",
        headline="No blow-up in " + ", ".join(name.replace("_", " ") for name in seen) + ".",
    )


def find_growth(run: PilotRun, name: str) -> Growth | None:
    """Growth of a series from its calmest stretch to the highest one after it, beyond noise."""
    found = series_of(run, name)
    if found is None:
        return None
    step, values = found
    width = max(4, round(SHARE * values.size))
    if values.size < 2 * width:
        return None
    means = trailing_mean(values, width)
    calm_at = int(np.argmin(np.where(means > 0, means, np.inf)[: -width or None]))
    # A policy that starts wild calms down first: what counts is what comes after the calm.
    high_at = calm_at + int(np.argmax(means[calm_at:]))
    quiet, wild = values[calm_at : calm_at + width], values[high_at : high_at + width]
    calm, high = level(quiet), level(wild)
    if not calm.mean > 0 or high.mean < LEAST.get(name, 0.0):
        return None
    started = level(values[:width]).mean
    is_grown = high.mean >= TIMES[name] * calm.mean and high.mean >= 1.5 * started
    if not is_grown or _certainty(quiet, wild) < SURE:
        return None
    limit = 0.5 * (calm.mean + high.mean)
    above = np.flatnonzero(values[calm_at : high_at + width] > limit)
    return Growth(name, calm.mean, high.mean, float(step[calm_at + above[0]]))


def _certainty(quiet: FloatArray, wild: FloatArray) -> float:
    """Growth from one stretch to another in standard errors."""
    rest = np.concatenate([quiet - quiet.mean(), wild - wild.mean()])
    found = lag_one(rest)
    widened = widening(found + (2 + 4 * max(found, 0.0)) / rest.size)
    error = float(np.hypot(quiet.std(ddof=1), wild.std(ddof=1))) / np.sqrt(quiet.size) * widened
    error = max(error, ROUNDING * float(np.abs(wild).max()))
    freedom = max(1.0, (rest.size - 2) / widened**2)
    return as_normal(float(wild.mean() - quiet.mean()) / error, freedom)


def _unknown(run: PilotRun, has_margin: bool) -> tuple[str, ...]:
    lines = []
    if "entropy" not in run.series:
        lines.append("Entropy is not logged (TRL: entropy; verl: actor/entropy).")
    if "mismatch_kl" not in run.series:
        lines.append(
            "Mismatch of sampler and trainer is not logged (TRL: sampling/sampling_logp_difference "
            "with vllm_importance_sampling_correction)."
        )
    if not has_margin:
        lines.append("The refresh margin needs a fitted posterior (diagnose --posterior).")
    return tuple(lines)
