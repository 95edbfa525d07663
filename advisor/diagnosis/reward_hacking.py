"""Reward hacking: what is optimised rises while what is meant does not."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from advisor.diagnosis import card, levels
from advisor.diagnosis.collapse import UNSURE
from advisor.runs import PilotRun, keys
from advisor.theory import FloatArray

RULE = SimpleNamespace(**card.CARDS["reward_hacking"]["rule"])


class Parting(NamedTuple):
    """A series that falls while the train reward does not."""

    score: OtherScore
    fall: levels.Fall
    lost: float  # Share of its best that it lost


def reward_hacking(run: PilotRun) -> card.Card:
    """Set the train reward against held-out rewards and against its own parts."""
    scores, ignored = other_scores(run)
    has_held_out = any(one.name == HELD_OUT for one in scores)
    behind = [one for one in scores if stays_behind(run, one)]
    found = next(_findings(run, scores, behind, ignored), None)
    asked = card.CARDS["reward_hacking"]["unknown"]
    unknown = [asked["meaning"].format(name=one.name) for one in behind if one.is_meant is None]
    if not has_held_out:
        unknown.append(asked["held_out"])
    if found is None:
        return card.not_applicable("reward_hacking.absent", run)
    return card.card_of("reward_hacking", found, witnesses=_witnesses(run), unknown=tuple(unknown))


def _falls_apart(run: PilotRun, scores: list[OtherScore]) -> list[Parting]:
    """Falls of held-out rewards, parts and other scores that the train reward does not share."""
    found = []
    for one in scores:
        if one.values.size < (RULE.many if one.is_part else RULE.fewest_evaluations):
            continue
        given = run.reward_floor if one.name == HELD_OUT else None
        # Penalties make a part negative: its floor is then the lowest that was seen.
        floor = min(0.0, float(one.values.min())) if given is None else given
        find = levels.find_fall if one.values.size >= RULE.many else _sparse_fall
        fall = find(one.step, one.values, floor=floor)
        if fall is None:
            continue
        healthy = one.step[one.step < fall.onset_step]
        until = float(healthy[-1]) if healthy.size else fall.onset_step
        # The held-out reward is the same thing as the train reward, which need not rise meanwhile.
        if _moved_since(run, until, -RULE.up if one.name == HELD_OUT else RULE.up):
            height = fall.before - floor
            lost = (fall.before - fall.after) / height if height > 0 else 0.0
            found.append(Parting(one, fall, lost))
    return found


def _findings(
    run: PilotRun, scores: list[OtherScore], behind: list[OtherScore], ignored: tuple[str, ...]
) -> Iterator[card.Finding]:
    """What parts from the train reward, the surest first; then what nobody could judge."""
    times = np.concatenate([run.step, run.eval_step])
    span = (float(times.min()), float(times.max())) if times.size else (0.0, 0.0)
    falls = _falls_apart(run, scores)
    sure = [one for one in falls if one.fall.z >= levels.SURE and one.lost >= 0.1]
    meant = [one for one in sure if one.score.is_meant]
    if sure:
        (name, *_), fall, lost = max(meant or sure, key=lambda one: one.fall.z)
        status: card.Status | None = "FAIL" if meant and lost >= levels.LOST_SHARE else None
        steps = (fall.onset_step, span[1])
        yield card.finding("reward_hacking.fell", run, steps, status, name=name, fall=fall)
    # A large fall of the held-out reward that noise might have made.
    for (name, *_), fall, lost in falls:
        if name == HELD_OUT and fall.z >= UNSURE and lost >= levels.LOST_SHARE:
            steps = (fall.onset_step, span[1])
            yield card.finding("reward_hacking.ends_lower", run, steps, name=name, fall=fall)
    # A meant part near its own floor that did not move while the total rose.
    parts = [one for one in scores if one.is_part and one.values.size >= RULE.many]
    biggest = max((float(np.abs(one.values.max())) for one in parts), default=0.0)
    reward = run.reward[np.isfinite(run.reward)]
    rose = reward.size >= RULE.many and levels.rise(reward) >= levels.SURE
    for one in parts if rose else ():
        begun, end = levels.ends(one.values)
        is_still = abs(end.above(begun)) < 2 and abs(end.mean) < 0.05 * biggest
        if one.is_meant and is_still:
            yield card.finding("reward_hacking.never_moved", run, span, name=one.name)
    # Meant scores that gained nothing while the train reward rose.
    averaged = run.keys_read.get("eval_reward", "").split(", ")
    parted = [one for one in behind if len(averaged) > 1 and one.name in averaged]
    stuck = [one for one in behind if one.is_meant and one not in parted]
    if stuck:
        facts = {"names": ", ".join(one.name for one in stuck[:3]), "first": stuck[0].values[0]}
        end_rows = max(1, stuck[0].values.size // 5)
        facts["last"] = stuck[0].values[-end_rows:].mean()
        yield card.finding("reward_hacking.did_not_follow", run, span, **facts)
    # Of benchmarks the mean is judged: one of few prompts alone moves by its noise.
    if parted:
        names, many = ", ".join(one.name for one in parted[:3]), len(averaged)
        yield card.finding("reward_hacking.one_of_several", run, span, names=names, many=many)
    # Scores of unknown meaning that stayed behind, or that nobody could judge: no PASS.
    asked = ", ".join([one.name for one in behind if one.is_meant is None][:3])
    if asked:
        yield card.finding("reward_hacking.unknown_meaning", run, span, names=asked)
    if ignored and run.step.size:
        names = ", ".join(ignored[:3])
        yield card.finding("reward_hacking.not_judged", run, span, names=names)
    others = [
        one for one in scores if not one.is_part and one.values.size >= RULE.fewest_evaluations
    ]
    if others or len(parts) >= 2:
        names = others[0].name if others else "its parts"
        yield card.finding("reward_hacking.together", run, span, names=names)


def _sparse_fall(step: FloatArray, values: FloatArray, *, floor: float) -> levels.Fall | None:
    """Best stretch of a few independent values, a fifth of them, against their end."""
    width = max(3, values.size // 5)
    if values.size < 2 * width:
        return None
    top = int(np.argmax(levels.trailing_mean(values, width)[:-width]))
    best, end = values[top : top + width], values[-width:]
    # Three values alone say little about their noise: bends of what led up to them say more.
    bends = np.diff(values[: top + width], 2)
    own, other = 2 * (width - 1), bends.size / 2
    squares = ((best - best.mean()) ** 2).sum() + ((end - end.mean()) ** 2).sum()
    squares += other * (bends**2).mean() / 6 if bends.size else 0.0
    error = np.sqrt(squares / (own + other) * 2 / width)
    error = max(float(error), levels.ROUNDING * float(np.abs(values).max()))
    before, after = float(best.mean()), float(end.mean())
    low = np.flatnonzero(values[top + width :] < (before + after) / 2)
    onset = float(step[top + width + (int(low[0]) if low.size else 0)])
    return levels.Fall(onset, before, after, error, own + other)


def _moved_since(run: PilotRun, since: float, least: float) -> bool:
    """Whether the train reward moved by more than so many standard errors from a step on."""
    step, reward = levels.finite(run.step, run.reward)
    around, after = reward[step <= since], reward[step > since]
    size = max(levels.LEAST_ROWS, min(around.size, after.size) // 3)
    if min(around.size, after.size) < levels.LEAST_ROWS:
        return False
    return levels.level(after[-size:]).above(levels.level(around[-size:])) > least


def _witnesses(run: PilotRun) -> tuple[str, ...]:
    lines = []
    for name in ("kl", "completion_length"):
        series = levels.series_of(run, name)
        if series is None:
            continue
        first, last = levels.ends(series[1])
        if last.above(first) > RULE.up and last.mean > 1.5 * abs(first.mean):
            lines.append(f"{name.replace('_', ' ')} {first.mean:.3g} -> {last.mean:.3g}")
    # Benchmarks whose mean is the held-out reward: what transfers to one may not to another.
    for name in run.keys_read.get("eval_reward", "").split(", "):
        if name in run.scores:
            first, last = _ends(run.scores[name].values)
            lines.append(f"{name} {first.mean:.3g} -> {last.mean:.3g}")
    return tuple(lines)


HELD_OUT = "held-out reward"


class OtherScore(NamedTuple):
    """A measure of answers beside the train reward."""

    name: str
    step: FloatArray
    values: FloatArray
    is_meant: bool | None
    is_part: bool = False


def other_scores(run: PilotRun) -> tuple[list[OtherScore], tuple[str, ...]]:
    """Measures beside the train reward, and the names of those with too few values to judge."""
    found: list[OtherScore] = []
    ignored: list[OtherScore] = []
    held_out = OtherScore(HELD_OUT, *levels.finite(run.eval_step, run.eval_reward), True)
    if not run.is_eval_only and held_out.step.size >= RULE.fewest:
        found.append(held_out)
    for name, values in run.parts.items():
        part = OtherScore(name, *levels.finite(run.step, values), what_is_meant(name), is_part=True)
        (found if part.step.size >= RULE.fewest else ignored).append(part)
    step, reward = levels.finite(run.step, run.reward)
    for name, (at, values) in run.scores.items():
        if not reward.size or at.size < RULE.fewest:
            continue
        there = np.interp(at, step, reward)
        if keys.is_gap(name):
            found.append(OtherScore(f"train reward less {name}", at, there - values, True))
            continue
        others = [there]
        # Where the held-out reward was taken at all of its steps, too.
        if run.eval_step.size and np.isin(at, run.eval_step).all():
            others.append(np.interp(at, run.eval_step, run.eval_reward))
        # Not the same series once more, in other units or not.
        flat = [np.ptp(values) == 0 or np.ptp(other) == 0 for other in others]
        same = (
            np.allclose(values, other) if is_flat else np.corrcoef(values, other)[0, 1] > 0.999
            for other, is_flat in zip(others, flat, strict=True)
        )
        if not any(same):
            found.append(OtherScore(name, at, values, what_is_meant(name)))
    return found, tuple(one.name for one in ignored)


def what_is_meant(name: str) -> bool | None:
    """Whether a name says what is meant (True), judges the form (False), or tells neither."""
    if any(part in name.lower() for part in keys.WORDS["part_of_form"]):
        return False
    found = frozenset(keys.words(name))
    # Tinker's recipes call the truth ``f`` and its stand-in ``g``.
    is_true = name in ("f", "f1") or not keys.WORDS["true"].isdisjoint(found)
    if is_true or any(part in name.lower() for part in keys.WORDS["part_of_true"]):
        return True
    return True if name.startswith("held-out ") or not keys.EVALUATION.isdisjoint(found) else None


def stays_behind(run: PilotRun, score: OtherScore) -> bool:
    """Whether the train reward surely rose, and a score surely gained next to nothing of it."""
    step, reward = levels.finite(run.step, run.reward)
    # The rows just before the first value tell where the train reward stood then.
    begin = max(0, int(np.searchsorted(step, score.step[0])) - 2 * levels.LEAST_ROWS)
    reward = reward[begin : int(np.searchsorted(step, score.step[-1], side="right"))]
    if reward.size < 2 * levels.LEAST_ROWS:
        return False
    first, last = _ends(reward)
    # A reward that rises within some rows has no first level of many: the first few tell.
    begun = levels.level(reward[: levels.LEAST_ROWS])
    if max(last.above(first), last.above(begun)) < levels.SURE:
        return False
    first = min(first, begun, key=lambda one: one.mean)
    room = _room(reward, first.mean, run.reward_ceiling)
    share = (last.mean - first.mean) / room if room > 0 else 0.0
    # Share of its room that the train reward must gain before anything can stay behind it.
    if share < 0.15:
        return False
    start, most = _most_gained(score.values)
    is_held_out = score.name == HELD_OUT
    own = _room(score.values, start, run.reward_ceiling if is_held_out else None)
    # Share of the train reward's gain, each as a share of its room, that a score surely lacks.
    # With less room a score is at its ceiling and cannot follow; a held-out reward has the train
    # reward's units.
    least = 0.05 * (room if is_held_out else 1.0)
    return own >= least and most < 0.2 * share * own


def _ends(values: FloatArray) -> tuple[levels.Level, levels.Level]:
    """Level of the first tenth of a series, and of its last fifth."""
    rows = max(levels.LEAST_ROWS, round(0.2 * values.size))
    return levels.level(values[: max(levels.LEAST_ROWS, rows // 2)]), levels.level(values[-rows:])


def _most_gained(values: FloatArray) -> tuple[float, float]:
    """Level at the start, and the most that may have been gained since, at two standard errors."""
    # Of so few values levels have no error worth stating: the extremes stand for it.
    if values.size < 12:
        start = float(values[0])
        return start, float(values[values.size // 2 :].max()) - start
    first, last = _ends(values)
    error = float(np.hypot(first.error, last.error))
    return first.mean, last.mean - first.mean + 2 * error


def _room(values: FloatArray, start: float, ceiling: float | None) -> float:
    """How far a series can rise from where it began: to its ceiling, to 1, or as far as it ever."""
    highest = float(values.max())
    top = max(ceiling, highest) if ceiling is not None else max(1.0, highest)
    return top - start
