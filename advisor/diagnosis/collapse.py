"""What the reward alone shows: a fall from its best, for good or not, or too little to say."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel

from advisor.diagnosis import levels
from advisor.diagnosis.card import CARDS, Card, card_of, finding, not_applicable
from advisor.runs import PilotRun
from advisor.theory import FloatArray

RULE = SimpleNamespace(**CARDS["collapse"]["rule"])
UNSURE: float = RULE.unsure


class Collapse(BaseModel, frozen=True):
    """Verdict on one run; steps are those of the optimizer, rewards in reward units."""

    # Trailing mean over a third below its best, from the floor, at the end and a window before.
    unstable: bool
    onset_step: float | None  # From which it stayed so: the event that a hazard is fitted to
    fell_from: float | None = None  # At which the fall began: in texts and figures
    healthy_until: float | None  # Last one before the window that first looked low
    best: float  # Best and final trailing mean
    last: float

    LOST_SHARE: ClassVar = levels.LOST_SHARE  # Of its best that an unstable run has lost

    @classmethod
    def of(cls, run: PilotRun, floor: float) -> Collapse:
        """Verdict on train rewards: whether they fell and have not come back, beyond noise."""
        series = run.step, run.reward, floor
        if find_passing_fall(*series) is not None:
            return find_final_fall(*series)[0]
        return find_any_fall(*series, prompts=prompts_of(run))

    @classmethod
    def of_cohort(cls, runs: Sequence[PilotRun]) -> dict[str, Collapse]:
        """Verdicts on runs with train rewards that are fitted together, by id.

        What came back from a fall or is in one has fallen too, as has what was dead from the start;
        what users say comes first. ``fell_from`` is the step that is shown.
        """
        trained = [run for run in runs if not run.is_eval_only]
        # Where no floor is given a loss is measured from the one that the cohort will infer.
        given = [run.reward_floor for run in trained if run.reward_floor is not None]
        lowest = (float(np.nanmin(run.reward, initial=0.0)) for run in trained)
        floor = given[0] if given else min(lowest, default=0.0)
        dead = dead_from_the_start(trained, floor)
        verdicts = {}
        for run in trained:
            # What noise can do is no collapse: it must not teach that a setting kills.
            verdict = find_any_fall(run.step, run.reward, floor, prompts=prompts_of(run))
            if run.id in dead:
                verdict = _fallen(verdict, run.step, float(run.step[0]))
            verdict = verdict.as_stated(run)
            fell = verdict.fell_from if run.id in dead else verdict.shown_onset(run)
            verdicts[run.id] = verdict.model_copy(update={"fell_from": fell})
        return verdicts

    def as_stated(self, run: PilotRun) -> Collapse:
        """The verdict, or what the user says of the run."""
        if run.collapsed is None and run.collapsed_at is None:
            return self
        if run.collapsed is False:
            nothing = dict.fromkeys(("onset_step", "fell_from", "healthy_until"))
            return self.model_copy(update={"unstable": False, **nothing})
        if run.collapsed_at is None and self.unstable:
            return self
        step, _ = judged_series(run)
        # Where no step is said it had by its last row.
        onset = float(step[-1]) if run.collapsed_at is None else run.collapsed_at
        return _fallen(self, step, onset)

    def shown_onset(self, run: PilotRun) -> float | None:
        """Step from which the run fell, wherever one is shown; None where the verdict is stable."""
        if not self.unstable:
            return None
        # A verdict may rest on the floor of many runs; the step is the run's own, as on its card.
        own = find_any_fall(*judged(run), prompts=prompts_of(run)).as_stated(run)
        return own.fell_from if own.unstable else self.fell_from


def find_collapse(
    step: FloatArray, reward: FloatArray, floor: float, least: int = levels.WINDOW_ROWS
) -> Collapse:
    """Apply the stability definition to steps and train rewards, both of shape (rows,).

    ``least`` rows make the trailing mean of a short series. With fewer rows than two windows, or
    never above the floor, nothing is called unstable.
    """
    step, reward = levels.finite(step, reward)
    floor = float(levels.tamed(floor))
    reward = levels.tamed(reward) - floor
    window = levels.window_rows(reward.size, least)
    if reward.size < 2 * window:
        best = float(reward.mean()) + floor if reward.size else float("nan")
        return Collapse(unstable=False, onset_step=None, healthy_until=None, best=best, last=best)
    mean = levels.trailing_mean(reward, window)
    highest = np.maximum.accumulate(mean)
    low = (mean < (1 - levels.LOST_SHARE) * highest) & (highest > 0)
    unstable = bool(low[-(window + 1) :].all())
    onset = healthy_until = None
    if unstable:
        healthy = np.flatnonzero(~low)
        first_low = 0 if healthy.size == 0 else int(healthy[-1]) + 1
        onset = float(step[first_low + window - 1])
        healthy_until = float(step[first_low - 1]) if first_low else 0.0
    best, last = float(highest[-1]) + floor, float(mean[-1]) + floor
    return Collapse(
        unstable=unstable, onset_step=onset, healthy_until=healthy_until, best=best, last=last
    )


def find_final_fall(
    step: FloatArray, reward: FloatArray, floor: float, least: int = levels.WINDOW_ROWS
) -> tuple[Collapse, levels.Fall | None]:
    """Verdict of the definition beyond what noise does, and the fall that it rests on."""
    step, reward = levels.finite(step, reward)
    verdict = find_collapse(step, reward, floor, least)
    onset = verdict.onset_step
    before = None if onset is None else int(np.searchsorted(step, onset))
    fall = levels.find_fall(step, reward, before, floor, least)
    if not verdict.unstable:
        return verdict, fall
    sure = fall if fall is not None and fall.z >= levels.SURE else None
    sure = sure or _to_the_lowest(step, reward, before, floor, least)
    sure = sure or _apart(reward, fall, floor, least)
    if sure is None:
        stable = {"unstable": False, "onset_step": None, "healthy_until": None}
        return verdict.model_copy(update=stable), fall
    return verdict.model_copy(update={"fell_from": sure.onset_step}), sure


def find_any_fall(
    step: FloatArray,
    reward: FloatArray,
    floor: float,
    least: int = levels.WINDOW_ROWS,
    *,
    prompts: float = 1.0,  # of a row
) -> Collapse:
    """Verdict of `find_final_fall`, or a fall to less than half, come back from or under way."""
    final = find_final_fall(step, reward, floor, least)[0]
    verdict = final
    if not final.unstable:
        verdict = _ended_at_the_floor(final, step, reward, floor, prompts)
    # What kills a run once may kill its twin for good: both count as collapses of their setting.
    fall = None if verdict.unstable else find_passing_fall(step, reward, floor, least, past=False)
    return verdict if fall is None else _fallen(verdict, step, fall.onset_step)


def _fallen(verdict: Collapse, step: FloatArray, onset: float) -> Collapse:
    """Verdict on a run that fell at a step."""
    healthy_until = float(step[step < onset].max(initial=0.0))
    fell = {"unstable": True, "onset_step": onset, "fell_from": onset}
    return verdict.model_copy(update=fell | {"healthy_until": healthy_until})


def _ended_at_the_floor(
    verdict: Collapse, step: FloatArray, reward: FloatArray, floor: float, prompts: float
) -> Collapse:
    """Verdict on a run most of whose last rows show nothing, too few for the definition."""
    step, above = levels.finite(step, reward - floor)
    # Below 0 the floor may be the lowest reward that was logged, which common rewards can be.
    for row in np.flatnonzero(above[: -RULE.fewest_dead + 1] <= min(floor, 0)).tolist():
        if row < RULE.fewest_alive or not _is_low(above[row:], above[:row]):
            continue
        is_many = prompts >= RULE.many_prompts and above.max() <= 1
        died = is_many or _shows_nothing(above[row:], above[:row])
        if died and _few_successes(above, row, prompts if is_many else 16) < RULE.by_chance:
            # Rows on the way down belong to the fall.
            fall = levels.find_fall(step, above, row)
            begun = fall.onset_step if fall and fall.z >= levels.SURE else np.inf
            return _fallen(verdict, step, float(min(begun, step[row])))
    return verdict


def _few_successes(above: FloatArray, row: int, fewest: float) -> float:
    """Chance that as many of all successes, counted in the least reward, fall before a row."""
    from scipy.special import bdtrc

    # Equal rows do not tell of how many completions they are the mean.
    logged = np.unique(np.append(above, 0.0))
    unit = min(np.diff(logged).min(), 1 / 16) if fewest == 16 else 1 / fewest
    counts = np.rint(np.clip(above / unit, 0, 1e15)).astype(int)
    return float(bdtrc(counts[:row].sum() - 1, counts.sum(), row / above.size))


def _is_low(rows: FloatArray, before: FloatArray) -> bool:
    """Whether rows, and the last of them, lie far below those before."""
    return bool(
        max(rows.mean(), rows[-RULE.fewest_dead :].mean()) < RULE.dead_share * before.mean()
    )


def _shows_nothing(rows: FloatArray, before: FloatArray) -> bool:
    """Whether far more of some low rows than of those before are at the floor."""
    from scipy.special import bdtrc

    nothing = (np.sum(before <= 0) + 0.5) / (before.size + 1)
    return bool(bdtrc(np.sum(rows <= 0) - 1, rows.size, nothing) < RULE.by_chance)


def find_passing_fall(
    step: FloatArray,
    reward: FloatArray,
    floor: float,
    least: int = levels.WINDOW_ROWS,
    sure: float = RULE.passing_sure,
    *,
    past: bool = True,  # not one in which the last rows are
) -> levels.Fall | None:
    """First fall to less than half, by ``sure`` standard errors, that the reward came back from."""
    step, reward = levels.finite(step, reward)
    window = levels.window_rows(reward.size, least)
    if reward.size < 2 * window:
        return None
    mean = levels.trailing_mean(reward, window) - floor
    low = mean < (1 - levels.LOST_SHARE) * np.maximum.accumulate(mean)
    turns = np.diff(low.astype(int), prepend=0)
    begins, backs = (np.flatnonzero(turns == way).tolist() for way in (1, -1))
    # A last stretch from which nothing came back has a beginning only.
    for begin, back in zip(begins, backs if past else [*backs, mean.size], strict=False):
        end = begin + int(np.argmin(mean[begin:back])) + window
        found = levels.find_fall(step[:end], reward[:end], None, floor, window)
        fall = _deep(found, floor, sure)
        if fall is None and back == mean.size:
            fall = _deep(_apart(reward, found, floor, least), floor, sure)
        if fall is not None:
            return fall
    return None


def _to_the_lowest(
    step: FloatArray, reward: FloatArray, before_row: int | None, floor: float, least: int
) -> levels.Fall | None:
    """Sure fall up to the lowest window after ``before_row``; half of it may have been regained."""
    window = levels.window_rows(reward.size, least)
    first = max(0, (before_row or 0) - window + 1)
    end = first + int(np.argmin(levels.trailing_mean(reward, window)[first:])) + window
    fall = levels.find_fall(step[:end], reward[:end], before_row, floor, window)
    return _deep(fall, floor, RULE.passing_sure)


def _apart(
    reward: FloatArray, fall: levels.Fall | None, floor: float, least: int
) -> levels.Fall | None:
    """A fall whose last rows lie far below nearly all before, which may have risen until then."""
    above, window = reward - floor, levels.window_rows(reward.size, least)
    best = levels.trailing_mean(above, window).max()
    low = above < RULE.dead_share * best
    rows = int(np.argmin(low[::-1]))
    before = above[: low.size - rows]
    # Of 588 public runs this judges none anew, and of wandering noise less than 0.5 %.
    is_long = rows >= max(RULE.fewest_apart, window) <= before.size
    if fall is None or not is_long or low[: before.size].mean() > 0.05:
        return None
    error = levels.Level.row_noise(before) * np.sqrt(1 / window + 1 / rows)
    is_apart = best - above[-rows:].mean() > levels.SURE * error
    return fall._replace(error=float(error), freedom=np.inf) if is_apart else None


def _deep(fall: levels.Fall | None, floor: float, sure: float) -> levels.Fall | None:
    """A fall that is sure and deep enough to count although the reward came back."""
    if fall is None or fall.z < sure:
        return None
    # Share of the level before a fall below which it counts although the reward came back:
    # shallower ones are met in runs that learn on.
    return fall if fall.after - floor < 0.5 * (fall.before - floor) else None


def judged_series(run: PilotRun) -> tuple[FloatArray, FloatArray]:
    """Steps and finite rewards that are judged: held-out ones where nothing else was logged."""
    is_eval = run.is_eval_only
    return levels.finite(*((run.eval_step, run.eval_reward) if is_eval else (run.step, run.reward)))


def floor_of(run: PilotRun) -> float:
    """Lowest possible reward: as given, else 0 or the lowest one logged."""
    given, reward = run.reward_floor, judged_series(run)[1]
    if given is not None and (not reward.size or reward.max() > given):
        return given
    return min(0.0, float(reward.min())) if reward.size else 0.0


def judged(run: PilotRun) -> tuple[FloatArray, FloatArray, float, int]:
    """Steps, rewards, their floor, and rows of the trailing mean of a short series."""
    # Fewer where each is an evaluation.
    least = levels.EVALUATION_ROWS if run.is_eval_only else levels.WINDOW_ROWS
    return *judged_series(run), floor_of(run), least


def has_collapsed(run: PilotRun) -> bool:
    """Whether a run fell for good, or to less than half, beyond what noise does, or as stated."""
    return find_any_fall(*judged(run), prompts=prompts_of(run)).as_stated(run).unstable


def prompts_of(run: PilotRun) -> float:
    """Prompts of a row, as far as they are known."""
    return run.hyperparameters.prompts_per_step or 1.0


def dead_from_the_start(runs: Sequence[PilotRun], floor: float) -> set[str]:
    """Ids of runs that their first updates killed, as siblings show, however few rows they have."""
    # Every window after the first row stays far below what living siblings began with. That it is
    # no chance follows from their first rows, or from all that a gentler one had over those steps.
    above = {run.id: levels.finite(run.step, run.reward - floor) for run in runs}
    thirds = {name: _thirds(reward) for name, (_, reward) in above.items()}
    # Those that still have half of the reward that they began with.
    alive = [run for run in runs if thirds[run.id][1] >= 0.5 * thirds[run.id][0] > 0]
    dead = set()
    for run in runs:
        step, reward = above[run.id]
        rate = run.hyperparameters.learning_rate or 0.0
        same = (one for one in alive if (one.task, one.model) == (run.task, run.model))
        siblings = [other for other in same if other.id != run.id]
        if (
            reward.size < 1 + RULE.fewest_dead
            or not siblings
            or thirds[run.id][1] > thirds[run.id][0]
        ):
            continue
        begun = [above[other.id][1] for other in siblings]
        start = np.concatenate([rows[: levels.window_rows(rows.size)] for rows in begun])
        rows, few, low = reward[1:], levels.window_rows(reward.size), RULE.dead_share * start.mean()
        highest = levels.trailing_mean(rows, min(few, rows.size)).max()
        # Without any reward in its first rows it may have begun from another policy.
        others = [start] if reward[:few].max() >= low > highest else []
        # Nor does it follow theirs where its first row is not one of theirs, unless it had some
        # reward at a rate above them all: a row may average steps after the fall. Beside a gentler
        # one that moved, a success or two by chance are no life that it fell from.
        is_hottest = rate > max(other.hyperparameters.learning_rate or 0.0 for other in siblings)
        begins = reward[0] >= start.mean() - UNSURE * start.std() or (
            is_hottest and reward[0] > 2 * highest
        )
        may_be = begins and rows.mean() < low
        if may_be and (highest < low or not find_any_fall(run.step, run.reward, floor).unstable):
            gentle = [
                above[other.id][1][above[other.id][0] <= step[-1]]
                for other in siblings
                if (other.hyperparameters.learning_rate or np.inf) < rate
            ]
            # Each by itself, and all together: of three rows one alone tells little.
            others += [*gentle, np.concatenate(gentle)] if gentle else []
        if any(_far_below(rows, other) for other in others):
            dead.add(run.id)
    return dead


def _thirds(reward: FloatArray) -> tuple[float, float]:
    """Means of the first and of the last third of some rewards; NaN of none."""
    if not reward.size:
        return np.nan, np.nan
    third = max(1, reward.size // 3)
    return float(reward[:third].mean()), float(reward[-third:].mean())


def _far_below(rows: FloatArray, others: FloatArray) -> bool:
    """Whether rows lie below a quarter of others, by more than their noise or than chance does."""
    if rows.mean() >= RULE.dead_share * others.mean():
        return False
    if not rows.any():
        return _shows_nothing(rows, others)
    squares = (levels.Level.row_noise(one) ** 2 / one.size for one in (rows, others))
    error = float(np.sqrt(sum(squares)))
    return bool(others.mean() - rows.mean() > levels.SURE * error)


def collapse(run: PilotRun) -> Card:
    """Judge the reward's last fall."""
    step, reward, floor, least = judged(run)
    if run.collapsed is not None or run.collapsed_at is not None:
        stated = find_any_fall(step, reward, floor, least, prompts=prompts_of(run)).as_stated(run)
        first = stated.fell_from or 0.0
        kind = "collapse.stated" if stated.unstable else "collapse.denied"
        return card_of("collapse", finding(kind, run, (first, float(step[-1])), step=first))
    verdict, fall = find_final_fall(step, reward, floor, least)
    passing = present = None
    if not verdict.unstable:
        ended = _ended_at_the_floor(verdict, step, reward, floor, prompts_of(run)).fell_from
        if ended is not None and not run.is_eval_only:
            facts: dict[str, Any] = {"step": ended, "mean": reward[step >= ended].mean()}
            return card_of("collapse", finding("collapse.ended", run, (ended, step[-1]), **facts))
        passing = find_passing_fall(step, reward, floor, least)
        passing = passing or _plain_fall(step, reward, floor, least)
        if (extinct := None if passing else _extinct(run, step, reward, floor)) is not None:
            return extinct
        if passing is None or passing.z < RULE.passing_sure:
            present = find_passing_fall(step, reward, floor, least, past=False)
    fall = present or passing or fall
    if fall is None:
        return not_applicable("collapse.absent", run)
    lost, steps = fall.before - fall.after, (fall.onset_step, float(step[-1]))
    regained = (verdict.last - fall.after) / lost if lost else 0.0
    if verdict.unstable or present is not None:
        again = f"came back no further than {verdict.last:.3g}"
        after = again if regained > 0.1 and present is None else "did not come back"
        found = finding("collapse.fell", run, steps, fall=fall, after=after)
    elif passing is not None:
        in_part = "" if regained > 0.8 else " in part"
        counts = ": it counts as a collapse of its setting" if fall.z >= RULE.passing_sure else ""
        low = float(step[np.argmin(np.where(step < fall.onset_step, np.inf, reward))])
        facts = {"fall": fall, "low": low, "in_part": in_part, "counts": counts}
        found = finding("collapse.came_back", run, (fall.onset_step, low), **facts)
    elif find_collapse(step, reward, floor, least).unstable and fall.z >= UNSURE:
        found = finding("collapse.ends_lower", run, steps, fall=fall)
    elif (decline := find_decline(step, reward, floor, fall, least)) is not None:
        peak, best, last, first = decline
        share = 100 * (best - last) / (best - first) if best > first else 100.0
        what = "all" if share >= 99.5 else f"{share:.0f} % of what"
        words: dict[str, Any] = {"peak": peak, "best": best, "last": last, "lost": what}
        kind = "collapse.declined" if share >= 50 else "collapse.below_best"
        found = finding(kind, run, (peak, float(step[-1])), **words)
        return card_of("collapse", found, witnesses=witnesses(run, fall))
    else:
        span = (float(step[0]), float(step[-1]))
        found = finding("collapse.none", run, span, rows=reward.size)
        return card_of("collapse", found, threshold=levels.LOST_SHARE)
    range_ = fall.before - floor if fall.before > floor else np.inf
    share, error = lost / range_, levels.Z95 * fall.error / range_
    return card_of(
        "collapse",
        found,
        number=share,
        unit=CARDS["collapse"]["unit"],
        interval=(share - error, share + error),
        threshold=levels.LOST_SHARE,
        witnesses=witnesses(run, fall) if verdict.unstable or passing or present else (),
    )


def find_decline(
    step: FloatArray, reward: FloatArray, floor: float, fall: levels.Fall, least: int
) -> tuple[float, float, float, float] | None:
    """Step of a peak that the run ends below, however slowly it fell; best, last, first level."""
    rows = levels.window_rows(2 * reward.size, least)
    if reward.size < 2 * rows:
        return None
    mean = levels.trailing_mean(reward, rows)
    at, last, first = int(np.argmax(mean)), float(mean[-1]), float(mean[0])
    best = float(mean[at])
    # A fit of one fall fails where the run rose first: then both ends stand against its best rows.
    top, ends = levels.level(reward[at : at + rows]), (reward[:rows], reward[-rows:])
    apart = min(top.above(levels.level(end)) for end in ends)
    if max(fall.z, levels.as_normal(apart, 2 * (rows - 1))) < levels.SURE:
        return None
    # A tenth of the level.
    if best - last < 0.1 * (best - floor):
        return None
    return float(step[at + rows // 2]), best, last, first


def dead_at_once(run: PilotRun) -> Card:
    """Card of a run that its first updates killed, as its siblings show."""
    step, reward = judged_series(run)
    span = (float(step[0]), float(step[-1]))
    return card_of("collapse", finding("collapse.dead", run, span, mean=float(reward.mean())))


def _plain_fall(
    step: FloatArray, reward: FloatArray, floor: float, least: int
) -> levels.Fall | None:
    """Fall that came back and that is plain to the eye, though a fit would not count it."""
    fall = find_passing_fall(step, reward, floor, least, sure=levels.SURE)
    if fall is None:
        return None
    before = reward[step < fall.onset_step]
    is_held = before.size >= 2 * levels.window_rows(reward.size, least)
    # Correlated noise of 40 to 300 rows makes one of so many standard deviations in 0.2 % of runs,
    # and no healthy one of 330 public runs has it.
    return fall if is_held and fall.before - fall.after > 3.5 * before.std(ddof=1) else None


def _extinct(run: PilotRun, step: FloatArray, reward: FloatArray, floor: float) -> Card | None:
    """Card of evaluations that went to their floor and stayed there to the last digit."""
    above = np.flatnonzero(reward > floor)
    # Evaluations at the floor to the last digit, from which on a policy is dead: the fewest that
    # show one success at all show none with a chance of 0.37, eight times in a row below a
    # thousandth.
    if not run.is_eval_only or not above.size or reward.size - 1 - above[-1] < 8:
        return None
    at = int(above[-1]) + 1
    facts: dict[str, Any] = {"step": step[at], "floor": floor, "before": reward[at - 1]}
    return card_of(
        "collapse",
        finding("collapse.extinct", run, (float(step[at]), float(step[-1])), **facts),
        number=1.0,
        unit=CARDS["collapse"]["unit"],
        threshold=levels.LOST_SHARE,
    )


def witnesses(run: PilotRun, fall: levels.Fall) -> tuple[str, ...]:
    """Other series that changed across a fall by a factor of two or more, with their numbers."""
    found = []
    lengths, others = ("completion_length", "truncated_share"), ("gradient_norm", "kl", "policy_kl")
    for name in ("entropy", *lengths, *others):
        series = levels.series_of(run, name)
        if series is None:
            continue
        step, values = series
        before, after = values[step < fall.onset_step], values[step >= fall.onset_step]
        one, other = levels.level(before[-max(4, before.size // 2) :]), levels.level(after)
        changed = abs(other.above(one))
        if not np.isfinite(changed) or changed < levels.Z95:
            continue
        low, high = sorted([abs(one.mean), abs(other.mean)])
        if high > 2.0 * low:
            found.append(f"{name.replace('_', ' ')} {one.mean:.3g} -> {other.mean:.3g}")
    return tuple(found)


def too_short(run: PilotRun) -> Card:
    """Judge whether the reward has moved by more than its noise."""
    step, reward = judged_series(run)
    rows = reward.size
    judged: dict[str, Any] = {"number": float(rows), "unit": "rows"}
    judged["threshold"] = 2.0 * levels.WINDOW_ROWS
    if rows < 2 * levels.WINDOW_ROWS:
        return card_of("too_short", finding("too_short.few", run, rows=rows), **judged)
    first, last = levels.ends(reward)
    # A rise within the first fifth is no noise of it.
    if last.above(start := levels.level(reward[: levels.LEAST_ROWS])) > levels.SURE:
        first = start
    gap, error = last.mean - first.mean, levels.Z95 * (first.error**2 + last.error**2) ** 0.5
    kind = "moved"
    if abs(last.above(first)) < levels.Z95:
        judged = {"number": gap, "unit": "change of the reward", "threshold": 0.0}
        judged["interval"] = (gap - error, gap + error)
        is_nothing = _learned_nothing(run, first, gap + error, reward)
        is_nothing = is_nothing and run.constant_reward is None and run.frozen_since is None
        kind = "learned_nothing" if is_nothing else "flat"
        kind = kind if run.constant_reward is None else "constant"
        judged |= {"title": "Nothing learned"} if is_nothing else {}
    facts: dict[str, Any] = {"rows": rows, "first": first, "last": last, "most": gap + error}
    span = (float(step[0]), float(step[-1]))
    return card_of("too_short", finding(f"too_short.{kind}", run, span, **facts), **judged)


def _learned_nothing(run: PilotRun, first: levels.Level, most: float, reward: FloatArray) -> bool:
    """Whether the most that was gained is next to nothing of what there was to gain."""
    held_out = levels.finite(run.eval_step, run.eval_reward)[1]
    if held_out.size > 3 and (ends := levels.ends(held_out))[1].above(ends[0]) > levels.SURE:
        return False  # a train reward of filtered prompts stands still while held-out ones rise
    if reward.size < 20:
        return False
    known = run.reward_ceiling
    top = max(1.0 if known is None else known, float(reward.max()))
    room, rows = top - first.mean, levels.window_rows(reward.size)
    # What was gained and lost again was learned.
    error = levels.Level.row_noise(reward) / np.sqrt(rows)
    peak = levels.trailing_mean(reward, rows).max() - first.mean - levels.SURE * error
    return room > 0.3 * (top - floor_of(run)) and max(most, peak) < 0.1 * room
