"""While pilots run: which log is whose, what is worth going on with, and what is never advised."""

from __future__ import annotations

from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest
from made_plan import KNOWN, made_plan
from simulated_runs import Plan, made_up_posterior, rising, without_line

import advisor
from advisor.advice import PLAN, PilotPlan, piloting
from advisor.advice.pilot_bench import match_logs, why_not
from advisor.advice.pilot_choice import worthwhile
from advisor.errors import InputError
from advisor.runs import PartialSettings

FEW_PROJECTS = 0.15

STEPS = 1000
LENGTH = 60
RATES = (1e-4, 3e-4, 1e-3)


def planned(rates=RATES, length=LENGTH, steps=STEPS, **changes):
    """A plan for the made-up models."""
    return made_plan(rates, length, steps, **changes)


def logged(number, plan, seen=None, folder=None, **updates):
    """Log of a pilot, by the id that a made-up posterior gives it."""
    curve = rising(plan.steps)[: seen or plan.steps]
    if plan.collapse is not None:
        curve[plan.collapse - 1 :] = 0.0
    name = f"pilot-{number}" if folder is None else folder
    return plan.run(curve, f"run{number - 1}", path=f"logs/{name}/run.jsonl", **updates)


# Which log is whose ------------------------------------------------------------------------------


def test_folder_tells_whose_log_it_is_and_then_settings():
    plan = planned()
    runs = [
        logged(1, Plan(1e-4)),
        logged(2, Plan(1.005e-3), folder="elsewhere"),
        logged(3, Plan(5e-3), folder="other"),
    ]
    found = match_logs(plan, runs)
    assert {name: run.id for name, run in found.planned.items()} == {
        "pilot-1": "run0",
        "pilot-3": "run1",
    }
    assert [run.id for run in found.others] == ["run2"]
    assert "run 'run2' was not planned; it counts as a pilot all the same" in found.said
    assert "run 'run1' is taken for pilot-3, by its settings" in found.said


@pytest.mark.parametrize(
    "other",
    [
        Plan(1.02e-4),
        Plan(1e-4, group_size=16),
        Plan(1e-4, minibatches=2),
        Plan(1e-4, model="tiny-m"),
    ],
)
def test_settings_that_differ_are_no_match(other):
    found = match_logs(planned(), [logged(1, other, folder="elsewhere")])
    assert not found.planned
    assert match_logs(planned(), [logged(1, Plan(1e-4), folder="elsewhere")]).planned


def test_what_the_log_does_not_tell_is_taken_as_planned_and_said():
    bare = logged(1, Plan(1e-4), hyperparameters=PartialSettings(), model=None, task=None)
    run = match_logs(planned(), [bare.with_updates(parameters=None)]).planned["pilot-1"]
    assert run.hyperparameters.completed() == Plan(1e-4).completed
    assert (run.model, run.parameters, run.task) == ("tiny-s", 1e5, "sort")
    said = match_logs(planned(), [bare]).said
    assert said == (
        "the log of pilot-1 does not tell learning_rate, group_size, prompts_per_step: "
        "taken as planned",
    )


def test_batches_of_rollouts_become_optimizer_steps_by_the_plan():
    plan = planned()
    stale = Plan(1e-4, minibatches=4, steps=LENGTH).completed
    pilot = plan.pilots[0].model_copy(update={"settings": stale})
    plan = plan.model_copy(update={"pilots": (pilot,)})
    bare = PartialSettings(learning_rate=1e-4)
    run = logged(1, Plan(1e-4), hyperparameters=bare, step_unit="refresh")
    found = match_logs(plan, [run]).planned["pilot-1"]
    assert found.step_unit == "optimizer"
    assert found.step[-1] == 4 * LENGTH


def test_run_that_cannot_be_fitted_is_left_out_and_said():
    lost = logged(3, Plan(1e-3), folder="other", hyperparameters=PartialSettings(group_size=8))
    found = match_logs(planned(), [logged(1, Plan(1e-4)), lost])
    assert [run.id for run in found.runs if not why_not(run)] == ["run0"]
    assert any(
        "'run2' is left out of the fit: the learning rate is not known" in s for s in found.said
    )


def test_copy_of_a_run_counts_once_and_is_said():
    twin = logged(2, Plan(3e-4)).with_updates(copy_of="run0")
    found = match_logs(planned(), [logged(1, Plan(1e-4)), twin])
    assert list(found.planned) == ["pilot-1"]
    assert found.said == ("run 'run1' repeats 'run0' and does not count",)


# What to go on with ------------------------------------------------------------------------------


@dataclass(eq=False)
class Made:
    """An action of a made-up decision."""

    name: str
    price: float = 0.01


@dataclass
class MadeWorth:
    """A decision whose gains are known; as much training is worth its price."""

    gains: dict[frozenset[str], float]
    room: float = 1.0
    asked: list = field(default_factory=list)

    def affords(self, actions):
        return sum(one.price for one in actions) <= self.room

    def __call__(self, actions):
        gain = self.gains.get(frozenset(one.name for one in actions), 0.0)
        return gain - sum(one.price for one in actions)


def names(actions):
    return {one.name for one in actions}


def test_pilots_that_tell_only_together_are_kept_together():
    a, b = Made("a"), Made("b")
    worth = MadeWorth({frozenset("ab"): 0.1})
    assert worth([a]) < worth([]) < worth([a, b])
    assert names(worthwhile(worth, [a, b], [])) == {"a", "b"}


def test_extension_is_taken_where_it_tells_and_there_is_room():
    c = Made("c", price=0.05)
    told = {frozenset("c"): 0.1}
    assert names(worthwhile(MadeWorth(told), [], [c])) == {"c"}
    assert worthwhile(MadeWorth(told, room=0.04), [], [c]) == []


def half_seen(posterior, projects=1000):
    """Words on three pilots half-way, under a posterior of them."""
    plans = [Plan(rate) for rate in RATES]
    runs = [logged(1, plans[0], 8), logged(2, plans[1], 8), logged(3, plans[2], 8)]
    plan = planned().model_copy(update={"projects": projects})
    return advisor.pilots(plan, runs, posterior=posterior)


@pytest.fixture(scope="module")
def uncertain():
    return half_seen(
        without_line(made_up_posterior([Plan(r) for r in RATES], width=1.0, draws=800))
    )


@pytest.fixture(scope="module")
def certain():
    """The negative control: only a run's own luck is left, and that of a pilot is not the run's."""
    return half_seen(made_up_posterior([Plan(r) for r in RATES], width=0.0, draws=800, moved=KNOWN))


def test_pilot_whose_result_can_change_the_decision_goes_on(uncertain):
    assert uncertain.word == "go on"
    assert "continue" in {one.word for one in uncertain.pilots}
    for one in uncertain.pilots:
        if one.word == "continue":
            assert one.gain - one.loss > 0
            assert f"{100 * one.gain:.1f} % of its range" in one.reason
    assert uncertain.advice is None
    assert uncertain.text.startswith("GO ON: continue pilot-")


def test_pilot_whose_result_cannot_change_the_decision_is_stopped(certain):
    assert certain.word == "stop"
    assert {one.word for one in certain.pilots} == {"stop"}
    assert all(one.state == "running" for one in certain.pilots)
    assert all(one.gain < 0.001 for one in certain.pilots)
    assert certain.advice is not None
    assert certain.advice.kind == "recommendation"
    assert certain.text.startswith("STOP PILOTING: no action is worth its price")


def test_the_first_pilots_end_where_the_settings_are_known_from_one_project():
    """What a posterior leaves out counts until three pilots have ended, and no longer."""
    posterior = made_up_posterior([Plan(r) for r in RATES], width=0.0, draws=800, moved=KNOWN)
    found = half_seen(posterior, projects=1)
    assert {one.word for one in found.pilots} == {"continue"}
    assert all(one.gain > FEW_PROJECTS - 1e-9 for one in found.pilots)
    runs = [logged(number, Plan(rate), LENGTH) for number, rate in enumerate(RATES, start=1)]
    assert advisor.pilots(planned(), runs, posterior=posterior).word == "stop"


# Pilots that died --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def died():
    plans = [Plan(1e-4), Plan(3e-4), Plan(1e-3, collapse=25)]
    rates = (*RATES, 3e-3)
    posterior = made_up_posterior(plans, width=0.0, draws=800, moved=KNOWN)
    runs = [logged(number, plan) for number, plan in enumerate(plans, start=1)]
    return advisor.pilots(planned(rates), runs, posterior=posterior)


def test_advice_never_names_a_setting_at_which_a_pilot_died(died):
    assert died.word == "stop"
    assert died.advice.settings.learning_rate < 0.99e-3
    assert max(died.advice.choices["learning_rate"]) < 0.99e-3
    free = advisor.advise(
        made_up_posterior([Plan(1e-4), Plan(3e-4), Plan(1e-3, collapse=25)], width=0.0),
        weigh_pilots=False,
        learning_rates=(3e-4, 1e-3),
    )
    assert 1e-3 in free.choices["learning_rate"]  # what the filter takes away was on offer


@pytest.mark.parametrize(("gain", "told"), [(0.0019, True), (0.0005, False)])
def test_a_margin_that_counts_as_none_is_said(monkeypatch, gain, told):
    worth = Mock(spent=0.06, **{"left.return_value": 792, "affords.return_value": True})
    worth.return_value = 0.5
    monkeypatch.setattr(piloting, "margin", lambda *_: (gain, 0.0012))
    action = Mock(kind="start", price=0.038)
    reason = piloting.reason_of(Mock(worth=worth, index={"run": 0}), [], {"pilot-1": action})
    assert reason.startswith("no action is worth its price")
    assert ("a margin of up to 0.1% is none" in reason) == told


# Before any log, and what cannot be --------------------------------------------------------------


def test_finished_pilots_leave_nothing_that_pilots_may_cost():
    plan = planned(share=0.18)
    plans = [Plan(rate) for rate in RATES]
    runs = [logged(number, one) for number, one in enumerate(plans, start=1)]
    posterior = without_line(made_up_posterior(plans, width=1.0, draws=800))
    found = advisor.pilots(plan, runs, posterior=posterior)
    assert found.word == "stop"
    assert {one.word for one in found.pilots} == {"done"}
    assert all("beyond the 18% of the run's price" in one.reason for one in found.pilots)
    # The control: with room, something is worth doing.
    more = advisor.pilots(planned(share=0.9), runs, posterior=posterior)
    assert more.word == "go on"
    assert "extend" in {one.word for one in more.pilots}


def test_pilots_that_cost_more_than_the_run_are_refused(monkeypatch):
    with pytest.raises(InputError, match=r"have cost 120% of the full run of 50 steps") as error:
        advisor.pilots(planned(steps=50), [logged(1, Plan(1e-4))])
    assert error.value.argument == "runs"
    # Before the fit, which takes a minute, as the command makes it.
    monkeypatch.setattr(piloting, "fit", None)
    with pytest.raises(InputError, match="have cost 120%"):
        piloting.fit_pilots(planned(steps=50), [logged(1, Plan(1e-4))])


def test_preset_that_is_not_shipped_must_be_given_again():
    with pytest.raises(InputError, match="made under preset 'mine'") as error:
        advisor.pilots(planned(priors="mine"), [logged(1, Plan(1e-4))])
    assert error.value.argument == "priors"


def test_plan_is_loaded_as_it_was_saved(tmp_path):
    plan = planned()
    (tmp_path / PLAN).write_text(plan.model_dump_json())
    assert PilotPlan.load(tmp_path) == plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no plan"),
        ("{", "cannot be read"),
        ('{"kind": "pilots"}', r"at 'pilots'\): another version"),
    ],
)
def test_plan_that_cannot_be_read_is_refused_in_a_sentence(tmp_path, text, said):
    if text is not None:
        (tmp_path / PLAN).write_text(text)
    with pytest.raises(InputError, match=said) as error:
        PilotPlan.load(tmp_path)
    assert error.value.argument == "plan"
    older = planned().model_dump(mode="json")
    older["of_a_later_version"] = 1
    import json

    (tmp_path / PLAN).write_text(json.dumps(older))
    with pytest.raises(InputError, match="of_a_later_version"):
        PilotPlan.load(tmp_path)
