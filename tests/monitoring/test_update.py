"""Updates: calibrated, quick, unmoved by bad input, and right about what was not piloted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from processor_time import at_most
from simulated_runs import Plan, made_up_posterior, with_meta
from watched import PLAN, PLANS

from advisor.diagnosis import diagnose
from advisor.errors import InputError
from advisor.forecast import Forecaster, Target, observe
from advisor.monitoring import Watch, watch_report

TARGET = Target("sort", "tiny-s", 1e5)
END = 100
SEEN = 40


def born(posterior, draw, seed):
    """A run that draw ``draw`` of the posterior makes: its laws, luck, wander and noise."""
    rng = np.random.default_rng(seed)
    observed = observe(PLAN.run(np.full(END, 0.5)), posterior.meta, END)
    laws = Forecaster(posterior, TARGET, draws=10**6).laws_of(observed.settings)
    laws = laws.taken(np.array([draw]))
    steps = np.arange(1.0, END + 1)
    mean = laws.reward(rng.standard_normal((3, 1)), observed.clock_at(steps))[0]
    misfit = np.exp(laws.population["log_misfit"][0])
    # The model's wander has a memory of half the rows that were seen when it is judged.
    left = np.exp(-1 / (0.5 * SEEN))
    wander = np.empty(END)
    wander[0] = rng.standard_normal()
    for at in range(1, END):
        wander[at] = left * wander[at - 1] + np.sqrt(1 - left**2) * rng.standard_normal()
    level = np.clip(mean + misfit * wander, 0.001, 0.999)
    noise = np.exp(laws.population["log_noise_scale"][0])
    noisy = level + noise * np.sqrt(level * (1 - level) / 128) * rng.standard_normal(END)
    return PLAN.run(np.clip(noisy, 0, 1)), level


def ending_at(rows, end, time=20.0):
    """Rewards that rise along an exponential to ``end``, with the noise of 128 completions."""
    mean = end - (end - 0.2) * np.exp(-np.arange(rows) / time)
    return np.random.default_rng(3).binomial(128, mean) / 128


def stops(posterior, rewards):
    """Looks at which a run is called done, at every tenth row of its log."""
    watch = Watch(posterior, planned_steps=rewards.size)
    run, found = PLAN.run(rewards), []
    for seen in range(10, rewards.size, 10):
        report = watch_report(watch, run.before(seen))
        found += [seen] if report.decision.rule == "gained" else []
    return found


@pytest.mark.parametrize("time", [15.0, 40.0, 200.0])
def test_no_look_stops_a_run_that_still_gains(posterior, time):
    """However the curve of the pilots has it: these runs end far above what the pilots foretell."""
    rewards = ending_at(150, 0.97, time)
    gained_later = [
        seen
        for seen in stops(posterior, rewards)
        if rewards[-15:].mean() > rewards[:seen][-5:].mean() + 0.01
    ]
    assert not gained_later


def test_a_run_that_stands_at_its_ceiling_is_done(posterior):
    """Control: the rule can speak."""
    assert stops(posterior, np.minimum(0.2 + 0.05 * np.arange(200), 1.0))


def test_a_slow_rise_within_the_noise_of_rows_is_seen(posterior):
    """Control: rows round one level, and rows that fall."""
    noise = 0.04 * np.random.default_rng(1).standard_normal(90)
    watch = Watch(posterior, planned_steps=300)
    flat = np.full(90, 0.6)
    for slope, seen, is_rising in (
        (0.002, 90, True),
        (0, 90, False),
        (-0.002, 90, False),
        (0, 20, True),
    ):
        rows = flat + slope * np.arange(90) + noise - noise[60:].mean()
        assert watch.update(PLAN.run(rows).before(seen)).is_rising == is_rising, slope


def test_rows_rise_where_their_slope_is_above_its_standard_error(posterior):
    """Control: half of that."""
    time, wave = np.linspace(-0.5, 0.5, 30), np.resize([0.02, -0.02, -0.02, 0.02], 30)
    wave -= time * (time @ wave) / (time @ time)
    wave -= wave.mean()
    error = np.sqrt(wave @ wave / 28 / (time @ time))
    watch = Watch(posterior, planned_steps=300)
    for slopes, is_rising in ((1.3, True), (0.7, False)):
        rows = np.full(90, 0.6)
        rows[60:] += slopes * error * time + wave
        assert watch.update(PLAN.run(rows)).is_rising == is_rising


def test_what_is_left_to_gain_is_measured_to_the_printed_end(posterior):
    update = Watch(posterior, planned_steps=END).update(PLAN.run(ending_at(60, 0.8)))
    rewards = ending_at(60, 0.8)
    level = min(rewards[-5:].mean(), rewards[-6:].mean())
    assert update.left_to_gain == pytest.approx(update.final.high - level)
    assert 0 < update.share_made < 1


@pytest.mark.evidence
def test_the_interval_covers_runs_that_the_posterior_makes(posterior):
    watch = Watch(posterior, planned_steps=END, draws=500)
    inside, narrower, due = [], [], []
    for number in range(60):
        run, _ = born(posterior, 13 * number % 1000, number)
        update = watch.update(run.before(SEEN))
        came = run.reward[-END // 10 :].mean()
        final = update.final
        due.append(update.refit_due)
        inside.append(final.low <= came <= final.high)
        middle, half = (final.low + final.high) / 2, (final.high - final.low) / 6
        narrower.append(abs(came - middle) <= half)
    # 80 % of 60 are 48, with a standard deviation of 3; a third of the width must not do.
    assert 39 <= sum(inside) <= 57
    assert sum(narrower) < 36
    assert sum(due) < 12


def test_a_schedule_that_ends_before_the_run_does_is_named(posterior, rows):
    """Control: a schedule over as many steps as the run, or over more, and one that is constant."""
    for schedule, planned, is_named in (
        ("linear", END, True),
        ("linear", 3 * END, False),
        ("linear", 4 * END, False),
        ("constant", END, False),
    ):
        plan = replace(PLAN, schedule=schedule, steps=planned)
        update = Watch(posterior, planned_steps=3 * END).update(plan.run(rows[:SEEN]))
        said = [note for note in update.notes if "schedule ends at step" in note]
        told = [f"the linear schedule ends at step {END}: no learning rate is left then"]
        assert said == (told if is_named else [])


def test_rows_narrow_the_forecast_and_the_end_ends_it(posterior):
    watch = Watch(posterior, planned_steps=END)
    run, level = born(posterior, 7, 3)
    widths, shares = [], []
    for seen in (5, 40, 75, END):
        update = watch.update(run.before(seen))
        widths.append(update.final.high - update.final.low)
        shares.append(update.share_made)
        assert update.step == seen
        assert update.band.step[0] == seen
        assert update.band.step[-1] == END
    assert widths == sorted(widths, reverse=True)
    assert shares == sorted(shares)
    assert update.final.mean == pytest.approx(level[-1], abs=0.04)
    assert "the planned steps are done" in update.notes


def test_an_update_takes_less_than_a_tenth_of_a_second(posterior, rows):
    watch = Watch(posterior, planned_steps=END)
    run = PLAN.run(rows)
    watch.update(run.before(50))
    with at_most(0.5):
        for more in range(5):
            watch.update(run.before(50 + more))


def test_the_target_is_reached_or_not(posterior, rows):
    run = PLAN.run(rows).before(60)
    chances = [
        Watch(posterior, planned_steps=END, target_reward=wanted).update(run).p_reach
        for wanted in (0.3, 0.78, 0.99)
    ]
    assert chances[0] > 0.95
    assert chances == sorted(chances, reverse=True)
    assert chances[2] < 0.05
    assert Watch(posterior, planned_steps=END).update(run).p_reach is None


def test_a_target_that_is_reached_is_not_lost_by_a_later_collapse():
    """Control: a target that only the end reaches."""
    posterior = made_up_posterior([PLAN], draws=500, moved={"hazard.level": -3.0})
    run = PLAN.run(0.8 - 0.6 * np.exp(-np.arange(END) / 20)).before(60)
    now, end = (
        Watch(posterior, planned_steps=END, target_reward=wanted).update(run)
        for wanted in (0.3, 0.85)
    )
    assert now.p_reach > 0.99
    assert now.p_unstable > 0.5 > end.p_reach


def test_the_held_out_interval_holds_what_an_evaluation_will_log(rows):
    widths = []
    for noise in (0.001, 0.05):
        made = made_up_posterior(PLANS, draws=500, moved={"log_eval_noise": np.log(noise)})
        watch = Watch(with_meta(made, evaluated=(True,)), planned_steps=END)
        found = watch.update(PLAN.run(rows).before(60)).final_eval
        widths.append(found.high - found.low)
    # 80 % of that noise alone are 2.5 of its standard deviations.
    assert widths[1] > max(0.12, widths[0])


@pytest.mark.parametrize("low_rows", [9, 20, 28])
def test_a_deep_fall_under_way_is_one_for_the_forecast_as_for_the_card(posterior, low_rows):
    rng, steps = np.random.default_rng(5), 400
    healthy = rng.binomial(128, 0.8 - 0.6 * np.exp(-np.arange(steps) / 20)) / 128
    falls, back = healthy.copy(), healthy.copy()
    falls[-low_rows:] *= 0.25
    back[200 : 200 + low_rows] *= 0.25
    watch = Watch(posterior, planned_steps=2 * steps)
    fallen, regained = (watch.update(PLAN.run(one)) for one in (falls, back))
    assert diagnose(PLAN.run(falls)).verdict == "FAIL"
    assert fallen.p_unstable > 0.9 > regained.p_unstable
    assert fallen.final.mean < 0.4 < regained.final.mean


def test_what_no_pilot_resembles_asks_for_a_new_fit():
    posterior = made_up_posterior([PLAN], draws=500, width=0.1)
    usual = 0.7 - 0.55 * np.exp(-np.arange(60) / 15)
    odd = 0.9 - 0.01 * np.arange(60)
    for seed in range(3):
        watch = Watch(posterior, planned_steps=END, seed=seed)
        assert watch.update(PLAN.run(odd)).pareto_k > watch.update(PLAN.run(usual)).pareto_k + 0.1


def test_living_on_speaks_for_stability():
    posterior = made_up_posterior([PLAN], draws=500, moved={"hazard.level": -4.0})
    watch = Watch(posterior, planned_steps=END)
    run = PLAN.run(0.8 - 0.6 * np.exp(-np.arange(END) / 20))
    risks = [watch.update(run.before(seen)).p_unstable for seen in (10, 50, 90)]
    assert risks == sorted(risks, reverse=True)
    assert risks[0] > 0.3
    assert risks[2] < 0.2


def test_p_stable_starts_from_what_was_said_before_the_run_and_signals_move_it():
    """Control: a small model is judged by its pilots alone, and no signal is named."""
    risks, updates = {}, {}
    for size in (1e6, 1.5e9):
        plan = Plan(1e-6, 8, 2, steps=100, parameters=size)
        run = plan.run(0.8 - 0.6 * np.exp(-np.arange(END) / 20))
        sagging = run.with_updates(series={"reward": run.reward[::-1].copy()})
        for hazard in (-8.0, -4.0):
            posterior = made_up_posterior([plan], draws=300, moved={"hazard.level": hazard})
            watch = Watch(posterior, planned_steps=END)
            updates[size, hazard] = [watch.update(one.before(60)) for one in (run, sagging)]
            risks[size, hazard] = [one.p_unstable for one in updates[size, hazard]]
    assert risks[1e6, -4.0][0] > risks[1e6, -8.0][0] + 0.1
    assert updates[1e6, -4.0][0].p_unstable_before is None
    for hazard in (-8.0, -4.0):
        rises, sags = updates[1.5e9, hazard]
        assert rises.p_unstable_before == sags.p_unstable_before
        assert rises.p_unstable < rises.p_unstable_before
        assert sags.p_unstable > 3 * rises.p_unstable
        assert rises.moved_by == "the trend of the reward"
    riskier, safer = (updates[1.5e9, hazard][0] for hazard in (-4.0, -8.0))
    assert riskier.p_unstable_before > safer.p_unstable_before
    assert riskier.p_unstable > safer.p_unstable


def test_the_best_checkpoint_is_named_by_held_out_rewards_where_they_are_logged(posterior):
    peak = 0.8 - 0.6 * np.abs(np.arange(END) - 40) / END
    watch = Watch(posterior, planned_steps=2 * END)
    update = watch.update(PLAN.run(peak))
    assert update.best_step == pytest.approx(41, abs=2)
    assert not update.best_is_held_out
    tested = np.arange(10.0, 101, 10)
    held_out = 0.5 - 0.004 * np.abs(tested - 70)
    run = PLAN.run(peak).with_updates(eval_step=tested, eval_reward=held_out)
    update = watch.update(run)
    assert update.best_is_held_out
    assert update.best_step == 70


def test_a_reward_that_slowly_lost_what_it_gained_is_said_and_noise_is_not(posterior):
    """However slowly: it need not be a collapse. Control: as noisy a run that keeps its gain."""
    noise = 0.03 * np.random.default_rng(2).standard_normal(END)
    gained = np.interp(np.arange(END), [0, 30, END], [0.5, 0.75, 0.5])
    kept = np.interp(np.arange(END), [0, 30, END], [0.5, 0.75, 0.75])
    watch = Watch(posterior, planned_steps=2 * END)
    lost, healthy = (watch_report(watch, PLAN.run(one + noise)) for one in (gained, kept))
    assert lost.diagnosis.card("collapse").status == "WARNING"
    assert lost.diagnosis.card("collapse").headline.rstrip(".") in lost.decision.reason
    assert healthy.diagnosis.card("collapse").status == "PASS"
    assert "P(stable) is" in healthy.decision.reason


def test_a_learning_rate_that_jumps_in_the_log_is_taken_up(posterior, rows):
    rate = np.where(np.arange(END) < 50, 3e-4, 1e-2)
    run = PLAN.run(rows, series={"reward": rows, "learning_rate": rate})
    watch = Watch(posterior, planned_steps=2 * END)
    before, after = (watch.update(run.before(seen)) for seen in (50, 52))
    assert after.settings.learning_rate == 1e-2
    assert after.p_unstable > before.p_unstable + 0.3
    assert "0.01" in " ".join(after.notes)
    assert not before.notes


def test_a_fallen_run_stays_where_it_is(posterior, rows):
    run = PLAN.run(np.where(np.arange(END) < 40, rows, 0.01))
    update = Watch(posterior, planned_steps=2 * END).update(run)
    assert update.fallen_since is not None
    assert 38 <= update.fallen_since <= 50
    assert update.p_unstable > 0.9
    assert update.final.high < 0.2


def test_a_drop_surprises_and_noise_does_not(posterior, rows):
    watch = Watch(posterior, planned_steps=END)
    calm = watch.update(PLAN.run(rows).before(60)).surprise
    low = rows.copy()
    low[55:60] = 0.3
    drop = watch.update(PLAN.run(low).before(60)).surprise
    assert calm > 0.01
    assert drop < 0.001


def test_rewards_that_are_not_finite_are_left_out_and_counted(posterior, rows):
    holes = rows.copy()
    holes[10:20] = np.nan
    watch = Watch(posterior, planned_steps=END)
    update = watch.update(PLAN.run(holes))
    assert update.lost_rows == 0
    assert any("not finite" in note for note in update.notes)
    assert update.final.mean == pytest.approx(watch.update(PLAN.run(rows)).final.mean, abs=0.03)
    holes[-12:] = np.nan
    assert watch.update(PLAN.run(holes)).lost_rows == 12


def test_a_beginning_without_gain_is_no_error(posterior):
    assert Watch(posterior, planned_steps=END).update(PLAN.run(np.full(4, 0.2))).step == 4


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (Plan(task="chess").run([0.1, 0.2, 0.3]), "tiny-s on sort"),
        (Plan(model="huge", parameters=None).run([0.1, 0.2, 0.3]), "`parameters`"),
        (PLAN.run([1.0, 20.0, 30.0]), "bounds"),
        (PLAN.run([np.nan, np.nan, np.nan]), "finite"),
        (Plan(group_size=None).run([0.1, 0.2, 0.3]), "group size"),
    ],
)
def test_what_the_posterior_cannot_speak_of(posterior, run, says):
    with pytest.raises(InputError, match=says):
        Watch(posterior, planned_steps=END).update(run)


def test_a_run_without_names_is_taken_for_the_only_one(posterior):
    run = Plan(model=None, task=None, parameters=None).run(0.1 + 0.01 * np.arange(20))
    update = Watch(posterior, planned_steps=END).update(run)
    assert (update.task, update.model) == ("sort", "tiny-s")
    assert "taken for" in update.notes[0]
    several = made_up_posterior(draws=20)
    with pytest.raises(InputError, match=r"Give `task` and `model` .--set task=NAME"):
        Watch(several, planned_steps=END).update(run)


def test_a_larger_model_than_any_pilot_is_forecast_and_learned_from():
    # Pilots on small models, the run on a large one: what the advice is for.
    several = made_up_posterior(draws=400)
    plan = Plan(3e-4, 8, 2, steps=100, model="large", parameters=9e6)
    watch = Watch(several, planned_steps=END)
    few = watch.update(plan.run(np.linspace(0.2, 0.25, 6)))
    many = watch.update(plan.run(np.linspace(0.2, 0.6, 60)))
    assert "no pilot trained large" in few.notes[0]
    assert (few.model, few.task) == ("large", several.meta.tasks[0])
    assert many.final.high - many.final.low < few.final.high - few.final.low
    assert many.final.high > 0.55
    # A model of the pilots' own knows more from the beginning.
    known = watch.update(Plan(3e-4, 8, 2, steps=100).run(np.linspace(0.2, 0.25, 6)))
    assert known.final.high - known.final.low < few.final.high - few.final.low


def test_the_length_must_be_known(posterior, rows):
    run = PLAN.run(rows)
    bare = run.with_updates(
        hyperparameters=run.hyperparameters.model_copy(update={"planned_steps": None})
    )
    with pytest.raises(InputError, match="`planned_steps`"):
        Watch(posterior).update(bare)


@pytest.mark.parametrize(
    ("wanted", "key"),
    [
        ({"planned_steps": 0}, "steps"),
        ({"level": 1.0}, "level"),
        ({"target_reward": 2.0}, "reward"),
    ],
)
def test_impossible_requests(posterior, wanted, key):
    with pytest.raises(InputError, match=key):
        Watch(posterior, **wanted)


def test_rows_that_were_fitted_do_not_count_twice(posterior, rows):
    run = PLAN.run(rows)
    first = run.before(40)
    again = Watch(posterior, planned_steps=END, fitted=first)
    update = again.update(first)
    assert update.pareto_k == pytest.approx(0.0, abs=0.01)
    assert not update.refit_due
    later = again.update(run)
    assert later.pareto_k > update.pareto_k
    fresh = Watch(posterior, planned_steps=END).update(first)
    # The control: as if it had not been fitted, the same rows move the draws.
    assert abs(fresh.start - update.start) > 0.01


def test_a_finished_run_has_reached_its_target_or_not(posterior, rows):
    """Also one whose last rows lie at the ceiling, beyond which no interval goes."""
    run = PLAN.run(np.clip(rows + 0.2, 0.0, 1.0))
    for wanted in (0.3, 0.9, 0.999):
        update = Watch(posterior, planned_steps=run.step.size, target_reward=wanted).update(run)
        assert update.p_reach == float(update.final.mean >= wanted)
    begun = Watch(posterior, planned_steps=END).update(run.before(60))
    assert begun.final.high <= 1.0
    assert max(begun.band.high) <= 1.0
