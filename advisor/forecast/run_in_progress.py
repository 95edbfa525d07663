"""The end of one run: what the pooled curve says and what became of runs like it, in one answer.

A curve that the cohort pools knows settings and siblings, and is wrong where a run does what no
curve foretells; analogues know nothing of settings, and are never far off; a curve and a random
walk fitted to the run alone know its own rows best. All are mixed with weights that were learned
on repositories left out, so an answer there always is, and pooling costs little where it does not
help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.forecast.analogues import (
    SCORED_SHARES,
    Corpus,
    describe,
    end_of_run,
    gain_of_siblings,
    kind_of,
    tabulated,
)
from advisor.forecast.growth import FEWEST_SIBLINGS, RewardRows, grown
from advisor.forecast.predictive import begun_run_reward
from advisor.forecast.take_off import with_take_off
from advisor.model import Posterior, Priors
from advisor.runs import PilotRun
from advisor.theory import FloatArray

DRAWS = 1000  # Draws of an answer
BINS = 20  # Rows of a run are averaged into at most this many before a fit

TIME = ((-1.5, 0.0, 1.5), -4.0, 5.0)
"""Starts of a log time scale, in lengths of what is seen, and its bounds."""


class EndOfRun(NamedTuple):
    """Mean reward over the last tenth of a run."""

    draws: FloatArray  # (size,)
    curve_weight: float
    curve: FloatArray | None  # (draws,)
    analogues: FloatArray | None  # (draws,)


def curve_of_begun_run(
    posterior: Posterior, run: PilotRun, steps: FloatArray, *, seed: int = 0
) -> FloatArray | None:
    """What the pooled curve says of the end of a run that the cohort was fitted with."""
    place = {one.id: index for index, one in enumerate(posterior.meta.runs)}
    if run.id not in place:
        return None
    return begun_run_reward(posterior, place[run.id], run, steps, seed=seed)


def end_of_begun_run(
    run: PilotRun,
    steps: FloatArray,
    *,
    corpus: Corpus | None,
    bounds: tuple[float, float],
    curve: FloatArray | None = None,
    siblings: Sequence[PilotRun] = (),
    pilots: Sequence[RewardRows] = (),
    priors: Priors,
) -> EndOfRun:
    """Forecast the end of a run of which a part is seen.

    Its median is not below the present level of the run, which a random walk seen through noise
    estimates.
    """
    rules = priors.discrepancy
    known = np.isfinite(run.reward)
    if corpus is None or known.sum() < PilotRun.LEAST_REWARDS:
        if curve is not None:
            return EndOfRun(curve, 1.0, curve, None)
        raise InputError(
            f"run '{run.id}' shows {known.sum()} rewards, and no curve is pooled over its cohort",
            path=run.path,
            key="reward",
            advice=f"Wait for {PilotRun.LEAST_REWARDS} rewards",
        )
    step, reward = run.step[known], run.reward[known]
    end = float(np.max(steps))
    seen = describe(step, reward, end, kind_of(run))
    share = float(step[-1]) / end
    ended = tabulated({"siblings": siblings}, [share], corpus) if siblings else None
    analogues = end_of_run(corpus, seen, ended, odds_share=rules.odds_share, size=DRAWS)

    def believed(draws: FloatArray) -> float:
        away = (float(np.median(draws)) - float(np.median(analogues))) / seen.unit
        # Where no run like this one went, a curve has seldom been right.
        return 1 / (1 + (away / rules.believed) ** 2)

    weight, widening = (
        float(np.interp(seen.features[0], np.log(SCORED_SHARES), by_share))
        for by_share in (corpus.curve_weights, corpus.pool_widenings)
    )
    weight = 0.0 if curve is None else weight * believed(curve)
    rng, asked = np.random.default_rng(0), np.asarray(steps, dtype=float)
    exponential_fit, _ = curve_fit(run, asked, EXPONENTIAL, bounds, rng)
    alone = (exponential_fit, local_level(run, asked, rng))
    shared = 1 - rules.own_curve * len(alone)
    parts = [(analogues, shared * (1 - weight))]
    parts += [] if curve is None else [(curve, shared * weight)]
    parts += [(draws, rules.own_curve * believed(draws)) for draws in alone]
    others = [*pilots, *(_rows_of(one, bounds) for one in siblings)]
    grew, of_growth = grown(_rows_of(run, bounds), float(asked.mean()), others, priors.growth, rng)
    grew = bounds[0] + (bounds[1] - bounds[0]) * grew
    if len(others) < FEWEST_SIBLINGS:  # its own rows alone foretell a rise less well
        of_growth *= believed(grew)
    parts.append((grew, of_growth / (1 - of_growth) * sum(part for _, part in parts)))
    median = float(np.median(analogues))
    related = gain_of_siblings(siblings, share, seen, median, rules)
    if related is not None:
        parts.append((related[0], related[1] / (1 - related[1]) * sum(part for _, part in parts)))
    of_curve = shared * weight / sum(part for _, part in parts)
    ends = with_take_off(widened(pooled(parts), widening), seen, bounds, priors.take_off)
    lacks = float(np.median(alone[1]) - ends[DRAWS // 2])
    return EndOfRun(ends + max(lacks, 0.0), of_curve, curve, analogues)


def rows_of_pilots(
    posterior: Posterior, run: PilotRun, bounds: tuple[float, float]
) -> list[RewardRows]:
    """What the living pilots of a run's model and task logged, but for the run itself."""
    return [
        RewardRows.of(one.logged_steps, one.logged_rewards, bounds, one.settings.group_size)
        for one in posterior.meta.runs
        if (one.task, one.model) == (run.task, run.model)
        and one.id != run.id
        and one.fingerprint != run.fingerprint
        and one.collapse_step is None
        and len(one.logged_rewards) >= PilotRun.LEAST_REWARDS
    ]


def _rows_of(run: PilotRun, bounds: tuple[float, float]) -> RewardRows:
    return RewardRows.of(run.step, run.reward, bounds, run.hyperparameters.group_size)


def pooled(parts: Sequence[tuple[FloatArray, float]]) -> FloatArray:
    """Linear pool of draws with weights, as evenly spaced quantiles of each by their shares."""
    shares = np.cumsum([weight for _, weight in parts])
    ends = [0, *np.round(DRAWS * shares / shares[-1]).astype(int)]
    drawn = [
        np.quantile(draws, (np.arange(count) + 0.5) / count)
        for (draws, _), count in zip(parts, np.diff(ends), strict=True)
        if count
    ]
    return np.sort(np.concatenate(drawn))


def widened(draws: FloatArray, widening: float) -> FloatArray:
    """Ordered draws, their distance from the median multiplied."""
    median = draws[DRAWS // 2]
    return np.asarray(median + widening * (draws - median))


class Curve(NamedTuple):
    """A family of curves on steps, with start values and bounds."""

    value: Callable[[FloatArray, FloatArray], FloatArray]
    more: tuple[tuple[tuple[float, ...], float, float], ...]


def exponential(theta: FloatArray, time: FloatArray) -> FloatArray:
    """Saturating exponential: start, plateau and log of the time scale."""
    return np.asarray(theta[0] + (theta[1] - theta[0]) * -np.expm1(-time * np.exp(-theta[2])))


EXPONENTIAL = Curve(exponential, (TIME,))


def curve_fit(
    seen: PilotRun,
    steps: FloatArray,
    curve: Curve,
    bounds: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Fit a curve to one run by least squares."""
    from scipy.optimize import least_squares

    floor, ceiling = bounds
    scale, span = ceiling - floor, float(seen.step[-1])
    time, reward = _binned(seen.step / span, (seen.reward - floor) / scale)
    lower = np.array([0.0, 0.0, *(limits[1] for limits in curve.more)])
    upper = np.array([1.0, 1.0, *(limits[2] for limits in curve.more)])
    fits = []

    def misses(theta: FloatArray) -> FloatArray:
        return curve.value(theta, time) - reward

    for plateau in (0.4, 0.9):
        for rate in curve.more[0][0]:
            rest = [rate, *(limits[0][0] for limits in curve.more[1:])]
            guess = np.clip([reward[0], plateau, *rest], lower + 1e-6, upper - 1e-6)
            fits.append(least_squares(misses, guess, bounds=(lower, upper)))
    best = min(fits, key=lambda found: found.cost)
    freedom = max(time.size - lower.size, 1)
    noise = max(float(np.sqrt(2 * best.cost / freedom)), 1e-3)
    # Added to the information matrix: a curve that the data do not bend has no covariance else.
    information = best.jac.T @ best.jac + 1e-3 * np.eye(lower.size)
    root = np.linalg.cholesky(np.linalg.inv(information))
    theta = best.x + noise * rng.standard_normal((DRAWS, lower.size)) @ root.T
    theta = np.clip(theta, lower, upper)
    values = curve.value(theta.T[:, :, None], steps / span).mean(axis=1)
    draws = values + noise * rng.standard_normal(DRAWS) / np.sqrt(BINS * 0.1 + 1)
    evidence = -time.size * np.log(noise) - 0.5 * lower.size * np.log(time.size)
    return floor + scale * draws, float(evidence)


def local_level(seen: PilotRun, steps: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Continue a run as a random walk seen through noise, both variances by maximum likelihood."""
    time, reward = _binned(seen.step, seen.reward, 400)
    apart = float(np.median(np.diff(time)))

    def filtered(log_ratio: float) -> tuple[float, float, float, float]:
        """-2 log likelihood profiled over the noise, level, its variance / noise, noise."""
        ratio, level, spread = float(np.exp(log_ratio)), float(reward[0]), 1.0
        squares = logs = 0.0
        for value in reward[1:].tolist():
            spread += ratio
            total = spread + 1.0
            squares += (value - level) ** 2 / total
            logs += float(np.log(total))
            level += spread / total * (value - level)
            spread -= spread**2 / total
        size = max(reward.size - 1, 1)
        noise = max(squares / size, 1e-12)
        return size * float(np.log(noise)) + logs, level, spread, noise

    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda x: filtered(x)[0], bounds=(-12.0, 2.0), method="bounded")
    _, level, spread, noise = filtered(float(found.x))
    ahead = max(float(steps.mean()) - float(time[-1]), 0.0) / apart
    rows = max(float(np.ptp(steps)) / apart, 1.0)
    variance = noise * (spread + float(np.exp(found.x)) * ahead + 1.0 / rows)
    return np.asarray(level + np.sqrt(variance) * rng.standard_normal(DRAWS))


def _binned(
    time: FloatArray, reward: FloatArray, most: int = BINS
) -> tuple[FloatArray, FloatArray]:
    """Means of time and reward over at most so many parts of the finite rows."""
    finite = np.flatnonzero(np.isfinite(reward))
    parts = np.array_split(finite, min(most, finite.size))
    time, reward = (np.array([of[part].mean() for part in parts]) for of in (time, reward))
    return time, reward
