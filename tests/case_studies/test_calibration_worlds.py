"""Calibration of the shipped fit: its worlds, its controls, and the lines that it keeps."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "case_studies" / "calibration"
sys.path.insert(0, str(FOLDER))

import misspecified  # noqa: E402
import predicted  # noqa: E402
import simulation_lines as lines  # noqa: E402
import worlds  # noqa: E402
from simulated_runs import Plan, Truth  # noqa: E402

from advisor.model import POPULATION, load_priors  # noqa: E402

PRIORS = load_priors("small_models")

# Lines that are kept -----------------------------------------------------------------------------


def made(study: str, number: int) -> dict[str, Any]:
    """A simulation that takes no time."""
    return {"number": number, "study": study, "value": number / 3}


def test_only_what_is_missing_is_simulated(tmp_path: Path) -> None:
    path, header = tmp_path / "folder" / "own.jsonl", lines.made_under("own", "small_models")
    lines.run_missing(path, header, made, range(2))
    first = path.read_text()
    lines.run_missing(path, header, made, range(4))
    assert path.read_text().startswith(first)
    assert [one["number"] for one in lines.read_records(path)] == [0, 1, 2, 3]
    assert lines.read_records(path)[1]["value"] == 0.333333


@pytest.mark.parametrize("name", ["formulas", "numbers"])
def test_lines_of_another_model_or_preset_are_refused(tmp_path: Path, name: str) -> None:
    header = lines.made_under("own", "small_models")
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps(header) + "\n")
    lines.refuse_stale(path)
    for stale in (
        header | {name: "of another day"},
        {k: v for k, v in header.items() if k != name},
    ):
        path.write_text(json.dumps(stale) + "\n")
        with pytest.raises(SystemExit, match="delete the file"):
            lines.run_missing(path, header, made, range(1))


def test_numbers_of_a_preset_are_its_numbers_not_its_words() -> None:
    prior = PRIORS.hazard_level
    reworded = prior.model_copy(update={"source": "the same, in other words"})
    moved = prior.model_copy(update={"mean": prior.mean + 0.1})
    now = lines.numbers_of(PRIORS)
    assert lines.numbers_of(PRIORS.model_copy(update={"hazard_level": reworded})) == now
    assert lines.numbers_of(PRIORS.model_copy(update={"hazard_level": moved})) != now
    assert lines.numbers_of("theory") != now == lines.numbers_of("small_models")


# What is predicted -------------------------------------------------------------------------------


def record(number: int, places: dict[str, float]) -> dict[str, Any]:
    """A simulation with the truth at such places."""
    rng = np.random.default_rng(number)
    one = {"off": 0.1, "width": 0.4, "halved": places["halved"], "place": places["place"]}
    lived = bool(rng.random() < places["stable"])
    stable = {"predicted": places["stable"], "true": places["stable"], "came": lived}
    own = {"number": number, "fitted": True, "swapped": False, "collapsed": 0}
    own |= {"ends": {"new run": {"forecast": one}}, "stable": {"new run": {"forecast": stable}}}
    return own | {"levels": {name: {"place": 0.5, "left": 0.2} for name in predicted.BY_LEVEL}}


def test_places_are_uniform_where_draws_are_right_and_ties_are_split() -> None:
    rng = np.random.default_rng(0)
    found = [
        predicted.place(rng.standard_normal(50), rng.standard_normal(), rng) for _ in range(2000)
    ]
    told = predicted.covered(found)
    assert all(
        abs(mean - float(name)) < 4 * error for name, (mean, error) in told["covers"].items()
    )
    assert told["chance"] > 0.01
    tied = [predicted.place(np.zeros(50), 0.0, rng) for _ in range(2000)]
    assert np.quantile(tied, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.05)
    narrow = [
        predicted.place(0.5 * rng.standard_normal(50), rng.standard_normal(), rng) for _ in found
    ]
    assert predicted.covered(narrow)["chance"] < 1e-4


def test_a_summary_passes_by_uniform_places_and_its_controls_fail() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((200, 2))
    halved = np.clip(0.5 + 2 * (values[:, 0] - 0.5), 0, 1)
    told = predicted.summary(
        [
            record(i, {"place": one, "halved": half, "stable": round(0.2 + 0.6 * share)})
            for i, (one, share, half) in enumerate(zip(*values.T, halved, strict=True))
        ]
    )
    assert told["passes"]
    assert not told["control_passes"]
    assert told["ends"]["new run, forecast"]["bias"] == pytest.approx([0.1, 0.0])
    scores = told["stable"]["new run, forecast"]
    # The simulation's own P(stable) is right each time, that of another is not.
    assert scores["brier"][0] == 0 < scores["base_rate"][0] < scores["control"][0]


@pytest.mark.evidence
def test_a_truth_that_is_known_is_predicted_as_the_laws_have_it() -> None:
    rng = np.random.default_rng(2)
    plans, _ = predicted.drawn_plans(predicted.DESIGNS["lora"], rng)
    priors = load_priors("lora")
    cohort = predicted.cohort_of(
        [predicted._log(i, one, predicted._rising(i)) for i, one in enumerate(plans)]
    )
    raw = predicted.draw_prior(cohort, priors, predicted.SPECTRUM, rng)
    world = predicted._undying(predicted.world_of(raw, cohort, plans, priors))
    true = predicted.of_the_truth(cohort, priors, raw)
    settings = plans[0].settings.completed()
    quiet = predicted.replace(world, population=world.population | {"log_misfit": -20.0})
    expected = predicted.Forecaster.of_pilot(true, 0).logged_level(settings, np.arange(1, 101))

    def missed(offset: float) -> float:
        luck = np.repeat(raw["run_offset"][0, :, :1] + offset, 60, axis=1)
        found = quiet.train(settings, "m", plans[0].parameters, 60, 100, rng, luck=luck).reward
        return float(np.abs(found.mean(axis=0) - expected[0]).max())

    assert np.ptp(expected[0]) > 0.1
    assert missed(0.0) < 0.06 < missed(-2.0)


# Worlds ------------------------------------------------------------------------------------------


def plan(rate: float, **more: Any) -> worlds.Plan:
    return misspecified._plan("well specified", 0, 0)._replace(
        settings=Plan(rate, 16, optimizer="adamw", **more).settings
    )


def world_of(kind: str, seed: int = 5, **updates: Any) -> worlds.World:
    """World of pilots at three rates, without the luck of runs and without wander."""
    plans = [plan(rate) for rate in (1e-4, 3e-4, 1e-3)]
    drawn = worlds.draw_world(kind, plans, PRIORS, np.random.default_rng(seed))
    quiet = {"log_misfit": -20.0, "within_log_odds": 8.0, "hazard.level": -600.0}
    quiet |= {name: -20.0 for name in POPULATION if name.startswith("log_run_")}
    quiet["plateau_loss.level"] = -30.0
    offsets = {"headroom": {"s": 0.0}, "stiffness": {"s": 0.0}}
    given = {"population": drawn.population | quiet, **offsets, **updates}
    return worlds.World(**{**drawn.__dict__, **given})


def trained(world: worlds.World, rate: float, steps: int = 180, runs: int = 40, **more: Any) -> Any:
    settings = plan(rate, **more).settings.completed()
    settings = settings.model_copy(update={"planned_steps": steps})
    rng = np.random.default_rng(0)
    return world.train(settings, "s", 1e5, runs, steps, rng)


def test_the_well_specified_world_has_the_curve_of_the_model() -> None:
    world = world_of("well specified")
    truth = Truth(
        world.reference,
        world.population,
        world.level["headroom_logit"],
        world.level["log_slope"],
        world.level["log_onset"],
        {"s": world.start["s"]},
    )
    expected = truth.reward(Plan(3e-4, 16, model="s", optimizer="adamw", steps=180), np.arange(180))
    found = trained(world, 3e-4).reward.mean(axis=0)
    assert np.ptp(expected) > 0.2
    assert np.abs(found - expected).max() < 0.05
    other = world_of("sparse logistic")
    assert np.abs(trained(other, 3e-4).reward.mean(axis=0) - expected).max() > 0.1


def test_rows_score_the_policy_of_the_latest_refresh_and_epochs_score_it_again() -> None:
    reward = trained(world_of("well specified"), 1e-3, minibatches=2, epochs=2).reward
    assert np.array_equal(reward[:, 0], reward[:, 2])
    assert np.array_equal(reward[:, 1], reward[:, 3])
    assert not np.array_equal(reward[:, 0], reward[:, 1])
    assert not np.array_equal(reward[:, 0], reward[:, 4])


def test_a_late_collapse_spares_the_pilots_and_mild_rates() -> None:
    world = world_of("late collapse")
    settings = plan(1e-3).settings.completed()
    pilots = world.train(
        settings, "s", 1e5, 40, 60, np.random.default_rng(0), is_pilot=True
    ).held_out
    assert pilots[:, -1].min() > 0.1
    late = trained(world, 1e-3).held_out
    assert np.all(late[:, -1] < 0.01)
    assert np.all(late[:, 60 - 10] > 0.1)
    assert trained(world, 1e-4).held_out[:, -1].min() > 0.1


def test_the_kl_limit_depends_on_its_coefficient() -> None:
    world = world_of("kl limit", tilt=1.5)

    def gained(coefficient: float) -> float:
        settings = plan(3e-3).settings.completed()
        settings = settings.model_copy(update={"kl_coefficient": coefficient})
        end = world.train(settings, "s", 1e5, 1, 3000, np.random.default_rng(0)).held_out[0, -1]
        return float(np.log(end / (1 - end)) - world.start["s"])

    assert gained(0.02) == pytest.approx(1.5, abs=0.02)
    assert gained(0.04) == pytest.approx(0.75, abs=0.02)


def test_sparse_rewards_crawl_before_they_rise() -> None:
    world = world_of("sparse logistic", sparse=0.01, top=0.9)
    level = trained(world, 1e-3, 4000, 1).held_out[0]
    assert level[0] == pytest.approx(0.009)
    assert level[-1] == pytest.approx(0.9, abs=0.01)
    # Steepest in the middle: an exponential is steepest at its start.
    assert np.argmax(np.diff(level)) == pytest.approx(np.searchsorted(level, 0.45), abs=2)


def test_what_is_meant_falls_while_the_hacked_reward_rises() -> None:
    world = world_of("hacking")
    found = trained(world, 1e-3, 240)
    shown, meant = found.reward.mean(axis=0), found.held_out.mean(axis=0)
    turn = int(np.argmax(meant))
    assert 5 < turn < 60
    assert meant[-1] < 0.6 * meant[turn]
    assert shown[-10:].mean() > shown[turn] + 0.05


def test_a_row_of_the_table_counts_worlds() -> None:
    advised = {"said": 0.95, "true": 0.5, "reward_said": 0.5, "reward_true": 0.6, "width": 0.2}
    advised |= {"holds": 0.75, "holds_of_all": 0.4}
    own = {"fitted": True, "collapsed": 0, "checked": 5, "misfits": [], "loose": False}
    own |= {"kind": "recommendation", "alarms": [], "hot": {"said": 0.9, "true": 0.2}}
    dead = advised | {"true": 0.0, "reward_true": None, "holds": None, "holds_of_all": 0.0}
    told = misspecified.summary(
        [
            own | {"advised": advised},
            own | {"advised": dead, "misfits": ["run1"]},
            {"fitted": False, "why": "not converged"},
        ]
    )
    assert (told["worlds"], told["fitted"], told["refused"], told["advised"]) == (3, 2, 1, 2)
    assert told["holds_80"][0] == 0.75
    assert told["holds_80_of_all"][0] == pytest.approx(0.2)
    assert told["lives_true_less_said"][0] == pytest.approx(-0.7)
    assert (told["runs_named"], told["dies_more_than_said"], told["of_these_warned"]) == (1, 2, 1)


# What is committed -------------------------------------------------------------------------------


@pytest.mark.parametrize("study", [predicted, misspecified])
def test_the_page_has_the_table_of_the_result(study: Any) -> None:
    told = json.loads((FOLDER / f"{study.__name__}.json").read_text())
    told.pop("manifest", None)
    page = (FOLDER / "README.md").read_text().splitlines()
    assert told
    for row in study.rows(told):
        assert row in page


@pytest.mark.evidence
def test_the_results_are_those_of_the_simulations_beside_them() -> None:
    told = json.loads((FOLDER / "misspecified.json").read_text())
    folder = FOLDER / "simulations" / "misspecified"
    assert list(told) == list(misspecified.WORLDS)
    for world, row in told.items():
        again = misspecified.summary(lines.read_records(folder / misspecified.file_name(world)))
        assert json.loads(json.dumps(again)) == row
    told = json.loads((FOLDER / "predicted.json").read_text())
    assert told.pop("manifest")["seeds"] == max(one["simulations"] for one in told.values())
    for preset, row in told.items():
        path = FOLDER / "simulations" / "predicted" / f"{preset}.jsonl"
        assert json.loads(json.dumps(predicted.summary(lines.read_records(path)))) == row


def test_halved_intervals_of_a_preset_fail() -> None:
    told = json.loads((FOLDER / "predicted.json").read_text())
    assert {"full_finetuning", "lora", "manifest"} <= told.keys()
    del told["manifest"]
    assert not any(row["control_passes"] for row in told.values())


def test_few_pilots_of_the_model_are_named_and_many_of_hacking() -> None:
    told = json.loads((FOLDER / "misspecified.json").read_text())
    right, hacked = told["well specified"], told["hacking"]
    assert right["runs_named"] <= 0.05 * right["runs_checked"]
    assert hacked["curve_does_not_fit"] > 0.4 * hacked["fitted"] > right["curve_does_not_fit"]
