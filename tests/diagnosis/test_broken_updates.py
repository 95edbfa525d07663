"""Runs whose updates hold no finite number, or move nothing, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import make, noise, rising

from advisor.diagnosis import JUDGES, diagnose
from advisor.errors import InputError
from advisor.model import cohort_of

dynamical_instability = JUDGES["dynamical_instability"]

ROWS = 200
STEPS = np.arange(1.0, ROWS + 1)
SERIES = ["gradient_norm", "kl", "loss", "entropy", "policy_kl", "mismatch_kl", "clip_share"]


def broken(name, lost, reward=None, **given):
    """Run with a series that is not finite at some steps."""
    values = np.where(np.isin(STEPS, lost), np.nan, 0.2 + 0.01 * noise(3, ROWS))
    reward = rising(ROWS) + 0.02 * noise(1, ROWS) if reward is None else reward
    run = make(reward, **{name: values}, **given)
    return run.model_copy(update={"not_finite": {name: np.asarray(lost, dtype=float)}})


@pytest.mark.parametrize("name", SERIES)
def test_a_series_that_stops_being_finite_is_named(name):
    scattered = STEPS[[20, 60, 61, 90, 120, 121, 122, 140, 161, 162]]
    for lost, first, kind in (
        (STEPS[150:], 151, "not_finite"),
        (STEPS[-2:], 199, "not_finite"),
        (STEPS[60:63], 61, "was_not_finite"),
        (scattered, 21, "was_not_finite"),
    ):
        card = dynamical_instability(broken(name, lost))
        assert (card.status, card.kind) == ("WARNING", kind)  # the reward holds
        assert card.steps == (first, lost[-1])
        assert name.replace("_", " ") in card.headline.lower()
        assert f"{lost.size} of {ROWS} rows from step {first} on" in card.headline
        assert (f"before step {first}" in card.change) == (kind == "not_finite")
    fallen = np.where(STEPS < 151, 0.6, 0.02) + 0.02 * noise(1, ROWS)
    card = dynamical_instability(broken(name, STEPS[150:], fallen))
    assert card.status == "FAIL"
    found = diagnose(broken(name, STEPS[150:], fallen))
    assert "a consequence" not in " ".join(found.card("dynamical_instability").witnesses)
    assert "the learning rate need not be the cause" in found.card("collapse").change


@pytest.mark.parametrize("lost", [STEPS[:0], STEPS[180:]])  # none, and long after the fall
def test_a_fall_that_begins_with_finite_numbers_is_answered_by_the_rate(lost):
    fallen = np.where(STEPS < 151, 0.6, 0.02) + 0.02 * noise(1, ROWS)
    change = diagnose(broken("loss", lost, fallen)).card("collapse").change
    assert "a third of the" in change


def test_a_kl_without_weight_is_no_reason_to_stop():
    card = dynamical_instability(broken("kl", STEPS[150:], kl_coefficient=0.0))
    assert (card.status, card.kind, card.change) == ("INFO", "not_finite_for_free", "")


def test_lone_rows_first_rows_and_rhythms_are_normal():
    for lost in (
        STEPS[77:78],
        STEPS[-1:],
        STEPS[[20, 90, 150]],
        STEPS[:5],  # mixed precision looks for its scale
        STEPS[STEPS % 10 != 0],  # logged every tenth step, NaN elsewhere
        STEPS[STEPS % 4 != 1],
    ):
        assert dynamical_instability(broken("gradient_norm", lost)).status == "PASS"


def test_rewards_that_stop_fail():
    reward = np.where(STEPS > 120, np.nan, rising(ROWS) + 0.02 * noise(1, ROWS))
    run = make(reward).model_copy(update={"not_finite": {"reward": STEPS[120:]}})
    assert dynamical_instability(run).status == "FAIL"


@pytest.mark.parametrize("rows", [20, 120])
@pytest.mark.parametrize("known", ["reward_std_within_group", "silent_group_share", ""])
def test_a_gradient_of_exactly_0_moves_no_weight(rows, known):
    reward = 0.4 + 0.03 * noise(1, rows)
    given = {known: np.full(rows, 0.44)} if known == "reward_std_within_group" else {}
    given = {known: np.full(rows, 0.1)} if known == "silent_group_share" else given
    frozen = make(reward, gradient_norm=np.zeros(rows), kl=np.zeros(rows), **given)
    card = dynamical_instability(frozen)
    assert card.status == "FAIL"
    assert f"exactly 0 in {rows} rows from step 1 on" in card.headline
    assert "No learning rate helps" in card.change
    found = diagnose(frozen)
    assert not any("threefold" in one.change for one in found.cards)
    still = frozen.model_copy(update={"series": {**frozen.series, "gradient_norm": 0.1 + reward}})
    moving = " ".join(one.change for one in diagnose(still).cards)
    assert ("threefold" in moving) == (rows >= 20)  # the control
    alive = make(reward, gradient_norm=0.1 + np.abs(noise(2, rows)), **given)
    assert dynamical_instability(alive).status == "PASS"


def test_zeros_that_silent_groups_explain_are_no_frozen_weights():
    rng = np.random.default_rng(5)
    silent = np.where(rng.random(ROWS) < 0.9, 1.0, 0.0)
    gradient = np.where(silent == 1, 0.0, 0.2)
    reward = 0.97 + 0.02 * noise(1, ROWS)
    assert make(reward, gradient_norm=gradient, silent_group_share=silent).frozen_since is None
    every = {"gradient_norm": np.zeros(ROWS)}
    assert make(reward, silent_group_share=np.ones(ROWS), **every).frozen_since is None
    assert make(np.zeros(ROWS), **every).frozen_since is None
    # Printed with too few digits, while the policy moves.
    assert make(rising(ROWS) + 0.02 * noise(1, ROWS), **every).frozen_since is None
    kl = np.linspace(0, 0.05, ROWS)
    assert make(0.4 + 0.02 * noise(1, ROWS), kl=kl, **every).frozen_since is None


SETTINGS = {
    "learning_rate": 1e-6,
    "group_size": 8,
    "prompts_per_step": 8,
    "minibatches_per_refresh": 1,
    "epochs_per_refresh": 1,
}


def test_a_frozen_pilot_informs_no_fit():
    rows = 60
    spread = np.full(rows, 0.4)
    still = make(0.4 + 0.02 * noise(1, rows), gradient_norm=np.zeros(rows), **SETTINGS)
    moving = make(rising(rows) + 0.02 * noise(2, rows), gradient_norm=spread, **SETTINGS)
    still, moving = (
        run.model_copy(update={"id": name, "parameters": 1e9, "model": "m", "task": "t"})
        for run, name in ((still, "still"), (moving, "moving"))
    )
    cohort = cohort_of([still, moving])
    assert [run.id for run in cohort.runs] == ["moving"]
    assert any("still" in note and "weights do not move" in note for note in map(str, cohort.notes))
    with pytest.raises(InputError, match="the weights do not move"):
        cohort_of([still])


@pytest.mark.parametrize(
    ("rate", "asked", "kind"),
    [
        (np.where(STEPS < 60, 1e-6, 0.0), 1e-6, "no_rate"),
        (np.minimum(STEPS / 20_000, 1) * 1e-6, 1e-6, "warm_up"),
        (1e-6 * (1 - (STEPS - 1) / (ROWS - 1)), 1e-6, "calm"),  # ends at 0, as schedules do
        (np.minimum(STEPS / 20, 1) * 1e-6, 1e-6, "calm"),
        (np.where(STEPS < 60, 1e-3, 0.0), 1e-3, "calm"),  # printed with three decimals
    ],
)
def test_a_rate_that_moves_no_weights_is_named(rate, asked, kind):
    run = make(rising(ROWS) + 0.02 * noise(1, ROWS), entropy=0.2 + 0 * STEPS, learning_rate=asked)
    series = {**run.series, "learning_rate": rate}
    card = dynamical_instability(run.model_copy(update={"series": series}))
    assert (card.kind, card.status) == (kind, "PASS" if kind == "calm" else "WARNING")
    if kind == "no_rate":
        assert "0 in 141 of 200 rows, the first at step 60" in card.headline


def test_one_remedy_at_a_time():
    """A loss without a finite number on a run that stands still; control: one that rises."""
    still, rises = 0.03 + 0.01 * noise(1, ROWS), rising(ROWS) + 0.02 * noise(1, ROWS)
    lost = {"loss": STEPS.copy()}
    found = diagnose(make(still).model_copy(update={"not_finite": lost}))
    assert found.card("dynamical_instability").kind == "never_moved"
    assert found.card("too_short").change.startswith("Correct what is listed above first")
    assert not any("threefold" in card.change for card in found.cards)
    rises = diagnose(make(rises).model_copy(update={"not_finite": lost}))
    assert (rises.card("dynamical_instability").kind, rises.verdict) == ("never_finite", "INFO")
    assert "threefold" in diagnose(make(still)).card("too_short").change
