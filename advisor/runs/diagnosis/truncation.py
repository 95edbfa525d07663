"""Truncation: completions end at the length limit, so what they say is cut and not rewarded."""

from __future__ import annotations

from advisor.runs.diagnosis.card import Card, Finding, card_of, not_applicable
from advisor.runs.diagnosis.collapse import has_collapsed
from advisor.runs.diagnosis.levels import difference, ends, series_of, steps_above
from advisor.runs.pilot_run import PilotRun
from advisor.runs.trainers import setting_name
from advisor.theory import FloatArray

SHARE_WARNING = 0.5
SOURCE = (
    "ours: above half, most of the gradient comes from cut completions. Several runs with nearly "
    "all completions cut kept their reward, so only a rise together with a collapse is a FAIL"
)


def truncation(run: PilotRun) -> Card:
    """Judge the share of completions cut at the limit, over the last fifth of the run."""
    found = _share(run)
    if found is None:
        return not_applicable(
            "truncation",
            "The log does not tell how many completions were cut.",
            "TRL logs completions/clipped_ratio, verl response_length/clip_ratio; completion "
            "length beside max_completion_length would do.",
        )
    step, values, what = found
    first, last = ends(values)
    rose = last.mean - first.mean
    steps = steps_above(step, values, last, SHARE_WARNING)
    summary = f"{100 * last.mean:.0f} % of completions end at the limit"
    change = (
        f"Raise {setting_name(run, 'max_completion_length')}, mask cut completions in the loss, or "
        "reward ending in time."
    )
    if last.mean >= 0.9 and rose >= 0.3 and difference(last, first) > 2 and has_collapsed(run):
        finding = Finding("FAIL", f"{summary}, and the reward fell.", steps, change)
    elif last.mean >= SHARE_WARNING:
        finding = Finding("WARNING", f"{summary}.", steps, change)
    else:
        finding = Finding("INFO" if last.mean >= 0.1 else "PASS", f"{summary}.", steps)
    return card_of(
        "truncation",
        finding,
        number=last.mean,
        unit=what,
        interval=last.share_interval,
        threshold=SHARE_WARNING,
        source=SOURCE,
        witnesses=(f"{first.mean:.2f} at the start",),
    )


def _share(run: PilotRun) -> tuple[FloatArray, FloatArray, str] | None:
    logged = series_of(run, "truncated_share")
    if logged is not None:
        return (*logged, "share of completions cut")
    limit = run.hyperparameters.max_completion_length
    lengths = series_of(run, "completion_length")
    if limit is None or lengths is None:
        return None
    step, values = lengths
    # A mean length this near the limit leaves room for few completions that ended by themselves.
    near = (values >= 0.95 * limit).astype(float)
    return step, near, "share of rows with a mean length at the limit"
