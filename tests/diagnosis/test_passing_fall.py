"""Falls from which the reward came back, in part or whole; few evaluations; runs dead at once."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, rising

from advisor.diagnosis import diagnose, find_any_fall, find_final_fall
from advisor.diagnosis.collapse import dead_from_the_start, find_passing_fall
from advisor.model import cohort_of

STEPS = np.arange(1.0, 201.0)


def healthy(seed, noise=0.05):
    """Reward that rises and stays."""
    return rising(STEPS.size) + noise * np.random.default_rng(seed).standard_normal(STEPS.size)


def fallen(seed, to, back):
    """Reward that falls at row 90 and is ``back`` from row 120 on."""
    reward = healthy(seed)
    reward[90:120] += to - 0.8
    reward[120:] += back - 0.8
    return np.clip(reward, 0, 1)


def status(run):
    return next(card for card in diagnose(run).cards if card.mode == "collapse")


@pytest.mark.parametrize("seed", range(5))
def test_a_fall_with_half_of_it_regained_is_a_collapse(seed):
    verdict, fall = find_final_fall(STEPS, fallen(seed, 0.03, 0.4), 0.0)
    assert verdict.unstable
    assert abs(fall.onset_step - 91) <= 2
    assert fall.after < 0.1
    card = status(Plan().run(fallen(seed, 0.03, 0.4)))
    assert card.status == "FAIL"
    assert "came back no further than 0.4" in card.headline or "than 0.3" in card.headline


@pytest.mark.parametrize("seed", range(5))
def test_a_fall_from_which_the_reward_came_back_counts_and_is_told(seed):
    reward = fallen(seed, 0.03, 0.8)
    assert not find_final_fall(STEPS, reward, 0.0)[0].unstable
    verdict = find_any_fall(STEPS, reward, 0.0)
    assert verdict.unstable
    assert verdict.healthy_until < verdict.onset_step <= 93
    card = status(Plan().run(reward))
    assert card.status == "WARNING"
    lowest = STEPS[90 + np.argmin(reward[90:])]
    assert f"was lowest at step {lowest:.0f} and came back" in card.headline
    assert card.steps == (verdict.onset_step, lowest)
    # The fit counts it as a collapse of its setting.
    runs = [Plan().run(reward, "fell"), Plan(1e-4).run(healthy(seed), "rose")]
    assert cohort_of(runs).collapsed.tolist() == [True, False]


def test_rare_successes_that_came_early_by_luck_are_no_death():
    """Few rows of a task that has hardly begun; beside them runs that died."""
    rng, step = np.random.default_rng(6), np.arange(1.0, 17.0)

    def called(chance, runs=300):
        rows = [rng.binomial(64, chance, step.size) / 64 for _ in range(runs)]
        return np.mean([find_any_fall(step, one, 0.0).unstable for one in rows])

    assert called(0.005) < 0.015
    assert called(0.01) < 0.015
    assert called(np.where(step < 8, 0.1, 0.0), runs=100) > 0.95


def test_a_run_that_dies_within_the_first_updates_is_told_by_its_siblings():
    alive = [Plan(rate).run(healthy(i), f"alive {i}") for i, rate in enumerate((1e-4, 2e-4, 3e-4))]
    reward = np.zeros(STEPS.size)
    reward[:2] = 0.2, 0.1
    dead = Plan(1e-2).run(reward, "dead")
    assert dead_from_the_start([*alive, dead], 0.0) == {"dead"}
    cohort = cohort_of([*alive, dead])
    assert dict(zip([run.id for run in cohort.runs], cohort.collapsed, strict=True)) == {
        "alive 0": False,
        "alive 1": False,
        "alive 2": False,
        "dead": True,
    }
    # Its first rows come before the first update: without any reward it began from another policy.
    other = Plan(1e-2).run(np.zeros(STEPS.size) + 1e-3, "other")
    assert not dead_from_the_start([*alive, other], 0.0)
    # A row that averages steps before and after the fall is below theirs.
    reward = np.zeros(6)
    reward[0] = 0.03
    runs = {
        rate: Plan(rate).run(reward, "short", step=np.arange(1.0, 7.0)) for rate in (1e-2, 2e-4)
    }
    assert dead_from_the_start([*alive, runs[1e-2]], 0.0) == {"short"}
    assert not dead_from_the_start([*alive, runs[2e-4]], 0.0)
    # Another task says nothing; one sibling is enough, if it lives.
    elsewhere = [run.with_updates(task="other") for run in alive]
    assert not dead_from_the_start([*elsewhere, dead], 0.0)
    assert dead_from_the_start([alive[0], dead], 0.0) == {"dead"}
    assert not dead_from_the_start([dead.with_updates(id="twin"), dead], 0.0)


def short(rate, rewards, name):
    return Plan(rate, steps=len(rewards)).run(np.array(rewards), name)


LIVING = short(1e-5, [0.031, 0.062, 0.016, 0.05, 0.031, 0.062, 0.055, 0.071], "living")


@pytest.mark.parametrize(
    ("rewards", "is_dead"),
    [
        ([0.030, 0.0, 0.0, 0.0], True),
        ([0.0] * 8, True),  # its first batch may show nothing by chance
        ([0.030, 0.0], False),  # two rows tell nothing
        ([0.030, 0.028, 0.0, 0.031], False),
        ([0.0, 0.0, 0.010, 0.020, 0.030, 0.041], False),  # slow, and rising
    ],
)
def test_few_rows_tell_a_death_beside_a_living_sibling(rewards, is_dead):
    run = short(1e-4, rewards, "asked")
    assert dead_from_the_start([LIVING, run], 0.0) == ({"asked"} if is_dead else set())


def test_a_chance_success_is_no_sign_of_life_beside_a_gentler_run_that_moved():
    start = np.tile([0.0, 0.03, 0.0, 0.03], 4)
    rising = short(1e-5, [*start, *np.linspace(0.05, 0.6, 44)], "rising")
    nothing = np.zeros(60)
    nothing[9] = 0.03
    assert dead_from_the_start([rising, short(3e-4, nothing, "fierce")], 0.0) == {"fierce"}
    # A gentler one is slow; one that stays where it began has not moved, and not died.
    assert not dead_from_the_start([rising, short(1e-6, nothing, "gentle")], 0.0)
    assert not dead_from_the_start([rising, short(3e-4, np.resize(start, 60), "stuck")], 0.0)


def test_a_short_run_whose_last_rows_show_nothing_has_fallen():
    rewards = [0.2, 0.4, 0.3, 0.35, 0.25, 0.0, 0.0, 0.0, 0.0]
    verdict = find_any_fall(np.arange(1.0, 10.0), np.array(rewards), 0.0)
    assert verdict.unstable
    assert verdict.fell_from == 6.0
    # A row or two above it in between change nothing; a reward that comes back does.
    rewards = [0.19, 0.16, 0.44, 0.38, 0.34, 0.69, *[0.0] * 5, 0.09, 0.25, *[0.0] * 7]
    for rows in (12, 20):
        steps = np.arange(1.0, rows + 1)
        assert find_any_fall(steps, np.array(rewards[:rows]), 0.0).fell_from == 7.0
    back = np.array([*rewards[:10], 0.4, 0.5, 0.6])
    assert not find_any_fall(np.arange(1.0, back.size + 1), back, 0.0).unstable
    # Rows at the floor are common where they were before.
    sparse = np.array([0.2, 0.0, 0.3, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0])
    assert not find_any_fall(np.arange(1.0, 10.0), sparse, 0.0).unstable


def test_a_fall_counts_before_it_has_lasted_or_come_back():
    level = np.tile([0.9, 0.8, 0.95, 0.85], 4)[:13]
    rewards = np.array([*level, 0.6, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    for rows in (17, 18, 19, 21):
        verdict = find_any_fall(np.arange(1.0, rows + 1), rewards[:rows], 0.0)
        assert verdict.unstable
        assert verdict.healthy_until <= 13.0
        assert status(short(1e-4, rewards[:rows], "fell")).status == "FAIL"
    for seed in range(100):
        noise = healthy(seed, 0.15)
        for rows in range(20, 200, 20):
            found = find_passing_fall(STEPS[:rows], noise[:rows], 0.0, past=False)
            assert found is None


def test_a_fall_that_is_plain_to_the_eye_is_told_where_half_came_back():
    # Forty rows of forty completions: 0.83, twenty rows about 0.33, 0.6 at the end.
    rng = np.random.default_rng(4)
    level = np.repeat([0.83, 0.33, 0.6], [18, 16, 6])
    reward = np.clip(level + 0.09 * rng.standard_normal(40), 0, 1)
    step = np.arange(1.0, 41.0)
    fall = find_passing_fall(step, reward, 0.0, sure=4.0)
    assert fall is not None
    card = status(Plan().run(reward))
    assert card.status == "WARNING"
    assert "came back" in card.headline
    # Rows as wide as the fall is deep do not make it plain.
    wild = np.clip(level + 0.25 * rng.standard_normal(40), 0, 1)
    assert "came back" not in status(Plan().run(wild)).headline


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.04, *[0.0] * 10], "FAIL"),
        ([0.04, 0.001, *[0.0] * 9], "FAIL"),
        ([0.04, *[0.0] * 5], "PASS"),
        ([0.04, *[0.001] * 10], "PASS"),
        ([0.0] * 11, "PASS"),
    ],
)
def test_evaluations_that_went_to_nothing_are_a_collapse(values, expected):
    run = Plan().run(rising(20))
    run = run.with_updates(
        step=np.zeros(0),
        series={},
        eval_step=np.arange(1.0, len(values) + 1) * 5,
        eval_reward=np.array(values),
    )
    found = diagnose(run)
    assert found.card("collapse").status == expected
    assert (found.collapse_step == 10) == (expected == "FAIL" and values[1] == 0)


def test_a_run_that_never_got_near_where_its_siblings_began_is_dead():
    alive = [Plan().run(healthy(seed), f"alive-{seed}") for seed in range(2)]
    dead = Plan(1e-2).run(np.resize([0.09, 0.0, 0.02, 0.0, 0.01], 100), "dead")
    assert status(dead).status != "FAIL"
    card = diagnose(dead, siblings=[*alive, dead]).card("collapse")
    assert card.status == "FAIL"
    assert card.headline.startswith("Dead from the start")
    # Runs of another task, or of an unknown model, tell nothing of it.
    other = [run.with_updates(task="another") for run in alive]
    assert diagnose(dead, siblings=other).card("collapse").status != "FAIL"
    unknown = [run.with_updates(model=None) for run in (dead, *alive)]
    assert diagnose(unknown[0], siblings=unknown).card("collapse").status != "FAIL"
