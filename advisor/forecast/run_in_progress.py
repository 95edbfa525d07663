"""The end of one run that has begun: five forecasts of it, pooled as far as each can be believed.

A curve that the pilots pool knows settings, and is wrong where a run does what no curve foretells.
Runs elsewhere that stood alike know nothing of settings, and are never far off. An exponential, a
random walk and a law of growth fitted to the run know its own rows best. Each counts by a weight
learned over repositories, by how near it is to what became of runs like this one, and by how well
it foretold the latest rows of this run from half of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.forecast.alone import DRAWS, EXPONENTIAL, curve_fit, local_level
from advisor.forecast.analogues import (
    FINAL_SHARE,
    LOG_SHARE,
    LOG_STEPS,
    SCORED_SHARES,
    Corpus,
    Description,
    describe,
    end_of_run,
    kind_of,
    log_odds,
)
from advisor.forecast.growth import RewardRows, grown, growth_ahead
from advisor.forecast.interval import crps
from advisor.forecast.new_configuration import CLEAR
from advisor.forecast.predictive import begun_run_reward
from advisor.model import Pool, Posterior, Priors, sigmoid
from advisor.runs import PilotRun
from advisor.theory import FloatArray

LATEST = 0.2  # Share of the rows seen, at their end, that an earlier look is held against
LEAST_MISS = 0.02  # Share of the reward's range by which any forecast may miss

Parts = dict[str, FloatArray]
"""Draws of one end by ``analogues``, ``curve``, ``exponential``, ``random_walk``, ``growth``."""


class EndOfRun(NamedTuple):
    """Mean reward over the last tenth of a run."""

    draws: FloatArray  # (size,)
    parts: Parts
    weights: Mapping[str, float]  # of each part, in sum 1


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
    siblings: Sequence[RewardRows] = (),
    priors: Priors,
) -> EndOfRun:
    """Forecast the end of a run of which a part is seen, with other runs of its project.

    Its median is not below the present level of the run, which a random walk seen through noise
    estimates.
    """
    known = int(np.isfinite(run.reward).sum())
    if corpus is None or known < PilotRun.LEAST_REWARDS:
        if curve is not None:
            return EndOfRun(curve, {"curve": curve}, {"curve": 1.0})
        raise InputError(
            f"run '{run.id}' shows {known} rewards, and no curve is pooled over its cohort",
            path=run.path,
            key="reward",
            advice=f"Wait for {PilotRun.LEAST_REWARDS} rewards",
        )
    seen = _described(run, float(np.max(steps)))
    parts = parts_of(run, steps, corpus, bounds, siblings, priors)
    parts |= {} if curve is None else {"curve": curve}
    missed = missed_of(run, corpus, bounds, siblings, priors)
    weights = weights_of(parts, missed, seen.unit, priors.pool)
    pool = [(parts[name], weight) for name, weight in weights.items()]
    related = gain_of_siblings(siblings, seen, parts["analogues"], bounds, priors.pool)
    if related is not None:
        pool.append((related[0], related[1] / (1 - related[1])))
    ends = pooled(pool)
    lacks = float(np.median(parts["random_walk"]) - ends[DRAWS // 2])
    level = (seen.level - bounds[0]) / (bounds[1] - bounds[0])
    further = priors.pool.take_off * growth_ahead(run, level, float(np.max(steps)))
    return EndOfRun(taken_off(ends + max(lacks, 0.0), further, bounds), parts, weights)


def parts_of(
    run: PilotRun,
    steps: FloatArray,
    corpus: Corpus,
    bounds: tuple[float, float],
    siblings: Sequence[RewardRows],
    priors: Priors,
) -> Parts:
    """What each part but the pooled curve says of the mean reward over some later steps."""
    asked, rng = np.asarray(steps, dtype=float), np.random.default_rng(0)
    seen = _described(run, float(asked.max()))
    odds_share = priors.discrepancy.odds_share
    grew = grown(rows_of(run, bounds), float(asked.mean()), siblings, priors.growth, rng)
    return {
        "analogues": end_of_run(corpus, seen, odds_share=odds_share, size=DRAWS),
        "exponential": curve_fit(run, asked, EXPONENTIAL, bounds, rng)[0],
        "random_walk": local_level(run, asked, rng),
        "growth": bounds[0] + (bounds[1] - bounds[0]) * grew,
    }


def taken_off(draws: FloatArray, further: float, bounds: tuple[float, float]) -> FloatArray:
    """Draws whose log-odds above their median lie further off by a share: a run may take off."""
    span = bounds[1] - bounds[0]
    odds = log_odds((draws - bounds[0]) / span, CLEAR)
    above = np.maximum(odds - np.median(odds), 0.0)
    return np.asarray(draws + span * (sigmoid(odds + further * above) - sigmoid(odds)))


def missed_of(
    run: PilotRun,
    corpus: Corpus,
    bounds: tuple[float, float],
    siblings: Sequence[RewardRows],
    priors: Priors,
) -> dict[str, float]:
    """CRPS of the parts of an earlier look at a run, over their mean; empty for few rows.

    From the first half of what is seen, of the mean over its last fifth.
    """
    half, known = run.first_part(0.5), np.isfinite(run.reward)
    latest = known & (run.step > (1 - LATEST) * run.step[-1])
    fewest = min(np.isfinite(half.reward).sum(), known.sum() / 3)
    if fewest < PilotRun.LEAST_REWARDS or not latest.any():
        return {}
    parts = parts_of(half, run.step[latest], corpus, bounds, siblings, priors)
    came = float(run.reward[latest].mean())
    scores = {name: crps(np.clip(draws, *bounds), came) for name, draws in parts.items()}
    usual = float(np.mean(list(scores.values()))) + LEAST_MISS * (bounds[1] - bounds[0])
    return {name: score / usual for name, score in scores.items()}


def weights_of(
    parts: Parts, missed: Mapping[str, float], unit: float, rule: Pool
) -> dict[str, float]:
    """Weight of each part, in sum 1, where rewards ranged over ``unit`` so far."""
    middle = float(np.median(parts["analogues"]))
    found = {}
    for name, draws in parts.items():
        # Where no run like this one went, a forecast has seldom been right.
        near = rule.believed_growth if name == "growth" else None
        away = (float(np.median(draws)) - middle) / unit / (near or rule.believed)
        prior = 1.0 if name == "analogues" else float(getattr(rule, name))
        found[name] = prior / (1 + away**2) * float(np.exp(-rule.evidence * missed.get(name, 1.0)))
    total = sum(found.values())
    return {name: weight / total for name, weight in found.items()}


def gain_of_siblings(
    siblings: Sequence[RewardRows],
    seen: Description,
    analogues: FloatArray,
    bounds: tuple[float, float],
    rule: Pool,
) -> tuple[FloatArray, float] | None:
    """End of a run by what siblings of its length gained from the same share on, and its weight.

    A Student t round their mean, to which the median of the analogues counts as one sibling more.
    """
    from scipy.special import stdtrit

    share, end = float(np.exp(seen.features[LOG_SHARE])), float(np.exp(seen.features[LOG_STEPS]))
    gains = []
    for one in siblings:
        step, reward = np.array(one.step), np.array(one.share)
        begun, last = reward[step <= share * step[-1]], reward[step > (1 - FINAL_SHARE) * step[-1]]
        if step[-1] >= (1 - FINAL_SHARE) * end and begun.size >= PilotRun.LEAST_REWARDS:
            gains.append(float(last.mean() - begun[-max(1, begun.size // 3) :].mean()))
    if not gains:
        return None
    count, own = len(gains), (bounds[1] - bounds[0]) * np.array(gains)
    spread = float(np.interp(np.log(share), np.log(SCORED_SHARES), rule.siblings_spread))
    gain = (own.sum() + float(np.median(analogues)) - seen.level) / (count + 1)
    squares = float(((own - own.mean()) ** 2).sum()) + 2 * (seen.unit * spread) ** 2
    wide = float(np.sqrt(squares / (count + 1) * (1 + 1 / (count + 1))))
    draws = stdtrit(count + 1, (np.arange(DRAWS) + 0.5) / DRAWS)
    weight = rule.siblings / (1 + (wide / seen.unit) ** 2) * count / (count + 2)
    return np.asarray(seen.level + gain + wide * draws), weight


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


def rows_of(run: PilotRun, bounds: tuple[float, float]) -> RewardRows:
    """What a run logged, as its growth is fitted to it."""
    return RewardRows.of(run.step, run.reward, bounds, run.hyperparameters.group_size)


def _described(run: PilotRun, end: float) -> Description:
    known = np.isfinite(run.reward)
    return describe(run.step[known], run.reward[known], end, kind_of(run))


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
