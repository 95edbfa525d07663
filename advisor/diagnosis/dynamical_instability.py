"""Dynamical instability: the updates feed on themselves; entropy, gradient or mismatch blow up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.diagnosis.blow_up import TIMES, Growth, find_growth
from advisor.diagnosis.card import Card
from advisor.diagnosis.collapse_card import floor_of, judged_series
from advisor.diagnosis.fall import find_final_fall
from advisor.diagnosis.levels import Level, ends, series_of
from advisor.diagnosis.oscillation import find_oscillation
from advisor.diagnosis.refresh_pattern import alternation, find_drift
from advisor.diagnosis.slowing import find_slowing
from advisor.run.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray
from advisor.trainers import setting_name

MODE = "dynamical_instability"
TITLE = "Dynamical instability"

FEW_EFFECTIVE = 0.3
"""Effective sample size of the importance weights, as a share, below which verl warns."""

DRIFTING = ("reward", "gradient_norm")
"""Series that are folded at the refresh interval; the clip share grows within any refresh."""

SOURCE = (
    "ours, read off the labelled runs: three times the calmest entropy and half a nat, five "
    "times the gradient norm, ten times the mismatch; clip shares above .1 and effective sample "
    "sizes below .3 are verl's own warnings"
)


def dynamical_instability(
    run: PilotRun,
    margin: npt.ArrayLike | None = None,
    damping: npt.ArrayLike | None = None,
) -> Card:
    """Judge blow-ups, swings and importance weights; margin and damping where draws are given.

    Parameters
    ----------
    run : PilotRun
    margin : array_like of shape (draws,), optional
        Stiffness over the largest that the refresh schedule stands
        (`advisor.forecast.margin.Margin`); above 1 the refresh map diverges.
    damping : array_like of shape (draws,), optional
        Damping ratio of the stiffest mode (`advisor.forecast.margin.Margin`); NaN where the
        closed form does not hold.
    """
    grown = [growth for name in TIMES if (growth := find_growth(run, name)) is not None]
    few = _effective_samples(run)
    step, reward = judged_series(run)
    verdict, fall = find_final_fall(step, reward, floor_of(run))
    before = reward if fall is None or not verdict.unstable else reward[step < fall.onset_step]
    signs = [] if run.is_eval_only else _signs(run, before)
    seen = [name for name in (*TIMES, "importance_ess") if series_of(run, name) is not None]
    draws = _finite(margin)
    diverging = 0.0 if draws is None else float((draws >= 1).mean())
    number, unit, threshold = _judged(grown, few, None if draws is None else diverging)
    said = [str(growth) for growth in grown]
    if few is not None and few.interval[1] < FEW_EFFECTIVE:
        said.append(f"importance weights leave {few.mean:.2g} of the samples effective")
    bad = len(said)
    said += signs
    if draws is not None:
        said.append(f"stiffness is {np.median(draws):.2g} of what the refresh interval stands")
        said.append(_damping(_finite(damping)))
    common = {
        "mode": MODE,
        "title": TITLE,
        "number": number,
        "unit": unit,
        "threshold": threshold,
        "source": SOURCE,
        "witnesses": tuple(said),
        "unknown": _unknown(run, draws is not None),
    }
    if not seen and not signs and draws is None:
        return Card(
            **common,
            status="NOT APPLICABLE",
            headline="No entropy, gradient norm or mismatch in the log; reward alone gives no "
            "early warning.",
        )
    change = (
        f"Lower {setting_name(run, 'learning_rate')} to a third, or refresh more often "
        f"({setting_name(run, 'epochs_per_refresh')}, "
        f"{setting_name(run, 'minibatches_per_refresh')}); "
        f"{setting_name(run, 'clip')} lower."
    )
    span = None if not grown else (min(g.since for g in grown), float(run.step[-1]))
    if bad or diverging > 0.5:
        # One series may wander; one beside a collapse does not.
        return Card(
            **common,
            status="FAIL" if grown and verdict.unstable else "WARNING",
            headline=(_capital(said[0]) if bad else "The refresh map diverges under the posterior")
            + (f", with {bad - 1} more" if bad > 1 else "")
            + ".",
            steps=span,
            change=change,
        )
    if signs:
        return Card(**common, status="INFO", headline=f"{_capital(signs[0])}.")
    return Card(
        **common,
        status="PASS",
        headline="No blow-up in " + ", ".join(name.replace("_", " ") for name in seen) + ".",
    )


def _signs(run: PilotRun, before_fall: FloatArray) -> list[str]:
    """What the reward and the refreshes show of themselves: worth knowing, no verdict."""
    said = []
    swing = find_oscillation(run.step, run.reward)
    if swing is not None:
        said.append(
            f"reward swings with a period of {swing.period:.0f} steps "
            f"(chance of so strong a peak in noise {swing.chance:.0e})"
        )
    chance = alternation(run)
    if chance is not None:
        said.append(
            "rewards of successive refreshes alternate, as near a flip of the refresh map "
            f"(chance in noise {chance:.0e})"
        )
    slowing = find_slowing(before_fall)
    if slowing is not None:
        said.append(
            "variance and autocorrelation of the reward rise together (p "
            f"{slowing.chance:.3f} against surrogates); no forecast of a collapse rests on it"
        )
    for name in DRIFTING:
        drift = find_drift(run, name)
        if drift is not None:
            said.append(
                f"{name.replace('_', ' ')} depends on the position within a refresh of "
                f"{drift.interval} steps: {drift.first:.3g} at its first, {drift.last:.3g} at its "
                f"last (chance in noise {drift.chance:.0e})"
            )
    return said


def _effective_samples(run: PilotRun) -> Level | None:
    """Effective share of the last fifth; None where it is not logged, or as a count."""
    found = series_of(run, "importance_ess")
    if found is None or found[1].max() > 1 or found[1].min() < 0:
        return None
    return ends(found[1])[1]


def _judged(
    grown: list[Growth], few: Level | None, diverging: float | None
) -> tuple[float | None, str, float | None]:
    """Number, unit and threshold of what weighs most."""
    if diverging is not None:
        return diverging, "P(refresh map diverges)", 0.5
    if grown:
        return grown[0].high / grown[0].calm, "growth", TIMES[grown[0].name]
    if few is not None:
        return few.mean, "effective share of the samples", FEW_EFFECTIVE
    return None, "", None


def _finite(draws: npt.ArrayLike | None) -> FloatArray | None:
    """Finite draws, or None where there is none."""
    if draws is None:
        return None
    flat = np.ravel(np.asarray(draws, dtype=float))
    kept = flat[np.isfinite(flat)]
    return kept if kept.size else None


def _damping(draws: FloatArray | None) -> str:
    if draws is None:
        return "damping ratio: samples are too stale for the closed form, the refresh map decides"
    low, middle, high = np.quantile(draws, [0.1, 0.5, 0.9])
    return (
        f"damping ratio of the stiffest mode {middle:.2g} (80 % interval {low:.2g} to {high:.2g}): "
        f"it oscillates with probability {(draws < 1).mean():.2f}"
    )


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _unknown(run: PilotRun, has_margin: bool) -> tuple[str, ...]:
    lines = []
    if "entropy" not in run.series:
        lines.append("Entropy is not logged (TRL: entropy; verl: actor/entropy).")
    if "mismatch_kl" not in run.series:
        lines.append(
            "Mismatch of sampler and trainer is not logged (TRL: sampling/sampling_logp_difference "
            "with vllm_importance_sampling_correction)."
        )
    if "importance_ess" not in run.series:
        lines.append(
            "Effective sample size of the importance weights is not logged "
            "(verl: rollout_corr/rollout_is_eff_sample_size)."
        )
    if not has_margin:
        lines.append("Refresh margin and damping need a fitted posterior (diagnose --posterior).")
    return tuple(lines)
