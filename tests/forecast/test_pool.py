"""The pool of forecasts of a begun run's end: what counts, by how much, and how it is learned."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan
from studies import modules_of

from advisor.errors import InputError
from advisor.forecast import (
    DRAWS,
    RewardRows,
    analogues,
    crps,
    end_of_begun_run,
    local_level,
    pooled,
    run_in_progress,
)
from advisor.model import load_priors

with modules_of("real_runs", ("pool",)) as found:
    study = found["pool"]

PRIORS = load_priors("full_finetuning")
RULE = PRIORS.pool
BOUNDS = (0.0, 1.0)
ROWS = 120
CORPUS = analogues.shipped_corpus()
LEVELS = (np.arange(DRAWS) + 0.5) / DRAWS


def run_of(reward, name="new"):
    plan = Plan(1e-6, steps=len(reward), parameters=1.5e9, model="m", task="t")
    return plan.run(np.asarray(reward, dtype=float), name)


def straight(gain, start=0.2, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    return start + gain * np.arange(ROWS) / ROWS + noise * rng.standard_normal(ROWS)


def rows(gain, **how):
    return RewardRows.of(np.arange(1, ROWS + 1), straight(gain, **how), BOUNDS, 8)


def test_a_part_counts_by_its_weight_its_distance_and_what_it_missed():
    parts = dict.fromkeys(study.NAMES, LEVELS)
    priors = np.array([1.0, *(getattr(RULE, name) for name in study.NAMES[1:])])
    alike = run_in_progress.weights_of(parts, {}, 0.5, RULE)
    assert list(alike.values()) == pytest.approx(priors / priors.sum())
    # At the distance that is believed by half, and at one CRPS more than the mean of all.
    reaches = {"curve": RULE.believed, "growth": RULE.believed_growth}
    for name, reach in reaches.items():
        far = parts | {name: LEVELS + 0.5 * reach}
        assert _ratio(far, {}, name) == pytest.approx(getattr(RULE, name) / 2)
    missed = {"analogues": 1.0, "growth": 2.0}
    assert _ratio(parts, missed, "growth") == pytest.approx(RULE.growth * np.exp(-RULE.evidence))
    # What no earlier look can tell of counts as the mean.
    assert _ratio(parts, {"analogues": 1.0}, "curve") == pytest.approx(RULE.curve)


def _ratio(parts, missed, name):
    weights = run_in_progress.weights_of(parts, missed, 0.5, RULE)
    assert sum(weights.values()) == pytest.approx(1.0)
    return weights[name] / weights["analogues"]


def test_what_a_part_missed_is_that_of_the_latest_rows_from_the_first_half():
    """Control: of a flat run no part missed by more than the least."""
    flat, turned = straight(0.0, start=0.3), straight(0.0, start=0.3)
    turned[40:54] += 0.4
    run = run_of(turned).first_part(0.5)
    missed = run_in_progress.missed_of(run, CORPUS, BOUNDS, (), PRIORS)
    half, asked = run.first_part(0.5), run.step[run.step > 0.8 * 60]
    parts = run_in_progress.parts_of(half, asked, CORPUS, BOUNDS, (), PRIORS)
    came = turned[48:60].mean()
    scores = {name: crps(draws, came) for name, draws in parts.items()}
    usual = np.mean(list(scores.values())) + run_in_progress.LEAST_MISS
    for name, score in scores.items():
        assert missed[name] == pytest.approx(score / usual, rel=0.02), name
    calm = run_in_progress.missed_of(run_of(flat).first_part(0.5), CORPUS, BOUNDS, (), PRIORS)
    assert max(calm.values()) < max(missed.values())
    few = run_of(flat).first_part(5 / ROWS)
    assert run_in_progress.missed_of(few, CORPUS, BOUNDS, (), PRIORS) == {}


def test_a_run_is_not_said_to_end_below_where_it_stands(monkeypatch):
    """Control: a pool whose middle lies higher is not moved."""
    reward = straight(0.0, start=0.2)
    reward[30:] = straight(0.0, start=0.8)[30:]
    run = run_of(reward)
    part, ends = run.first_part(0.5), run.step[run.step > 0.9 * ROWS]
    told = end_of_begun_run(part, ends, corpus=CORPUS, bounds=BOUNDS, priors=PRIORS)
    stands = np.median(local_level(part, ends, np.random.default_rng(0)))
    assert np.median(told.draws) >= stands - 0.01
    assert sum(told.weights.values()) == pytest.approx(1.0)
    assert told.parts.keys() == told.weights.keys() == set(study.NAMES) - {"curve"}
    for middle, lifted in ((stands - 0.3, 0.3), (stands + 0.3, 0.0)):
        monkeypatch.setattr(run_in_progress, "pooled", lambda _, at=middle: LEVELS + at - 0.5)
        moved = end_of_begun_run(part, ends, corpus=CORPUS, bounds=BOUNDS, priors=PRIORS).draws
        assert np.median(moved) == pytest.approx(middle + lifted, abs=0.02)


def test_a_run_of_which_groups_teach_may_take_off():
    """Control: nothing is moved at the median and below, nor of a run that is all but right."""
    draws = np.quantile(LEVELS, np.linspace(0.1, 0.6, 101))
    moved = run_in_progress.taken_off(draws, 0.5, BOUNDS)
    assert moved[:51] == pytest.approx(draws[:51])
    odds = [analogues.log_odds(one[-1]) - analogues.log_odds(draws[50]) for one in (draws, moved)]
    assert odds[1] == pytest.approx(1.5 * odds[0])
    assert np.all(np.diff(moved) > 0)
    ahead = [
        run_in_progress.growth_ahead(run_of(straight(0.0, level)), level, end)
        for level, end in ((0.3, 2 * ROWS), (0.3, 10 * ROWS), (0.95, 10 * ROWS), (0.3, ROWS))
    ]
    assert ahead[1] == pytest.approx(ahead[0] * np.log(10) / np.log(2))
    assert ahead[2] < 0.05 * ahead[1]
    assert ahead[3] == 0


def test_a_curve_that_no_run_like_this_one_followed_is_not_believed():
    run = run_of(straight(0.2, seed=3))
    part, ends = run.first_part(0.25), run.step[run.step > 0.9 * ROWS]
    asked = {"corpus": CORPUS, "bounds": BOUNDS, "priors": PRIORS}
    alone = end_of_begun_run(part, ends, **asked)
    near = np.median(alone.draws) + 0.01 * np.random.default_rng(0).standard_normal(500)
    believed = end_of_begun_run(part, ends, curve=near, **asked)
    assert np.std(believed.draws) < np.std(alone.draws)
    far = end_of_begun_run(part, ends, curve=near + 50, **asked)
    assert far.weights["curve"] < 0.01 < 0.1 < believed.weights["curve"]
    assert np.median(far.draws) == pytest.approx(np.median(alone.draws), abs=1e-3)


def test_siblings_that_ended_tell_what_is_still_gained():
    """Control: siblings that have not come as far tell nothing of the end."""
    run = run_of(straight(0.3))
    part, ends = run.first_part(0.25), run.step[run.step > 0.9 * ROWS]
    seen = analogues.describe(part.step, part.reward, ROWS, analogues.kind_of(part))
    middle = np.full(DRAWS, seen.level)
    rising = [rows(0.6, seed=seed) for seed in range(3)]
    falling = [rows(-0.2, start=0.5, seed=seed) for seed in range(3)]
    up, down = (
        run_in_progress.gain_of_siblings(of, seen, middle, BOUNDS, RULE)[0]
        for of in (rising, falling)
    )
    assert np.median(up) > seen.level + 0.2 > seen.level > np.median(down)
    short = [RewardRows(one.step[:60], one.share[:60], 8) for one in rising]
    assert run_in_progress.gain_of_siblings(short, seen, middle, BOUNDS, RULE) is None
    asked = {"corpus": CORPUS, "bounds": BOUNDS, "priors": PRIORS}
    high, low = (
        np.median(end_of_begun_run(part, ends, siblings=of, **asked).draws)
        for of in (rising, falling)
    )
    assert high > low


def test_a_forecast_is_that_of_siblings_and_analogues_where_both_agree():
    """Control: analogues that expect no gain pull it down, two siblings twice as far up."""
    siblings = [rows(0.4, noise=0.0) for _ in range(2)]
    start = run_of(straight(0.4, noise=0.0)).first_part(0.25)
    seen = analogues.describe(start.step, start.reward, ROWS, analogues.kind_of(start))
    gain = np.array(siblings[0].share)[108:].mean() - seen.level
    for expected, share in ((gain, 1.0), (0.0, 2 / 3)):
        middle = np.full(DRAWS, seen.level + expected)
        draws, _ = run_in_progress.gain_of_siblings(siblings, seen, middle, BOUNDS, RULE)
        assert np.median(draws) == pytest.approx(seen.level + share * gain, abs=1e-3)


def test_pool_has_the_quantiles_of_both():
    curve, likely = np.linspace(0, 1, 4000), np.linspace(10, 11, 1000)
    draws = pooled([(curve, 0.6), (likely, 1.4)])
    assert draws.size == DRAWS
    assert (draws < 5).mean() == pytest.approx(0.3)
    assert draws[draws < 5].mean() == pytest.approx(0.5, abs=0.01)


def test_a_random_walk_knows_rows_and_not_the_unit_of_steps():
    """Control: twice as far ahead it spreads further."""
    rng = np.random.default_rng(4)
    run = Plan(steps=60).run(0.5 + 0.01 * np.cumsum(rng.standard_normal(60)), "walk")
    sparse = run.with_updates(step=10 * run.step)
    asked = np.arange(90.0, 101.0)

    def spread(run, steps):
        return local_level(run, steps, np.random.default_rng(0)).std()

    assert spread(sparse, 10 * asked) == pytest.approx(spread(run, asked), rel=1e-6)
    assert spread(run, asked + 60) > 1.2 * spread(run, asked)


def test_a_run_without_corpus_or_curve_is_refused():
    run = run_of(straight(0.2))
    with pytest.raises(InputError, match="no curve is pooled"):
        end_of_begun_run(
            run.first_part(0.3), run.step[-9:], corpus=None, bounds=BOUNDS, priors=PRIORS
        )
    with pytest.raises(InputError, match="shows 2 rewards"):
        end_of_begun_run(
            run.first_part(2 / ROWS), run.step[-9:], corpus=CORPUS, bounds=BOUNDS, priors=PRIORS
        )


def looks_of(right, count=96):
    """Looks of which one part is right, and the others are as far off as they say."""
    rng = np.random.default_rng(7)
    normal = np.sort(rng.standard_normal(study.POINTS.size))
    looks = []
    for number in range(count):
        came = float(rng.uniform(0.3, 0.7))
        parts = {
            name: came + (0.02 if name == right else 0.12) * (rng.standard_normal() + normal)
            for name in study.NAMES
        }
        place = (f"r{number % 12}", f"run{number}", 0.25, BOUNDS, 0.5, 0.5, 0.4, came)
        looks.append(study.Look(*place, parts, {}, 1.0))
    return looks


@pytest.mark.parametrize("right", ["growth", "random_walk"])
def test_the_weight_of_the_part_that_is_right_is_learned(right):
    """Control: where no part is right, none is far ahead."""
    looks = looks_of(right)
    quadratic, every = study.Quadratic.of(looks, RULE), np.ones(len(looks), dtype=bool)
    weights = study.learned_weights(quadratic, every, "")
    others = [weights[name] for name in study.NAMES[1:] if name != right]
    assert weights[right] > 5 * max(others)
    none = looks_of("nothing")
    level = study.learned_weights(study.Quadratic.of(none, RULE), every, "")
    parts = [level[name] for name in study.NAMES[1:]]
    assert max(parts) < 2.5 * min(parts)
    assert study.learned_weights(quadratic, every, right)[right] < 1e-8


def test_how_far_runs_take_off_is_learned_from_those_that_did():
    """Control: where all parts are as far off as they say, no run takes off."""
    calm = looks_of("nothing")
    rising = [look._replace(came=min(look.came + 0.25, 1.0)) for look in calm[::3]] + calm[1::3]
    took_off = []
    for looks in (rising, calm):
        quadratic, every = study.Quadratic.of(looks, RULE), np.ones(len(looks), dtype=bool)
        took_off.append(study.learned(looks, quadratic, every, RULE)["take_off"])
        without = study.learned(looks, quadratic, every, RULE, without="take_off")
        assert without["take_off"] == 0
    assert took_off[0] > 0.1 > took_off[1]


def test_the_score_that_is_minimised_is_that_of_the_pool():
    looks = looks_of("growth", count=12)
    rule = RULE.model_copy(update={"growth": 3.0, "evidence": 0.0})
    quadratic, every = study.Quadratic.of(looks, rule), np.ones(len(looks), dtype=bool)
    theta = np.array([*(np.log(getattr(rule, name)) for name in study.NAMES[1:]), 0.0])
    by_hand = []
    for look, unit, counts in zip(looks, quadratic.unit, quadratic.counts, strict=True):
        weights = run_in_progress.weights_of(look.parts, {}, look.unit, rule)
        pool = pooled([(look.parts[name], weight) for name, weight in weights.items()])
        by_hand.append((np.mean(crps(np.clip(pool, *BOUNDS), look.came) / unit), counts))
    values, counts = np.array(by_hand).T
    wanted = np.average(values, weights=counts)
    assert quadratic.objective(theta, every) == pytest.approx(wanted, rel=0.02)
