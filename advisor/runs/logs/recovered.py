"""Settings that the metrics give away: the learning rate's course; guesses that nobody stated."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import product
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np

from advisor.runs.arrays import BoolArray, FloatArray
from advisor.runs.logfiles.limits import limits
from advisor.runs.logs.located_run import RawRun
from advisor.runs.settings import TABLES
from advisor.runs.trainers import Derived

RULE = SimpleNamespace(**TABLES["recovered"])

Kind = Literal["constant", "linear", "cosine"]


class Schedule(NamedTuple):
    """A learning-rate schedule read off its series."""

    peak: float
    kind: Kind | None = None
    warmup_steps: int | None = None
    planned_steps: int | None = None
    is_rising: bool = False


class Rates(NamedTuple):
    """Settings that a learning-rate series shows."""

    facts: dict[str, Any]
    is_partial: bool = False
    warnings: tuple[str, ...] = ()
    largest: float | None = None
    rise: float | None = None  # per optimizer step, of a warm-up that did not end


def read_rates(step: FloatArray, rate: FloatArray, planned_steps: int | None) -> Rates:
    """Peak, schedule and warm-up as settings; of empty arrays nothing but the length stated."""
    if planned_steps is not None and step.size and step[-1] > planned_steps:
        planned_steps = None  # of something else that the log counts
    facts: dict[str, Any] = {} if planned_steps is None else {"planned_steps": planned_steps}
    if not rate.size:
        return Rates(facts)
    found = infer_schedule(step, rate, planned_steps)
    largest = float(rate.max())
    if found.is_rising:
        rise = float((largest - rate[0]) / (step[-1] - step[0]))
        return Rates(facts, True, largest=largest, rise=rise)
    facts["learning_rate"] = rounded(found.peak)
    if found.kind is None:
        what = "the schedule cannot be told from the learning rates logged"
        apart = step[1] - step[0] if rate.size > 1 else np.inf
        is_late = bool(step[0] > RULE.late_rows * apart and rate[0] == largest)
        return Rates(facts, is_late, (f"{what}; they are used as they stand",), largest)
    facts["schedule"], facts["warmup_steps"] = found.kind, found.warmup_steps
    if found.planned_steps is not None:
        facts["planned_steps"] = found.planned_steps
    return Rates(facts, largest=largest)


def rounded(rate: float) -> float:
    """A learning rate as it was set, where the one read off a log is within 0.1 % of that."""
    near = float(f"{rate:.1e}")
    return near if abs(rate - near) <= RULE.rounding * near else rate


def _is_round(rate: float) -> bool:
    return math.isclose(rate, float(f"{rate:.1e}"), rel_tol=2e-4)


def infer_schedule(step: FloatArray, rate: FloatArray, planned_steps: int | None) -> Schedule:
    """Recognise the schedule of learning rates logged at increasing, one-based optimizer steps."""
    top = int(np.argmax(rate))
    peak = float(rate[top])
    if peak - float(rate.min()) <= 1e-9 * peak:
        return Schedule(peak, "constant", 0) if rate.size > 1 else Schedule(peak)
    rising = top == rate.size - 1
    if rate.size < limits.least_schedule_rows or rising:
        return Schedule(peak, is_rising=rising)
    # Every row counts in the peak, but eighty are plenty for a shape.
    thin = np.union1d(np.linspace(0, rate.size - 1, min(rate.size, 80)).astype(int), [top])
    best: tuple[float, Kind, int, int, float] | None = None
    before = 0 if top == 0 else int(step[top - 1]) - 1
    warmups = np.unique(np.linspace(before, step[top + 1], 64).astype(int))
    if top == 0:
        warmups = warmups[warmups <= step[0]]
    last = int(step[-1])
    lengths = np.array([max(planned_steps or 1, 1)])
    if planned_steps is None:
        spaced = [np.geomspace(last, 20 * last, 400), np.geomspace(20 * last, 200 * last, 120)]
        lengths = np.unique(np.concatenate(spaced).astype(np.int64))
    kinds: tuple[Kind, ...] = ("constant", "linear", "cosine")
    for kind, offset in product(kinds, (1, 0)):
        if best is not None and best[0] <= RULE.clear_misfit:
            break
        spans = lengths[:1] if kind == "constant" else lengths
        done = step[thin] - offset
        shape = _factors(kind, done, warmups[:, None, None], spans[None, :, None])
        with np.errstate(over="ignore", invalid="ignore"):  # rates of any size can be logged
            level = (shape * rate[thin]).sum(-1) / np.maximum((shape**2).sum(-1), 1e-300)
            misfit = np.abs(rate[thin] - level[..., None] * shape).max(-1)
            misfit = np.divide(misfit, level, out=np.full_like(misfit, np.inf), where=level > 0)
        misfit = np.nan_to_num(misfit, nan=np.inf, posinf=np.inf)
        # Where no row lies within the warm-up its length is open: the shortest is assumed.
        i, j = np.argwhere(misfit <= misfit.min() + 1e-6)[0]
        error = float(misfit[i, j])
        # A plainer schedule keeps the place unless a richer one fits clearly better.
        if best is None or error < best[0] - RULE.clear_misfit:
            best = (error, kind, int(warmups[i]), int(spans[j]), float(level[i, j]))
    if best is None or best[0] > RULE.largest_misfit:
        return Schedule(peak)
    error, name, warmup, length, level_found = best
    told = planned_steps is None and name != "constant" and error <= RULE.length_misfit
    if told and name == "linear":
        level_found, length = _straight(step, rate, max(warmup, before), level_found, length)
        # Rates are logged before an update or after it, which a straight line fits alike.
        after = level_found * (length + 1) / length
        is_rounder = _is_round(after) and not _is_round(level_found)
        if not warmup and top == 0 and (length < last or is_rounder):
            level_found, length = after, length + 1
    # A scheduler may skip steps and fit roughly: a round rate that it reached is then the peak.
    # Else twelve digits: the fit adds rounding noise, and configs are read by people.
    is_rough = error > RULE.clear_misfit and level_found <= (1 + error) * peak
    if not is_rough or rounded(peak) != float(f"{peak:.1e}"):
        peak = float(f"{max(peak, level_found):.12g}")
    return Schedule(peak, name, warmup, length if told else None)


def _straight(
    step: FloatArray, rate: FloatArray, warmup: int, peak: float, length: int
) -> tuple[float, int]:
    """Peak and length of a linear decay, exactly, where rows after the warm-up lie on one line."""
    rows = step > warmup + 1
    if warmup or rows.sum() < limits.least_schedule_rows or rate[rows][-1] >= rate[rows][0]:
        return peak, length
    slope, level = np.polyfit(step[rows], rate[rows], 1)
    misfit = float(np.abs(level + slope * step[rows] - rate[rows]).max())
    # The rate of step s is that after s - 1 steps, or in older versions after s.
    spans = [(level + slope * offset, -level / slope - offset) for offset in (1, 0)]
    start, span = min(spans, key=lambda found: abs(found[1] - round(found[1])))
    is_exact = misfit <= RULE.clear_misfit * peak and abs(span - round(span)) <= 0.02
    return (float(start), round(span)) if is_exact else (peak, length)


def _factors(kind: str, done: FloatArray, warmup: FloatArray, length: FloatArray) -> FloatArray:
    """Rate over peak after ``done`` scheduler steps; arguments broadcast."""
    warm = np.clip(done / np.maximum(warmup, 1), 0.0, 1.0)
    left = np.clip((length - done) / np.maximum(length - warmup, 1), 0.0, 1.0)
    cosine = 0.5 * (1 - np.cos(np.pi * left))
    decay = {"constant": np.ones_like(left), "linear": left, "cosine": cosine}[kind]
    return np.asarray(np.where(done < warmup, warm, decay))


class Guess(NamedTuple):
    """A value that nobody stated, and what gives it away."""

    value: float
    why: str


def print_error(values: FloatArray) -> FloatArray:
    """Half of the last digit printed, in fixed decimals or significant digits: the larger."""
    if not values.size:
        return values
    printed = [Decimal(repr(float(value))).normalize().as_tuple() for value in values]
    decimals = max(0, *(-int(number.exponent) for number in printed), 0)
    digits = max(len(number.digits) for number in printed)
    with np.errstate(divide="ignore"):
        leading = np.floor(np.log10(np.abs(values)))
    leading = np.where(np.isfinite(leading), leading, -np.inf)
    return np.maximum(0.5 * 10.0**-decimals, 0.5 * 10.0 ** (leading + 1 - digits))


def least_count(values: FloatArray) -> int | None:
    """Least n of which all values (shares) are multiples of 1/n."""
    values = values[np.isfinite(values)]
    if not values.size or values.min() < 0 or values.max() > 1:
        return None
    error = print_error(values) + RULE.single_precision
    distinct, first = np.unique(values, return_index=True)
    if distinct.size > limits.most_trials_per_row + 1:
        return None
    inside = (distinct > 0) & (distinct < 1)
    share, tolerance = distinct[inside], error[first][inside]
    fitting = np.arange(2, limits.most_trials_per_row + 1)
    for value, width in zip(share, tolerance, strict=True):
        fitting = fitting[np.abs(value * fitting - np.rint(value * fitting)) <= fitting * width]
    if not share.size or not fitting.size:
        return None
    count = int(fitting[0])
    # Values without a step would all hit a multiple of 1/n as often as this, for some n so far.
    chance = count * float(np.prod(np.minimum(1.0, 2 * count * tolerance)))
    return count if chance < RULE.chance and _is_whole(values, count) else None


def _is_whole(values: FloatArray, count: int) -> bool:
    """Whether rows of twice or three times as many trials would have shown it."""
    inside = values[(values > 0) & (values < 1)]
    if inside.size < 20:
        return False
    numerator = np.rint(inside * count).astype(int)
    coarser = next(factor for factor in range(2, count + 1) if not count % factor)
    if 0.5 ** np.sum(numerator % coarser != 0) >= RULE.chance:
        return False
    for times in (2, 3):
        # Probability that a binomial number of times x count trials is a multiple of `times`.
        roots = np.exp(2j * np.pi * np.arange(times) / times)
        powers = (1 - inside[:, None] + inside[:, None] * roots) ** (times * count)
        if float(np.prod(np.real(powers.mean(axis=1)))) >= RULE.chance:
            return False
    return True


def kl_coefficient_from_loss(loss: FloatArray, kl: FloatArray) -> Guess | None:
    """Weight of the KL penalty, from rows whose loss is nothing but that penalty."""
    there = (np.abs(loss) < RULE.largest) & (kl > 1 / RULE.largest) & (kl < RULE.largest)
    loss, kl = loss[there], kl[there]
    error_of_loss, error_of_kl = print_error(loss), print_error(kl)
    errors = error_of_loss * kl + error_of_kl * loss
    clear = (loss > 1 / RULE.largest) & (errors <= RULE.clear_error * loss * kl)
    if clear.sum() >= limits.least_clear_rows:
        loss, kl = loss[clear], kl[clear]
        error = error_of_loss[clear] / loss + error_of_kl[clear] / kl + RULE.slack
        shares = _share_sharply(loss / kl, error)
        value = None if shares is None else _as_written(loss[shares], kl[shares], error[shares])
    else:
        value, shares = _share_vaguely(loss, kl, error_of_loss, error_of_kl)
        loss, kl = loss[shares], kl[shares]
        shares = np.ones(kl.size, dtype=bool)
    if value is None or shares is None or kl[shares].max() < RULE.kl_range * kl[shares].min():
        return None
    why = f"loss / kl is {value:g} in {int(shares.sum())} of {kl.size} rows that tell"
    # Of 1: what is logged as KL is the penalty, its weight included.
    return None if abs(value - 1) <= RULE.itself else Guess(value, why)


def _share_sharply(ratio: FloatArray, error: FloatArray) -> BoolArray | None:
    """Rows of a ratio that nearly all share, or that some share more sharply than by chance."""
    near: BoolArray = np.abs(ratio / np.median(ratio) - 1) <= error + RULE.scatter
    if near.mean() >= RULE.sharing_share:
        return near
    ordered = np.sort(ratio)
    widest = error.max()
    ends = np.searchsorted(ordered, (ordered * (1 - widest), ordered * (1 + widest)))
    likely = ordered[np.argsort(ends[0] - ends[1], kind="stable")[:50]]
    sharing = [np.abs(ratio / candidate - 1) <= error for candidate in likely]
    best = int(np.argmax([rows.sum() for rows in sharing]))
    rows = sharing[best]
    distance = np.abs(ratio / likely[best] - 1) / error
    near_misses = np.sum((distance > 1) & (distance <= RULE.near))
    chance = ratio.size * _poisson_tail(int(rows.sum()), float(near_misses + 1) / (RULE.near - 1))
    return rows if rows.sum() >= limits.least_clear_rows and chance < RULE.chance_of_ratio else None


def _poisson_tail(least: int, mean: float) -> float:
    """Probability that a Poisson count reaches ``least``, which is 1 or more."""
    counts = np.arange(1, max(least, mean) + 40 * (1 + np.sqrt(mean)))
    logs = counts * np.log(mean) - mean - np.cumsum(np.log(counts))
    return float(np.exp(logs[least - 1 :]).sum())


def _share_vaguely(
    loss: FloatArray, kl: FloatArray, error_of_loss: FloatArray, error_of_kl: FloatArray
) -> tuple[float | None, BoolArray]:
    """Round number that all rows agree with to the last digit printed, and those that tell it."""
    value = float(f"{loss.sum() / kl.sum():.0e}") if kl.sum() > 0 else 0.0
    # Chosen by their KL, for a choice by their loss would prefer losses that were rounded up.
    error = error_of_loss + value * error_of_kl
    tell = error <= RULE.vague_error * value * kl
    if value < 1 / RULE.largest or tell.sum() < limits.least_clear_rows:
        return None, tell
    loss, kl, error = loss[tell], kl[tell], error[tell] + RULE.slack * value * kl[tell]
    off = loss.sum() / kl.sum() / value - 1
    is_it = abs(off) <= RULE.scatter and bool(np.all(np.abs(loss - value * kl) <= error))
    chance = float(np.prod(2 * error / (value * kl)))
    return (value if is_it and chance < RULE.chance_of_ratio else None), tell


def _as_written(loss: FloatArray, kl: FloatArray, error: FloatArray) -> float | None:
    """Number of one digit, or two, that a ratio can only be: coefficients are chosen by people."""
    value = float(loss.sum() / kl.sum())
    off = np.abs(loss / kl / value - 1)
    spread = 2 * float(np.sqrt(np.mean(off**2) / off.size))
    allowed = max(RULE.precise, spread)
    is_shared = np.mean(off <= error) >= RULE.sharing_share
    is_sharp = is_shared and np.median(error) <= RULE.precise
    for digits in (1, 2) if is_sharp else (1,):
        written = float(f"{value:.{digits - 1}e}")
        step = 10.0 ** (math.floor(math.log10(written)) + 1 - digits)
        if abs(written / value - 1) <= allowed < step / written / 2:
            return written
    return None


def completions_per_row(reward: FloatArray, window: int = 1) -> Guess | None:
    """How many completions a row averages, from the smallest step between rewards of 0 or 1."""
    count = least_count(reward)
    if count is None or count % window or not count // window % 5:
        return None
    return Guess(count, f"every reward is a multiple of 1/{count}, if a completion scores 0 or 1")


def groups_per_row(silent_share: FloatArray) -> Guess | None:
    """How many groups a row counts, from the smallest step between shares of silent groups."""
    count = least_count(silent_share)
    why = f"every share of silent groups is a multiple of 1/{count}"
    return None if count is None else Guess(count, why)


def group_size_of(completions: Guess | None, groups: Guess | None) -> Guess | None:
    """Completions per group, where both counts speak and the one divides the other."""
    if completions is None or groups is None:
        return None
    size, rest = divmod(completions.value, groups.value)
    if rest or size < 2:
        return None
    why = f"{completions.value:g} completions / {groups.value:g} groups in a row"
    return Guess(int(size), f"{why}: {completions.why}; {groups.why}")


def guess(raw: RawRun, found: Derived) -> None:
    """Add settings that the metrics of a run give away; those that are known are compared."""
    if raw.is_eval_only:
        return
    known, series = found.facts, raw.series
    # Every pass over the same rollouts shows their rewards again.
    window, repeats = divmod(
        int(known.get("logging_steps") or raw.stated_spacing or raw.logging_steps),
        int(known.get("epochs_per_refresh") or 1),
    )
    is_plain = raw.step_unit == "optimizer" and not repeats
    apart, passes = np.unique(np.diff(raw.step)), {"minibatches_per_refresh", "epochs_per_refresh"}
    is_open = raw.framework == "TRL" and apart.size == 1 and passes.isdisjoint(known)
    steps = int(apart[0]) if is_plain and is_open else 1
    if steps > window == 1 and 1 < raw.step.size <= 1 + raw.rate_step.size / steps:
        # TRL logs a reward where it generates, and a rate at each update.
        line = f"minibatches_per_refresh {steps} = steps from one logged reward to the next"
        found.put("minibatches_per_refresh", steps, line)
    # Beyond the first update on some rollouts the loss has a part of the policy, too.
    if "loss" in series and "kl" in series and known.get("minibatches_per_refresh", 1) == 1:
        loss, kl = (series[name][: RULE.checked] for name in ("loss", "kl"))
        weight = kl_coefficient_from_loss(loss, kl)
        _settle(found, "kl_coefficient", weight, RULE.kl_tolerance)
    if not is_plain:
        return  # how many optimizer steps a row covers is not known
    # A sum of several rewards moves in steps of its own.
    is_sum = len(raw.parts) > 1
    completions = None if is_sum else completions_per_row(series["reward"][: RULE.checked], window)
    groups = groups_per_row(series.get("silent_group_share", np.zeros(0)))
    if known.get("group_size") is None:
        _settle(found, "group_size", group_size_of(completions, groups))
    prompts = _prompts(completions, groups, known.get("group_size"), window)
    _settle(found, "prompts_per_step", prompts)


def _prompts(
    completions: Guess | None, groups: Guess | None, group_size: float | None, window: int
) -> Guess | None:
    """Prompts per optimizer step, from the groups in a row or from its completions."""
    per = "" if window == 1 else f" / {window} steps a row"
    if groups is not None and not groups.value % window:
        return Guess(groups.value / window, f"{groups.value:g} groups in a row{per}: {groups.why}")
    if completions is None or not group_size or completions.value % (group_size * window):
        return None
    why = f"{completions.value:g} completions in a row / group size {group_size:g}{per}"
    return Guess(completions.value / group_size / window, f"{why}: {completions.why}")


def _settle(found: Derived, key: str, guessed: Guess | None, tolerance: float = 0.0) -> None:
    """Add a guess, or warn where something else is stated."""
    if guessed is None:
        return
    (value, why), stated = guessed, found.facts.get(key)
    if stated is None:
        found.put(key, value, f"{key} {value:g} guessed: {why}")
        found.assume(f"{key} = {value:g} guessed ({why}); a sidecar overrides it")
    elif abs(value - stated) > tolerance * max(abs(stated), abs(value)):
        found.warn(f"{key} = {stated:g} is used; the metrics look like {value:g} ({why})")
