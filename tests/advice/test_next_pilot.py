"""Which pilot to run next: one that lives, that tells enough, and that tells it cheaply."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from decisions import DEADLY, STEPS, changed, decision
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.advice import Budget, CostModel, Search, advise, pilot_choice
from advisor.advice.pilot_choice import (
    _reason,
    choose_pilot,
    decision_of,
    is_first_contact,
    shown,
    weighed_pilot,
)
from advisor.common import DEFAULT_SEED, Kind, kinds, note
from advisor.errors import CannotTellError
from advisor.forecast import pilots_of, stability

PILOT_LEVEL = 0.5


@pytest.fixture(scope="module")
def uncertain():
    return made_up_posterior(width=0.6)


def pilots(posterior, *changes, seed=DEFAULT_SEED):
    evaluate, lattice = decision(posterior, seed=seed)
    base = pilots_of(posterior, evaluate.forecaster.target)[0].settings
    return evaluate, lattice, [changed(base, **change) for change in changes]


def test_a_pilot_is_no_longer_than_the_run(uncertain):
    evaluate, lattice = decision(uncertain)
    evaluate.budget = Budget(steps=20)
    some = list(lattice)[:4]
    assert choose_pilot(evaluate, lattice, candidates=some).steps <= 20


@pytest.mark.evidence
def test_chosen_pilot_is_on_offer_and_probably_lives(uncertain):
    evaluate, lattice = decision(uncertain)
    for steps in (None, 12, 45):
        found = choose_pilot(evaluate, lattice, steps=steps)
        assert found.settings in set(lattice)
        assert found.steps in ((30, 60) if steps is None else (steps,))
        chance = stability(evaluate.forecaster, found.settings, found.steps)
        assert found.stability == chance
        assert chance.by_model >= PILOT_LEVEL
        assert found.gain >= 0
        assert found.cost == evaluate.cost(found.settings, found.steps)


@pytest.mark.parametrize(("share", "is_chosen"), [(0.4, False), (0.6, True)])
def test_a_cheap_pilot_must_bring_half_of_the_largest_gain(
    uncertain, monkeypatch, share, is_chosen
):
    evaluate, lattice, (dear, cheap) = pilots(uncertain, {"group_size": 64}, {"group_size": 8})
    gains = iter([share, 1.0])  # the cheapest of a rate comes first
    monkeypatch.setattr("advisor.advice.pilot_choice.information_gain", lambda *_: next(gains))
    found = choose_pilot(evaluate, lattice, steps=30, candidates=[dear, cheap])
    assert found.settings == (cheap if is_chosen else dear)


def test_deadly_pilot_is_not_chosen_however_much_it_tells(uncertain):
    evaluate, lattice, (deadly, safe) = pilots(
        uncertain, {"learning_rate": 1e-1, "epochs_per_refresh": 8}, {"learning_rate": 1e-4}
    )
    assert stability(evaluate.forecaster, deadly, 30).by_model < PILOT_LEVEL
    found = choose_pilot(evaluate, lattice, candidates=[deadly, safe])
    assert found.settings == safe
    with pytest.raises(CannotTellError, match="No configuration offered is likely to survive"):
        choose_pilot(evaluate, lattice, candidates=[deadly])


@pytest.mark.evidence
def test_no_pilot_is_chosen_where_nothing_survives():
    posterior = made_up_posterior(moved=DEADLY)
    evaluate, lattice = decision(posterior)
    with pytest.raises(CannotTellError, match="Offer learning rates 3 to 9 times lower") as caught:
        choose_pilot(evaluate, lattice)
    assert caught.value.exit_code == 3
    said = advise(posterior)
    assert said.kind == "infeasible"
    assert said.next_pilot is None
    assert str(caught.value) in said.assumptions


@pytest.mark.evidence
def test_pilot_that_tells_is_chosen_over_one_that_cannot_move(uncertain):
    evaluate, lattice, (idle, telling) = pilots(
        uncertain, {"learning_rate": 1e-12}, {"learning_rate": 5e-4}
    )
    for order in ([idle, telling], [telling, idle]):
        assert choose_pilot(evaluate, lattice, candidates=order).settings == telling


@pytest.mark.evidence
def test_cheaper_of_two_that_tell_alike_is_chosen():
    # Group sizes do nothing, so that the noise of a batch goes with its prompts alone.
    useless = {"rate.group_size": 0.0, "plateau_loss.batch": 0.0, "hazard.batch": 0.0}
    evaluate, lattice, (wide, narrow) = pilots(
        made_up_posterior(width=0.6, moved=useless),
        {"learning_rate": 5e-4, "group_size": 64},
        {"learning_rate": 5e-4, "group_size": 8},
        seed=0,
    )
    found = [
        choose_pilot(evaluate, lattice, steps=30, candidates=[wide, narrow], seed=seed).settings
        for seed in range(5)
    ]
    assert found.count(narrow) >= 4  # both gains are small, and simulated
    # In time the wide one is nearly free, and of equal price the one that tells more wins.
    timed, lattice = decision(
        made_up_posterior(width=0.6, moved=useless),
        cost=CostModel(fixed=10.0, generated=1e-9, source="made up"),
    )
    gains = [
        choose_pilot(timed, lattice, steps=30, candidates=[one]).gain for one in (wide, narrow)
    ]
    chosen = choose_pilot(timed, lattice, steps=30, candidates=[wide, narrow])
    assert chosen.gain >= min(gains)


def test_no_pilot_of_a_language_model_is_hotter_than_what_is_stable():
    plans = [Plan(rate, steps=30, parameters=1.5e9) for rate in (1e-6, 3e-6, 3e-5)]
    evaluate, lattice = decision(
        made_up_posterior(plans, draws=1000), budget=Budget(steps=90), learning_rates=(1e-6, 3e-6)
    )
    gentle, hot = lattice
    assert choose_pilot(evaluate, lattice, seed=0).settings == hot
    for one, level in ((gentle, evaluate(gentle).least), (hot, evaluate(hot).least)):
        found = weighed_pilot(evaluate, lattice, gentle, seed=0, level=level, is_first=False)
        assert found.settings == one


@pytest.mark.evidence
def test_chosen_pilot_tells_most_for_its_price_among_those_that_tell_enough():
    evaluate, lattice, offered = pilots(
        made_up_posterior(width=0.6, draws=1500),
        *(
            {"learning_rate": rate, "group_size": group}
            for rate in (5e-5, 4e-4)
            for group in (4, 16, 64)
        ),
        {"learning_rate": 1e-12, "group_size": 4, "epochs_per_refresh": 8},
    )
    alone = {one: choose_pilot(evaluate, lattice, steps=60, candidates=[one]) for one in offered}
    most = max(found.gain for found in alone.values())
    worth = {one: found.gain / found.cost.paid for one, found in alone.items()}
    chosen = alone[choose_pilot(evaluate, lattice, steps=60, candidates=offered).settings]
    # Simulated once more, gains differ by chance; half of the most is asked for.
    assert chosen.gain > 0.4 * most
    assert worth[chosen.settings] > 0.7 * max(
        worth[one] for one, found in alone.items() if found.gain > 0.6 * most
    )
    # The control: others tell as much for a higher price, or less.
    assert min(worth.values()) < 0.3 * worth[chosen.settings]


@pytest.mark.evidence
@pytest.mark.parametrize(
    "bounds",
    [(-1.0, 0.0), (-10.0, 30.0), (0.0, 100.0)],
)
def test_pilot_does_not_hang_on_the_units_of_the_reward(uncertain, bounds):
    shares = choose_pilot(*decision(uncertain))
    found = choose_pilot(*decision(made_up_posterior(width=0.6, bounds=bounds)))
    assert (found.settings, found.steps) == (shares.settings, shares.steps)
    # Which configurations are decided among may differ a little, for the floor is worth nothing.
    assert found.gain == pytest.approx(shares.gain, rel=0.1)


def test_large_lattice_is_not_evaluated_in_full(uncertain, monkeypatch):
    monkeypatch.setattr(pilot_choice, "MOST_EVALUATED", 60)
    evaluate, large = decision(
        uncertain, learning_rates=np.geomspace(3e-5, 3e-3, 400), group_sizes=range(2, 62, 2)
    )
    assert len(large) == 400 * 30 * 4 * 2
    found = choose_pilot(evaluate, large, steps=30)
    assert len(evaluate.tried) == 60
    assert found.settings in {*large.spread(pilot_choice.MOST_PILOTS, evaluate.cost.of_step)}
    # The control: a lattice of no more is.
    evaluate, small = decision(uncertain, learning_rates=(1e-4, 3e-4), group_sizes=(8, 16))
    choose_pilot(evaluate, small, steps=30)
    assert {one.settings for one in evaluate.tried} == {*small}


@pytest.mark.evidence
def test_same_seed_same_pilot(uncertain):
    evaluate, lattice = decision(uncertain)
    one, two = (choose_pilot(evaluate, lattice, seed=4) for _ in range(2))
    assert one == two


@pytest.mark.evidence
def test_saved_answer_is_asked_again_as_it_was(posterior):
    said = advise(posterior, completions=30_000.0)
    evaluate, lattice = decision_of(posterior, said)
    assert evaluate(said.settings).reward == pytest.approx(said.reward.mean)
    assert evaluate(said.settings).stability == said.stability
    assert set(lattice) == set(decision(posterior)[1])
    # And among what was offered.
    choices = {"learning_rates": (1e-4, 3e-4), "group_sizes": (8, 12, 64), "devices": 128}
    said = advise(posterior, **choices, weigh_pilots=False)
    restricted = decision_of(posterior, said)[1]
    assert set(restricted) == set(decision(posterior, **choices)[1])
    assert {settings.group_size for settings in restricted} == {8, 64}


def test_results_are_simulated_with_luck_of_their_own(uncertain, monkeypatch):
    # Also where both were given the same seed.
    evaluate, lattice, offered = pilots(uncertain, {"learning_rate": 1e-4})
    lucks = [*evaluate.forecaster.run_effect]

    def spied(forecaster, pilot, steps, stable, rng, **known):
        lucks.extend(forecaster.run_effect)
        lucks.append(copy.deepcopy(rng).standard_normal(lucks[0].size))
        return shown(forecaster, pilot, steps, stable, rng, **known)

    monkeypatch.setattr("advisor.advice.pilot_choice.shown", spied)
    choose_pilot(evaluate, lattice, steps=30, candidates=offered, seed=DEFAULT_SEED)
    assert len(lucks) == 7
    apart = np.corrcoef(lucks) - np.eye(len(lucks))
    assert np.abs(apart).max() < 0.2


# Reasons ---------------------------------------------------------------------------------------


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (2e-3, "Learning rate 0.001 survived 60 steps. This is 2 times as much"),
        (5e-5, "A lower learning rate than any so far"),
        (4e-4, "It lies between the pilots so far"),
    ],
)
def test_reason_says_where_the_pilot_lies(rate, words):
    mild = made_up_posterior(width=0.6, draws=500, moved={"hazard.level": -9.5})
    evaluate, lattice, offered = pilots(mild, {"learning_rate": rate, "group_size": 32})
    found = choose_pilot(evaluate, lattice, steps=40, candidates=offered)
    assert found.gain >= 0.001
    assert found.reason.startswith(words)
    assert "No pilot ran" not in found.reason
    assert (
        f"expected to raise the final reward by {100 * found.gain:.1f} % of its range."
        in found.reason
    )


def test_reason_names_what_no_pilot_ran():
    posterior = made_up_posterior(width=0.0)
    pilot = posterior.meta.runs[0].settings.model_copy(
        update={"group_size": 48, "minibatches_per_refresh": 3, "epochs_per_refresh": 1}
    )
    said = _reason(posterior, pilot, 0.02, "")
    assert " No pilot ran group size 48 or K 3. It is expected" in said


def test_pilot_that_would_change_nothing_is_said_to():
    evaluate, lattice, offered = pilots(made_up_posterior(width=0.0), {"learning_rate": 1e-12})
    found = choose_pilot(evaluate, lattice, candidates=offered)
    assert found.gain < 0.001
    assert found.reason.startswith("No pilot is expected to change the decision")


@pytest.mark.parametrize(("rate", "place"), [(9e-3, "This is no higher"), (4e-3, "This is lower")])
def test_reason_after_collapses_alone_says_whether_the_pilot_is_gentler(rate, place):
    posterior = made_up_posterior(
        [Plan(9e-3, collapse=20), Plan(2e-2, collapse=9)], width=1.0, draws=500
    )
    evaluate, lattice, offered = pilots(posterior, {"learning_rate": rate, "group_size": 32})
    found = choose_pilot(evaluate, lattice, candidates=offered)
    assert found.gain >= 0.001
    least = f"Every pilot collapsed, the gentlest at learning rate 0.009. {place}."
    assert f"{least} No pilot ran group size 32." in found.reason


# First contact ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plans",
    [
        [Plan()],
        [Plan(), Plan(steps=50), Plan(steps=40)],
    ],
    ids=["one run", "three runs of one setting"],
)
def test_few_pilots_are_answered_with_the_next_one(plans):
    posterior = made_up_posterior(plans)
    assert is_first_contact(posterior)
    found = advise(posterior)
    assert found.kind == "next_pilot"
    evaluate, lattice = decision(posterior)
    assert found.next_pilot.settings in set(lattice)
    assert found.next_pilot.steps in (30, 60)
    assert found.next_pilot.stability.probability >= PILOT_LEVEL
    longest = stability(evaluate.forecaster, found.next_pilot.settings, found.next_pilot.steps)
    assert found.next_pilot.stability == longest
    surviving = posterior.meta.largest_surviving_rate
    rate = found.next_pilot.settings.learning_rate
    if rate > 1.05 * surviving:
        assert f"Learning rate {surviving:.3g} survived" in found.next_pilot.reason
    missing = 3 - len(plans)
    assert 1 + len(found.further_pilots) == max(1, missing)
    assert found.title == ("Run these 2 pilots first" if missing == 2 else "Run this pilot first")
    assert not is_first_contact(made_up_posterior([Plan(), Plan(1e-3), Plan(1e-4)]))


def test_few_pilots_are_run_on_where_another_is_not_worth_its_price():
    posterior = made_up_posterior([Plan(), Plan(1e-3)])
    assert is_first_contact(posterior)
    found = advise(posterior)
    assert found.kind == "recommendation"
    assert found.settings.learning_rate in (3e-4, 1e-3)
    assert found.stability.least >= found.level
    assert found.limit.values["raises"] <= found.limit.values["loss"]
    # Without weighing a pilot nothing is known of its worth.
    assert advise(posterior, weigh_pilots=False).kind == "next_pilot"


@pytest.mark.evidence
def test_pilots_that_did_not_move_are_answered_with_the_next_one(uncertain):
    notes = (*uncertain.meta.notes, note(Kind.NONE_MOVED))
    still = replace(uncertain, meta=uncertain.meta.model_copy(update={"notes": notes}))
    assert advise(uncertain).kind == "recommendation"
    found = advise(still)
    assert found.kind == "next_pilot"
    assert found.next_pilot is not None
    assert Kind.NONE_MOVED in kinds(found.notes)
    # Who asks for no pilot gets what the same posterior advises otherwise.
    given = advise(still, weigh_pilots=False)
    assert given.kind == "recommendation"
    assert given.settings == advise(uncertain, weigh_pilots=False).settings


def test_bound_of_a_first_pilot_is_the_largest_rate_at_the_level(first_contact):
    rate = first_contact.limit.value
    evaluate, lattice = decision(made_up_posterior([Plan()]))
    rates = lattice.axes["learning_rate"]
    assert float(rate) in rates
    for offered in rates:
        settings = changed(first_contact.settings, learning_rate=offered)
        allowed = stability(evaluate.forecaster, settings, STEPS).least >= 0.9
        assert allowed == (offered <= float(rate))


def test_first_pilot_where_nothing_survives():
    found = advise(made_up_posterior([Plan()], moved=DEADLY))
    assert found.kind == "next_pilot"
    assert found.binding == "No learning rate tried keeps P(stable) at 90 %."
    assert found.next_pilot is None
    (why,) = [line for line in found.assumptions if "survive" in line]
    assert why.startswith("No configuration offered is likely to survive even a short pilot")


def test_first_pilot_where_only_short_ones_survive():
    posterior = made_up_posterior([Plan()], moved={"hazard.level": -1.0})
    found = advise(posterior, search=Search(seed=0))
    assert found.kind == "next_pilot"
    assert found.binding == "No learning rate tried keeps P(stable) at 90 %."
    # The gentlest on offer is a third of what was piloted; the group size, never varied, is kept.
    assert 1e-4 <= found.next_pilot.settings.learning_rate <= 1.5e-4
    assert found.next_pilot.settings.group_size == 8
    assert PILOT_LEVEL <= found.next_pilot.stability.by_model < 0.9


@pytest.mark.parametrize(
    "plans", [[Plan(9e-3, collapse=20)], [Plan(9e-3, collapse=20), Plan(2e-2, collapse=9)]]
)
def test_collapsed_pilots_send_the_next_one_down(plans):
    # A twentieth of the runs lost at every step, as these pilots would have it.
    posterior = made_up_posterior(plans, moved={"hazard.level": np.log(0.05)})
    assert posterior.meta.largest_surviving_rate is None
    found = advise(posterior)
    assert found.kind == "next_pilot"
    assert found.settings.learning_rate == 9e-3
    assert found.next_pilot.settings.learning_rate < 9e-3
    assert ("Every pilot collapsed" in found.next_pilot.reason) == (found.next_pilot.gain >= 0.001)
    assert Kind.ALL_COLLAPSED in kinds(found.notes)


@pytest.mark.evidence
def test_next_pilot_is_named_beside_an_advice_only_where_it_is_worth_it(posterior, advice):
    assert advice.next_pilot is None
    evaluate, lattice = decision(posterior)
    assert choose_pilot(evaluate, lattice).gain < 0.005
    wide = made_up_posterior(width=1.0)
    said = advise(wide, level=0.5)
    assert said.kind == "recommendation"
    assert said.next_pilot.gain >= 0.005
    assert advise(wide, level=0.5, weigh_pilots=False).next_pilot is None


@pytest.mark.evidence
def test_pilots_of_the_target_alone_set_what_is_kept(uncertain):
    evaluate, lattice = decision(uncertain)
    found = choose_pilot(evaluate, lattice)
    assert found.settings.prompts_per_step == PLANS[3].prompts
    assert np.isfinite(found.cost.completions)
