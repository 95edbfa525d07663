"""Log likelihood of a cohort and its gradient, in one pass over runs and bins.

The formulas are those of `equations`, which predictions use; here they stand once more with their
derivatives, because a compiler that has to find those takes half a minute for what is compiled here
in five seconds. `tests/model/test_kernel.py` holds the two to the same numbers. Numba keeps the
machine code on disk: a later process only loads it.
"""

from __future__ import annotations

from collections import namedtuple
from math import cos, exp, log, log1p, sin, sqrt, tanh
from typing import Any

import numpy as np

from advisor.model import equations as eq
from advisor.model import fast as columns
from advisor.model.fast.machine_code import compiled
from advisor.model.parameters import LAWS, POPULATION
from advisor.theory import SMALLEST_MOMENTUM

LEAST_GAP = 1e-9  # Share below which what a cold plateau lacks is not told from nothing

_LEFT, _BY_K, _BY_SHARE, _BY_DISPERSION, _BY_ONSET, _BY_EXPONENT = range(6)
_BY_MEAN, _SURPRISE, _VARIANCE, _BEFORE, _SAMPLING, _KEPT = range(6, 12)
"""What the pass over a run's bins keeps for the pass back."""

SERIES_RADIUS = 1e-3  # |z| below which cosh(sqrt z) and sinh(sqrt z)/sqrt z are summed as series

DEGREES, LEAST_VARIANCE = eq.DEGREES, eq.LEAST_VARIANCE
_STALE_LIMIT = eq.STALE_LIMIT
_LEAST_LOG_LOSS, _MOST_LOG_LOSS = eq.LOG_LOSS_ENDS
_LEAST_LOG_HAZARD, _MOST_LOG_HAZARD = eq.LOG_HAZARD_ENDS
_MOST_HAZARD = eq.MOST_HAZARD
_Places = namedtuple("_Places", [name.replace(".", "_") for name in POPULATION])  # type: ignore[misc]
AT: Any = _Places(*range(len(POPULATION)))
"""Place of every population parameter; the terms of a law follow its first."""

_RATE, _PLATEAU_LOSS, _HAZARD = (POPULATION.index(f"{law}.{LAWS[law][0]}") for law in LAWS)
_RATES, _PLATEAU_LOSSES, _HAZARDS = (len(terms) for terms in LAWS.values())


@compiled
def _sigmoid(value: float) -> float:
    return 0.5 * (1.0 + tanh(0.5 * value))


@compiled
def _tested(
    mean: float, start: float, eval_start: float, gain: float
) -> tuple[float, float, float, float, float]:
    """Held-out reward; derivatives by its start, train reward, that one's start and log gain."""
    if mean < start:
        tested = eval_start * mean / start
        return tested, mean / start, eval_start / start, -tested / start, 0.0
    risen = (mean - start) / (1 - start)
    below = 1 - risen + risen * gain
    share = risen * gain / below
    slope = (1 - eval_start) * gain / (below * below * (1 - start))
    by_base = slope * (risen - 1)
    by_gain = (1 - eval_start) * share * (1 - share)
    return eval_start + (1 - eval_start) * share, 1 - share, slope, by_base, by_gain


@compiled
def _oscillation(time: float, half: float, square: float) -> tuple[float, float, float, float]:
    """Share left of an oscillator, its derivatives by ``half`` and ``square``, and its velocity.

    ``half`` is damping over twice the mass, ``square`` stiffness over mass: the share is
    ``e^{-half t} (C + half t H)`` with ``C = cosh(sqrt z)``, ``H = sinh(sqrt z)/sqrt z`` and
    ``z = t^2 (half^2 - square)``, in every regime.
    """
    gap = half * half - square
    z = time * time * gap
    if z > SERIES_RADIUS:
        root = sqrt(gap)
        slow = exp(-square / (half + root) * time)
        fast = exp(-(half + root) * time)
        even, odd = 0.5 * (slow + fast), 0.5 * (slow - fast) / (root * time)
        by_z = 0.5 * (even - odd) / z
    elif z < -SERIES_RADIUS:
        root = sqrt(-gap)
        envelope = exp(-half * time)
        even, odd = envelope * cos(root * time), envelope * sin(root * time) / (root * time)
        by_z = 0.5 * (even - odd) / z
    else:
        envelope = exp(-half * time)
        even = envelope * (1 + z / 2 * (1 + z / 12 * (1 + z / 30)))
        odd = envelope * (1 + z / 6 * (1 + z / 20 * (1 + z / 42)))
        by_z = envelope * (1 / 6 + z / 60 * (1 + z / 28))
    share = even + half * time * odd
    # By z: half H for the even part, (C - H) / 2z for the odd one.
    slope = 0.5 * odd + half * time * by_z
    by_half = time * odd - time * share + 2 * half * time * time * slope
    return share, by_half, -time * time * slope, -square * time * odd


@compiled
def _placed(
    base: float, spread: float, offset: float, row: Any, kind: int
) -> tuple[float, float, float]:
    """Value of a run, its luck in standard deviations, and luck per offset.

    Where the data tell little of a run its luck is sampled (weight 0); where they tell all, the
    value itself, so that a chain need not move all runs to move their law (weight 1). In between
    the offset's prior is ``N(w (base - anchor) / s, (spread / s)^(2 w))`` with s a spread that
    stays (Gorinova, Moore and Hoffman, arXiv:1906.03028).
    """
    at = columns.RUN_PLACES + 3 * (kind + 1)
    anchor, reference, weight = row[at], row[at + 1], row[at + 2]
    factor = 1.0
    if weight > 0.0:
        factor = exp(weight * log(reference / spread))
        offset -= weight * (base - anchor) / reference
    luck = factor * offset
    return base + spread * luck, luck, factor


@compiled
def _plateau_luck(cold: float, loss_base: float, offset: float, row: Any) -> Any:
    """Luck of a run on its plateau, where the offset says how that differs from the mode's."""
    # To first order what its law gains there its luck must lose, as far as the data pin it down.
    cold_logit = log(cold) - log(max(1 - cold, LEAST_GAP))
    at = columns.RUN_PLACES
    return offset - (row[at] * cold_logit + row[at + 1] * loss_base - row[at + 2])


@compiled
def _lifted(
    a_value: float,
    spread: float,
    offset: float,
    luck: float,
    factor: float,
    row: Any,
    kind: int,
) -> tuple[float, float, float, float]:
    """Density that a placed run adds, and adjoints of base, log spread and offset."""
    # Every offset has a standard normal prior, which is exchanged for that of the luck.
    at = columns.RUN_PLACES + 3 * (kind + 1)
    reference, weight = row[at + 1], row[at + 2]
    if weight == 0.0:
        return 0.0, a_value, a_value * spread * offset, a_value * spread
    density = 0.5 * (offset * offset - luck * luck) + weight * log(reference / spread)
    a_luck = a_value * spread - luck
    a_base = a_value - a_luck * factor * weight / reference
    a_spread = a_value * spread * luck - weight * (a_luck * luck + 1.0)
    return density, a_base, a_spread, a_luck * factor + offset


@compiled
def _law_base(parts: Any, row: Any, group: int, task: int, headroom: float) -> Any:
    """Log stiffness that the law gives a run."""
    population, task_level, _, _, group_offset, _ = parts
    base = (
        task_level[1, task]
        - log(headroom)
        + population[AT.curvature_exponent] * row[columns.RUN_LOG_PARAMETERS]
        + exp(population[AT.log_model_spread]) * group_offset[1, group]
    )
    for i in range(_RATES):
        base += population[_RATE + i] * row[columns.RUN_RATE + i]
    return base


@compiled
def _loss_base(population: Any, row: Any) -> Any:
    """Log plateau loss that the law gives a run."""
    base = 0.0
    for i in range(_PLATEAU_LOSSES):
        base += population[_PLATEAU_LOSS + i] * row[columns.RUN_PLATEAU_LOSS + i]
    return base


@compiled
def _headroom(parts: Any, group: int, task: int) -> Any:
    population, task_level, _, _, group_offset, _ = parts
    spread = exp(population[AT.log_headroom_spread])
    return _sigmoid(task_level[0, task] + spread * group_offset[0, group])


@compiled
def luck_of_runs(parts: Any, run_offset: Any, run_table: Any, parents: Any) -> None:
    """Turn sampled run offsets into standard deviations, the last of a point's parts."""
    population, _, start_logit, _, _, luck = parts
    for run in range(run_table.shape[0]):
        row = run_table[run]
        group, task = int(parents[run, 0]), int(parents[run, 1])
        headroom = _headroom(parts, group, task)
        start = _sigmoid(start_logit[group])
        cold = start + (1 - start) * headroom
        luck[0, run] = _plateau_luck(cold, _loss_base(population, row), run_offset[0, run], row)
        base = _law_base(parts, row, group, task, headroom)
        spread = exp(population[AT.log_run_rate_spread])
        luck[1, run] = _placed(base, spread, run_offset[1, run], row, 0)[1]
        spread = exp(population[AT.log_run_shape_spread])
        luck[2, run] = _placed(population[AT.log_dispersion], spread, run_offset[2, run], row, 1)[1]


@compiled
def log_likelihood(parts: Any, tables: Any, is_oscillator: float, slopes: Any) -> float:
    """Log likelihood, and its gradient added to what ``slopes`` hold.

    Long because: one pass over runs and bins computes value and gradient.
    """
    population, task_level, start_logit, eval_level, group_offset, run_offset = parts
    d_population, d_task, d_start, d_eval, d_group, d_run = slopes
    run_table, parents, first_bin, bin_table = tables
    longest = 0
    for run in range(run_table.shape[0]):
        longest = max(longest, int(first_bin[run + 1] - first_bin[run]))
    memory = np.empty((longest, _KEPT))
    total = 0.0

    single = is_oscillator == 1.0
    exponent = population[_RATE]
    misfit = exp(population[AT.log_misfit])
    noise_scale = exp(2 * population[AT.log_noise_scale])
    within = _sigmoid(population[AT.within_log_odds])
    eval_variance = exp(2 * population[AT.log_eval_noise])
    limit = exp(population[AT.log_progress_limit])
    headroom_spread = exp(population[AT.log_headroom_spread])
    model_spread = exp(population[AT.log_model_spread])
    rate_spread = exp(population[AT.log_run_rate_spread])
    plateau_spread = exp(population[AT.log_run_plateau_spread])
    shape_spread = exp(population[AT.log_run_shape_spread])
    loss_spread = exp(population[AT.log_run_loss_spread])
    corrected_share = _sigmoid(population[AT.uncorrected_log_odds])

    for run in range(run_table.shape[0]):
        row = run_table[run]
        group, task = int(parents[run, 0]), int(parents[run, 1])
        begin, end = int(first_bin[run]), int(first_bin[run + 1])

        # Survival: an event at the end of the exposure, or none within it.
        log_law = 0.0
        for i in range(_HAZARDS):
            log_law += population[_HAZARD + i] * row[columns.RUN_HAZARD + i]
        at_law = exp(min(max(log_law, _LEAST_LOG_HAZARD), _MOST_LOG_HAZARD))
        hazard = at_law / (1 + at_law / _MOST_HAZARD)
        expected_events = hazard * row[columns.RUN_EXPOSURE]
        total += row[columns.RUN_COLLAPSED] * log(hazard) - expected_events
        a_law = (row[columns.RUN_COLLAPSED] - expected_events) * (1 - hazard / _MOST_HAZARD)
        for i in range(_HAZARDS):
            d_population[_HAZARD + i] += a_law * row[columns.RUN_HAZARD + i]
        if begin == end:
            continue

        # Down the hierarchy: task, model, run.
        start = _sigmoid(start_logit[group])
        headroom = _headroom(parts, group, task)
        cold = start + (1 - start) * headroom
        law_base = _law_base(parts, row, group, task, headroom)
        log_law, rate_luck, rate_factor = _placed(law_base, rate_spread, run_offset[1, run], row, 0)
        # Luck lifts the plateau, so it lowers the loss.
        loss_base = _loss_base(population, row)
        plateau_luck = _plateau_luck(cold, loss_base, run_offset[0, run], row)
        log_loss = loss_base - loss_spread * plateau_luck
        log_dispersion, shape_luck, shape_factor = _placed(
            population[AT.log_dispersion], shape_spread, run_offset[2, run], row, 1
        )
        capped = min(max(log_loss, _LEAST_LOG_LOSS), _MOST_LOG_LOSS)
        loss = exp(capped)
        odds = exp(plateau_spread * plateau_luck)
        lucky = cold * odds / (1 - cold + cold * odds)
        plateau = lucky * exp(-loss)
        law = exp(log_law)
        slowed = row[columns.RUN_CLIPPED] * law * (row[columns.RUN_INTERVAL] - 1) / limit
        stiffness = law / (1 + slowed)
        dispersion = exp(log_dispersion)
        log_onset = task_level[2, task]
        onset = exp(log_onset)
        uncorrected = 1 - row[columns.RUN_CORRECTED] * (1 - corrected_share)

        # Damping and its derivatives by log stiffness and by the uncorrected share.
        age, momentum = row[columns.RUN_MEAN_AGE], row[columns.RUN_MOMENTUM]
        stale = uncorrected * stiffness * age
        bend = 1 + (stale / _STALE_LIMIT) ** 4
        damping = 1 - stale / bend**0.25
        by_stale = -(bend**-1.25)
        log_damping_by_k = by_stale * stale / damping
        log_damping_by_s = by_stale * stiffness * age / damping

        # Of the oscillator.
        mass = (1 + momentum) / (2 * (1 - momentum)) + stale * age / 2
        half, square = damping / (2 * mass), stiffness / mass
        log_mass_by_k = stale * age / 2 / mass
        log_mass_by_s = stiffness * age * age / 2 / mass

        slowness = max(momentum, SMALLEST_MOMENTUM)
        log_momentum = log(slowness)
        first = 1.0
        first_by_half = 0.0
        first_by_square = 0.0
        if single:
            first, first_by_half, first_by_square, _ = _oscillation(0.5, half, square)

        eval_start = _sigmoid(eval_level[0, group])
        gain = exp(eval_level[1, group])

        a_start = a_plateau = a_log_k = a_share = a_dispersion = a_onset = a_exponent = 0.0
        a_noise = a_within = a_eval_noise = a_eval_start = a_gain = 0.0
        a_misfit = squares = filtered = filtered_variance = 0.0
        determinant = 1.0  # of at most MAX_BINS variances, none below LEAST_VARIANCE
        last = begin
        for at in range(begin, end):
            cell = bin_table[at]
            kept = memory[at - begin]
            c0, c1 = cell[columns.BIN_CLOCK], cell[columns.BIN_CLOCK + 1]
            c2, c3 = cell[columns.BIN_CLOCK + 2], cell[columns.BIN_CLOCK + 3]
            clock = c0 + exponent * (c1 + exponent * (c2 + exponent * c3))
            clock_by_exponent = c1 + exponent * (2 * c2 + 3 * exponent * c3)
            left, by_k, by_share, by_dispersion, by_onset, by_clock = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if clock > 0.0 and single:
                now, by_half, by_square, velocity = _oscillation(clock + 0.5, half, square)
                left = now / first
                by_half = (by_half - left * first_by_half) / first
                by_square = (by_square - left * first_by_square) / first
                by_k = by_half * half * (log_damping_by_k - log_mass_by_k) + by_square * square * (
                    1 - log_mass_by_k
                )
                by_share = (
                    by_half * half * (log_damping_by_s - log_mass_by_s)
                    - by_square * square * log_mass_by_s
                )
                by_clock = velocity / first
            elif clock > 0.0:
                decayed = exp(clock * log_momentum)
                time = clock - slowness * (1 - decayed) / (1 - slowness)
                if time > 0.0:
                    log_x = log(stiffness * time / damping)
                    power = exp(onset * log_x)
                    spread = dispersion * power
                    share_log = log(1 + spread) / dispersion
                    left = exp(-share_log)
                    by_log_x = -left * power * onset / (1 + spread)
                    by_k = by_log_x * (1 - log_damping_by_k)
                    by_share = -by_log_x * log_damping_by_s
                    by_dispersion = left * (share_log - power / (1 + spread))
                    by_onset = by_log_x * log_x
                    by_clock = (
                        by_log_x * (1 + slowness * log_momentum * decayed / (1 - slowness)) / time
                    )
            reach = start - plateau
            mean = plateau + reach * left
            kept[_LEFT], kept[_BY_K], kept[_BY_SHARE] = left, by_k, by_share
            kept[_BY_DISPERSION], kept[_BY_ONSET] = by_dispersion, by_onset
            kept[_BY_EXPONENT] = by_clock * clock_by_exponent

            if cell[columns.BIN_IS_EVALUATION] == 1.0:
                # It meets the run wherever it has wandered, and follows from a start of its own.
                variance = eval_variance + misfit * misfit + LEAST_VARIANCE
                tested, by_tested, by_trained, by_base, by_gain = _tested(
                    mean, start, eval_start, gain
                )
                residual = cell[columns.BIN_REWARD] - tested
                scaled = residual * residual / (DEGREES * variance)
                total -= 0.5 * log(variance) + 0.5 * (DEGREES + 1) * log1p(scaled)
                pull = (DEGREES + 1) / (DEGREES * variance * (1 + scaled))
                by_level = pull * residual
                by_variance = 0.5 * (pull * residual * residual - 1.0) / variance
                a_eval_noise += by_variance * 2 * eval_variance
                a_misfit += by_variance * misfit * misfit
                a_eval_start += by_level * by_tested
                a_gain += by_level * by_gain
                a_start += by_level * by_base
                kept[_BY_MEAN] = by_level * by_trained
                continue

            # What a curve leaves wanders slowly: a stationary process, filtered bin by bin.
            last = at + 1
            split = cell[columns.BIN_NOISE_WITHIN] - cell[columns.BIN_NOISE_BETWEEN]
            sampling = noise_scale * (
                cell[columns.BIN_NOISE_KNOWN] + cell[columns.BIN_NOISE_BETWEEN] + within * split
            )
            persistence = cell[columns.BIN_PERSISTENCE]
            fresh = misfit * misfit * (1 - persistence * persistence)
            before = persistence * persistence * filtered_variance + fresh
            white = sampling + LEAST_VARIANCE
            variance = before + white
            surprise = cell[columns.BIN_REWARD] - mean - persistence * filtered
            squares += surprise * surprise / variance
            determinant *= variance
            filtered = persistence * filtered + before / variance * surprise
            filtered_variance = before * white / variance
            kept[_SURPRISE], kept[_VARIANCE], kept[_BEFORE] = surprise, variance, before
            kept[_SAMPLING] = sampling

        total -= 0.5 * log(determinant)

        # A run's residuals are jointly Student t: an odd run must not drag the others.
        rows = last - begin
        total -= 0.5 * (DEGREES + rows) * log1p(squares / DEGREES)
        by_squares = -0.5 * (DEGREES + rows) / (DEGREES + squares)
        a_filtered = a_filtered_variance = 0.0
        for at in range(last - 1, begin - 1, -1):
            cell = bin_table[at]
            kept = memory[at - begin]
            surprise, variance, before = kept[_SURPRISE], kept[_VARIANCE], kept[_BEFORE]
            white = variance - before
            a_surprise = a_filtered * before / variance + 2 * by_squares * surprise / variance
            a_share_of = a_filtered * surprise
            a_variance = (
                -0.5
                - by_squares * surprise * surprise / variance
                - (a_filtered_variance * white + a_share_of) * before / variance
            ) / variance
            a_before = (a_filtered_variance * white + a_share_of) / variance + a_variance
            a_white = a_filtered_variance * before / variance + a_variance
            persistence = cell[columns.BIN_PERSISTENCE]
            a_misfit += a_before * misfit * misfit * (1 - persistence * persistence)
            a_noise += a_white * 2 * kept[_SAMPLING]
            a_within += (
                a_white
                * noise_scale
                * (cell[columns.BIN_NOISE_WITHIN] - cell[columns.BIN_NOISE_BETWEEN])
            )
            kept[_BY_MEAN] = -a_surprise
            a_filtered = persistence * (a_filtered - a_surprise)
            a_filtered_variance = persistence * persistence * a_before

        reach = start - plateau
        for at in range(end - begin):
            kept = memory[at]
            by_mean, left = kept[_BY_MEAN], kept[_LEFT]
            a_plateau += by_mean * (1 - left)
            a_start += by_mean * left
            moved = by_mean * reach
            a_log_k += moved * kept[_BY_K]
            a_share += moved * kept[_BY_SHARE]
            a_dispersion += moved * kept[_BY_DISPERSION]
            a_onset += moved * kept[_BY_ONSET]
            a_exponent += moved * kept[_BY_EXPONENT]

        # Up the hierarchy again.
        d_population[_RATE] += a_exponent
        d_population[AT.log_misfit] += 2 * a_misfit
        d_population[AT.log_noise_scale] += a_noise
        d_population[AT.within_log_odds] += a_within * within * (1 - within)
        d_population[AT.log_eval_noise] += a_eval_noise
        d_population[AT.uncorrected_log_odds] += (
            a_share * row[columns.RUN_CORRECTED] * corrected_share * (1 - corrected_share)
        )
        d_task[2, task] += a_onset
        d_eval[0, group] += a_eval_start * eval_start * (1 - eval_start)
        d_eval[1, group] += a_gain

        value, a_base, a_spread, a_offset = _lifted(
            a_dispersion, shape_spread, run_offset[2, run], shape_luck, shape_factor, row, 1
        )
        total += value
        d_population[AT.log_dispersion] += a_base
        d_population[AT.log_run_shape_spread] += a_spread
        d_run[2, run] += a_offset

        a_law = a_log_k / (1 + slowed)
        d_population[AT.log_progress_limit] += a_log_k * slowed / (1 + slowed)
        value, a_law, a_spread, a_offset = _lifted(
            a_law, rate_spread, run_offset[1, run], rate_luck, rate_factor, row, 0
        )
        total += value
        d_population[AT.log_run_rate_spread] += a_spread
        d_run[1, run] += a_offset
        for i in range(_RATES):
            d_population[_RATE + i] += a_law * row[columns.RUN_RATE + i]
        d_population[AT.curvature_exponent] += a_law * row[columns.RUN_LOG_PARAMETERS]
        d_population[AT.log_model_spread] += a_law * model_spread * group_offset[1, group]
        d_group[1, group] += a_law * model_spread
        d_task[1, task] += a_law

        a_odds = a_plateau * plateau * (1 - lucky)
        d_population[AT.log_run_plateau_spread] += a_odds * plateau_spread * plateau_luck
        a_loss = -a_plateau * plateau * loss if log_loss == capped else 0.0
        a_cold = a_plateau * plateau / lucky * odds / (1 - cold + cold * odds) ** 2
        d_population[AT.log_run_loss_spread] -= a_loss * loss_spread * plateau_luck
        offset = run_offset[0, run]
        total += 0.5 * (offset * offset - plateau_luck * plateau_luck)
        a_luck = a_odds * plateau_spread - a_loss * loss_spread - plateau_luck
        d_run[0, run] += a_luck + offset
        a_loss -= a_luck * row[columns.RUN_PLACES + 1]
        if 1 - cold > LEAST_GAP:
            a_cold -= a_luck * row[columns.RUN_PLACES] / (cold * (1 - cold))
        for i in range(_PLATEAU_LOSSES):
            d_population[_PLATEAU_LOSS + i] += a_loss * row[columns.RUN_PLATEAU_LOSS + i]
        a_start += a_cold * (1 - headroom)
        d_start[group] += a_start * start * (1 - start)
        a_headroom = (a_cold * (1 - start) * headroom - a_law) * (1 - headroom)
        d_task[0, task] += a_headroom
        d_population[AT.log_headroom_spread] += (
            a_headroom * headroom_spread * group_offset[0, group]
        )
        d_group[0, group] += a_headroom * headroom_spread

    return total
