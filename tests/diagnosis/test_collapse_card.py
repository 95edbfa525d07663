"""The collapse card: FAIL, WARNING, PASS, and what it says beside them."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import COLOURS, MOST_FALSE, falling, make, noise, rate, rising

from advisor.diagnosis import JUDGES, diagnose, has_collapsed

collapse = JUDGES["collapse"]


def test_a_collapse_fails_with_its_levels_and_step():
    card = collapse(make(falling(60, 30) + 0.02 * noise(1, 60)))
    assert card.status == "FAIL"
    assert card.steps[0] == pytest.approx(31, abs=2)
    assert card.steps[1] == 60
    assert card.number == pytest.approx(0.94, abs=0.03)
    assert card.interval[0] < card.number < card.interval[1] < 1.1
    assert "from 0.8" in card.headline
    assert "learning rate" in card.change


def test_a_checkpoint_is_named_as_trainers_count_that_count_batches():
    run = make(falling(60, 30) + 0.02 * noise(1, 60))
    assert "batch of rollouts" not in collapse(run).change
    known = run.hyperparameters.model_copy(
        update={"minibatches_per_refresh": 2, "epochs_per_refresh": 2}
    )
    slow = run.with_updates(hyperparameters=known, step=4.0 * run.step)
    assert (
        f"before step {collapse(slow).steps[0]:.0f} (batch of rollouts 3" in collapse(slow).change
    )


@pytest.mark.parametrize("rows", [16, 24, 40])
@pytest.mark.parametrize("shape", ["straight", "saturating"])
def test_a_short_run_that_rises_and_dies_fails(rows, shape):
    place = np.arange(rows) / (0.5 * rows)
    risen = 0.3 + 0.35 * (place if shape == "straight" else 1 - np.exp(-3 * place))
    alive = risen + 0.02 * noise(2, rows)
    died = np.where(place < 1, alive, 0.03 + 0.01 * noise(3, rows))
    assert collapse(make(alive)).status == "PASS"
    assert (collapse(make(died)).status, has_collapsed(make(died))) == ("FAIL", True)
    # Not where rows as low were met before.
    before = np.where(np.arange(rows) % 4 == 1, 0.03, alive)
    mixed = collapse(make(np.where(place < 1, before, 0.12 + 0.01 * noise(3, rows))))
    assert mixed.status != "FAIL" or rows == 40


def test_healthy_and_short_runs():
    card = collapse(make(rising(60)))
    assert (card.status, card.number, card.steps) == ("PASS", None, (1, 60))
    assert collapse(make(rising(9))).status == "NOT APPLICABLE"
    assert collapse(make(np.full(60, np.nan))).status == "NOT APPLICABLE"


def test_the_card_fails_a_run_that_a_fit_counts_as_collapsed():
    rewards = [0.19, 0.16, 0.44, 0.38, 0.34, 0.69, *[0.0] * 5, 0.09, 0.25, *[0.0] * 11]
    run = make(np.array(rewards))
    card = collapse(run)
    assert has_collapsed(run)
    assert (card.status, card.steps) == ("FAIL", (7, 24))
    assert "From step 7 on" in card.headline
    # Below 0 the floor is the lowest reward that was logged.
    assert collapse(make(np.array(rewards) - 0.5)).status != "FAIL"


def test_a_fall_that_noise_might_have_done_is_a_warning():
    cards = [collapse(make(np.maximum(0, 0.3 + 0.2 * noise(s, 40, 0.6)))) for s in range(60)]
    warned = [card for card in cards if card.status == "WARNING"]
    assert warned
    assert all("standard errors" in card.headline for card in warned)


@pytest.mark.parametrize("colour", COLOURS)
def test_noise_and_a_slow_rise_do_not_fail(colour):
    def fails(seed):
        mean = rising(60, 0.3, 0.5, 0.6) if seed % 2 else 0.3
        return has_collapsed(make(np.maximum(0, mean + 0.1 * noise(seed, 60, COLOURS[colour]))))

    assert rate(fails) <= MOST_FALSE


@pytest.mark.parametrize("rows", [60, 200, 500])
@pytest.mark.parametrize("shape", ["peak", "plateau", "from the start"])
def test_a_peak_and_a_slow_fall_is_a_warning(rows, shape):
    t = np.linspace(0, 1, rows)
    reward = {
        "peak": np.interp(t, [0, 0.25, 1], [0.4, 0.6, 0.41]),
        "plateau": np.interp(t, [0, 0.3, 0.6, 1], [0.3, 0.6, 0.6, 0.41]),
        "from the start": np.interp(t, [0, 0.1, 1], [0.46, 0.46, 0.33]),
    }[shape]
    cards = [collapse(make(reward + 0.02 * noise(seed, rows, 0.2))) for seed in range(10)]
    assert sum(card.status == "WARNING" for card in cards) >= 8
    card = next(card for card in cards if card.status == "WARNING")
    assert "The reward was highest around step" in card.headline
    assert "Take the checkpoint of step" in card.change
    if shape == "peak":
        assert card.steps[0] == pytest.approx(0.25 * rows, abs=0.15 * rows)


def test_what_keeps_half_of_its_gain_has_not_fallen():
    """Nor has noise or a plateau; a dip that leaves most of the gain is named, and no warning."""
    t = np.linspace(0, 1, 200)
    kept = np.interp(t, [0, 0.4, 1], [0.2, 0.6, 0.5])
    for level in (kept, rising(200), np.full(200, 0.5)):
        cards = [collapse(make(level + 0.03 * noise(seed, 200, 0.3))) for seed in range(100)]
        assert not any(card.status == "WARNING" for card in cards)
        named = sum("highest around" in card.headline for card in cards)
        assert named >= 90 if level is kept else named <= 2


def test_dead_within_ten_steps():
    alive, dead = [0.0, 0.19, 0.69], [0.0] * 9
    assert has_collapsed(make(alive + dead))
    assert collapse(make(alive + dead)).status == "FAIL"
    assert not has_collapsed(make(alive + dead[:2]))
    early = [0.3, 0.4, 0.03, 0.0, 0.0, 0.0]
    assert has_collapsed(make(early, prompts_per_step=32))
    # Of one prompt in each row all may have failed by chance.
    assert not has_collapsed(make(early))
    assert not has_collapsed(make([0.1, 0.0, 0.05, 0.0, 0.0, 0.0], prompts_per_step=32))


def test_a_remedy_fits_what_differs():
    fallen = falling(60, 30) + 0.02 * noise(1, 60)
    living = rising(60) + 0.02 * noise(2, 60)
    own = {"learning_rate": 1e-5, "group_size": 8}

    def run(name, reward, **given):
        found = make(reward, **own | given)
        return found.model_copy(update={"id": name, "model": "m", "task": "t"})

    def change(*siblings):
        return diagnose(bad, siblings=[bad, *siblings]).card("collapse").change

    bad = run("bad", fallen, kl_coefficient=0.0)
    assert "a third of the" in change()
    with_kl = run("kl", living, kl_coefficient=0.04)
    assert "'kl' lives" in change(with_kl)
    assert "kl coefficient 0.04 in place of 0" in change(with_kl)
    assert "another seed: 'twin'" in change(with_kl, run("twin", living, kl_coefficient=0.0))
    # Where only gentler runs live, or one of another task, it is the rate.
    gentle = run("gentle", living, kl_coefficient=0.04, learning_rate=1e-6)
    other = with_kl.model_copy(update={"task": "other"})
    assert "a third of the" in change(gentle, other, run("short", living[:20], kl_coefficient=0.04))


def test_a_short_rise_and_a_slow_fall_are_named_and_no_gain_is_not_claimed_of_them():
    """A fit of one fall sees the rise; a run that lost its gain has learned something."""
    up, down = np.linspace(0.2, 0.85, 24), np.linspace(0.85, 0.67, 18)
    card = collapse(make(np.concatenate([up, down]) + 0.018 * noise(3, 42)))
    assert (card.status, card.kind) == ("INFO", "below_best")
    still = collapse(make(np.concatenate([up, np.full(18, 0.85)]) + 0.018 * noise(3, 42)))
    assert still.status == "PASS"


def test_a_run_that_lost_what_it_had_gained_did_learn():
    rise = np.concatenate([np.linspace(0.4, 0.6, 30), np.linspace(0.6, 0.4, 30)])
    lost, flat = (make(values + 0.03 * noise(2, 60)) for values in (rise, np.full(60, 0.4)))
    assert collapse(lost).kind == "declined"
    too_short = JUDGES["too_short"]
    assert too_short(lost).title != "Nothing learned"
    assert too_short(flat).title == "Nothing learned"
