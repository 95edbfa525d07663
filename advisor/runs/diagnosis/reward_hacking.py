"""Reward hacking: what is optimised rises while what is meant does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.card import (
    CARDS,
    Card,
    Finding,
    Status,
    card_of,
    finding,
    not_applicable,
)
from advisor.runs.diagnosis.collapse import UNSURE
from advisor.runs.diagnosis.levels import (
    LEAST_ROWS,
    LOST_SHARE,
    ROUNDING,
    SURE,
    Fall,
    difference,
    ends,
    find_fall,
    level,
    series_of,
    trailing_mean,
)
from advisor.runs.diagnosis.other_scores import (
    HELD_OUT,
    Coupling,
    OtherScore,
    couplings,
    other_scores,
    stays_behind,
)
from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

FEWEST_EVALUATIONS = 6

MANY = 20
"""Values from which the correlation of neighbours can be estimated; fewer lie far apart."""

UP = 3.0
"""Standard errors by which the train reward must rise."""


class Parting(NamedTuple):
    """A series that falls while the train reward does not."""

    score: OtherScore
    fall: Fall
    # Share of its best that it lost.
    lost: float

    @property
    def is_sure(self) -> bool:
        """Whether noise does not make such a fall, and it is large enough to be noted."""
        return self.fall.z >= SURE and self.lost >= 0.1


def reward_hacking(run: PilotRun) -> Card:
    """Set the train reward against held-out rewards and against its own parts."""
    scores, ignored = other_scores(run)
    has_held_out = any(one.name == HELD_OUT for one in scores)
    slopes = couplings(run) if has_held_out else []
    last = slopes[-1] if slopes else None
    falls = _falls_apart(run, scores)
    behind = [one for one in scores if stays_behind(run, one)]
    found = (
        _sure_fall(run, falls)
        or _unsure_fall(run, falls)
        or _stuck_part(run, scores)
        or _left_behind(run, behind)
        or _negative_coupling(run, last)
        or _unclear(run, behind, ignored)
        or _together(run, scores)
    )
    asked = CARDS["reward_hacking"]["unknown"]
    unknown = [asked["meaning"].format(name=one.name) for one in behind if one.is_meant is None]
    if not has_held_out:
        unknown.append(asked["held_out"])
    if found is None:
        return not_applicable("reward_hacking.absent", run)
    return card_of(
        "reward_hacking",
        found,
        number=None if last is None else last.slope,
        unit="" if last is None else CARDS["reward_hacking"]["unit"],
        interval=None if last is None else last.interval,
        threshold=None if last is None else 0.0,
        witnesses=(*_turned(slopes), *_witnesses(run)),
        unknown=tuple(unknown),
    )


def _falls_apart(run: PilotRun, scores: list[OtherScore]) -> list[Parting]:
    """Falls of held-out rewards, parts and other scores that the train reward does not share."""
    found = []
    for one in scores:
        if one.values.size < (MANY if one.is_part else FEWEST_EVALUATIONS):
            continue
        given = run.reward_floor if one.name == HELD_OUT else None
        # Penalties make a part negative: its floor is then the lowest that was seen.
        floor = min(0.0, float(one.values.min())) if given is None else given
        find = find_fall if one.values.size >= MANY else _sparse_fall
        fall = find(one.step, one.values, floor=floor)
        if fall is None:
            continue
        healthy = one.step[one.step < fall.onset_step]
        until = float(healthy[-1]) if healthy.size else fall.onset_step
        # The held-out reward is the same thing as the train reward, which need not rise meanwhile.
        if _moved_since(run, until, -UP if one.name == HELD_OUT else UP):
            height = fall.before - floor
            lost = (fall.before - fall.after) / height if height > 0 else 0.0
            found.append(Parting(one, fall, lost))
    return found


def _sure_fall(run: PilotRun, falls: list[Parting]) -> Finding | None:
    """A fall that noise does not make, of the meant quantity where there is one."""
    sure = [one for one in falls if one.is_sure]
    meant = [one for one in sure if one.score.is_meant]
    if not sure:
        return None
    (name, *_), fall, lost = max(meant or sure, key=lambda one: one.fall.z)
    steps = (fall.onset_step, _span(run)[1])
    status: Status | None = "FAIL" if meant and lost >= LOST_SHARE else None
    return finding("reward_hacking.fell", run, steps, status, name=name, fall=fall)


def _unsure_fall(run: PilotRun, falls: list[Parting]) -> Finding | None:
    """A large fall of the held-out reward that noise might have made."""
    for (name, *_), fall, lost in (one for one in falls if not one.is_sure):
        if name == HELD_OUT and fall.z >= UNSURE and lost >= LOST_SHARE:
            steps = (fall.onset_step, _span(run)[1])
            return finding("reward_hacking.ends_lower", run, steps, name=name, fall=fall)
    return None


def _left_behind(run: PilotRun, behind: list[OtherScore]) -> Finding | None:
    """A meant score that gained nothing while the train reward rose."""
    meant = [one for one in behind if one.is_meant]
    if not meant:
        return None
    names = ", ".join(one.name for one in meant[:3])
    first, last = meant[0].values[0], meant[0].values[-max(1, meant[0].values.size // 5) :].mean()
    facts = {"names": names, "first": first, "last": last}
    return finding("reward_hacking.did_not_follow", run, _span(run), **facts)


def _stuck_part(run: PilotRun, scores: list[OtherScore]) -> Finding | None:
    """A meant part near its own floor that did not move while the total rose."""
    reward = run.reward[np.isfinite(run.reward)]
    if reward.size < MANY or difference(*ends(reward)[::-1]) < SURE:
        return None
    parts = [one for one in scores if one.is_part and one.values.size >= MANY]
    biggest = max((float(np.abs(one.values.max())) for one in parts), default=0.0)
    for one in parts:
        first, last = ends(one.values)
        is_still = abs(difference(last, first)) < 2 and abs(last.mean) < 0.05 * biggest
        if one.is_meant and is_still:
            return finding("reward_hacking.never_moved", run, _span(run), name=one.name)
    return None


def _unclear(run: PilotRun, behind: list[OtherScore], ignored: tuple[str, ...]) -> Finding | None:
    """Scores of unknown meaning that stayed behind, or that nobody could judge: no PASS."""
    asked = [one.name for one in behind if one.is_meant is None]
    if asked:
        names = ", ".join(asked[:3])
        return finding("reward_hacking.unknown_meaning", run, _span(run), names=names)
    if ignored and run.step.size:
        return finding("reward_hacking.not_judged", run, _span(run), names=", ".join(ignored[:3]))
    return None


def _negative_coupling(run: PilotRun, last: Coupling | None) -> Finding | None:
    """Held-out reward that surely goes down over a window in which the train reward rises."""
    if last is None or last.interval is None or last.interval[1] >= 0:
        return None
    own = run.reward[(run.step >= last.first_step) & (run.step <= last.last_step)]
    own = own[np.isfinite(own)]
    if own.size < 2 * LEAST_ROWS or difference(*ends(own, 1 / 3)[::-1]) <= UP:
        return None
    return finding("reward_hacking.goes_down", run, (last.first_step, last.last_step), last=last)


def _together(run: PilotRun, scores: list[OtherScore]) -> Finding | None:
    """Nothing parted; None where there is too little to say so."""
    parts = [one for one in scores if one.is_part and one.values.size >= MANY]
    other = [one for one in scores if not one.is_part and one.values.size >= FEWEST_EVALUATIONS]
    if not other and len(parts) < 2:
        return None
    names = "its parts" if not other else other[0].name
    return finding("reward_hacking.together", run, _span(run), names=names)


def _span(run: PilotRun) -> tuple[float, float]:
    """First and last step of rows and evaluations."""
    times = np.concatenate([run.step, run.eval_step])
    return float(times.min()), float(times.max())


def _sparse_fall(step: FloatArray, values: FloatArray, *, floor: float) -> Fall | None:
    """Best stretch of a few independent values, a fifth of them, against their end."""
    width = max(3, values.size // 5)
    if values.size < 2 * width:
        return None
    top = int(np.argmax(trailing_mean(values, width)[:-width]))
    best, end = values[top : top + width], values[-width:]
    # Three values alone say little about their noise: bends of what led up to them say more.
    bends = np.diff(values[: top + width], 2)
    own, other = 2 * (width - 1), bends.size / 2
    squares = ((best - best.mean()) ** 2).sum() + ((end - end.mean()) ** 2).sum()
    squares += other * (bends**2).mean() / 6 if bends.size else 0.0
    error = np.sqrt(squares / (own + other) * 2 / width)
    error = max(float(error), ROUNDING * float(np.abs(values).max()))
    before, after = float(best.mean()), float(end.mean())
    low = np.flatnonzero(values[top + width :] < (before + after) / 2)
    onset = float(step[top + width + (int(low[0]) if low.size else 0)])
    return Fall(onset, float(step[-width]), before, after, error, own + other)


def _moved_since(run: PilotRun, since: float, least: float) -> bool:
    """Whether the train reward moved by more than so many standard errors from a step on."""
    kept = np.isfinite(run.reward)
    step, reward = run.step[kept], run.reward[kept]
    around, after = reward[step <= since], reward[step > since]
    size = max(LEAST_ROWS, min(around.size, after.size) // 3)
    if min(around.size, after.size) < LEAST_ROWS:
        return False
    return difference(level(after[-size:]), level(around[-size:])) > least


def _turned(slopes: list[Coupling]) -> tuple[str, ...]:
    """First window with a surely positive slope, and first one after it with a negative one."""
    known = iter([one for one in slopes if one.interval])
    up = next((one for one in known if one.interval and one.interval[0] > 0), None)
    down = next((one for one in known if one.interval and one.interval[1] < 0), None)
    if up is None or down is None:
        return ()
    return (
        f"coupling {up.slope:.2g} in steps {up.first_step:.0f} to {up.last_step:.0f}, "
        f"{down.slope:.2g} in steps {down.first_step:.0f} to {down.last_step:.0f}",
    )


def _witnesses(run: PilotRun) -> tuple[str, ...]:
    lines = []
    for name in ("kl", "completion_length"):
        series = series_of(run, name)
        if series is None:
            continue
        first, last = ends(series[1])
        if difference(last, first) > UP and last.mean > 1.5 * abs(first.mean):
            lines.append(f"{name.replace('_', ' ')} {first.mean:.3g} -> {last.mean:.3g}")
    return tuple(lines)
