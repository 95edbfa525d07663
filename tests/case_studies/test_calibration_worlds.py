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


# What is predicted -------------------------------------------------------------------------------


def record(number: int, places: dict[str, float]) -> dict[str, Any]:
    """A simulation with the truth at such places."""
    rng = np.random.default_rng(number)
    one = {"off": 0.1, "halved": places["halved"], "place": places["place"]}
    lived = bool(rng.random() < places["stable"])
    stable = {"predicted": places["stable"], "came": lived}
    own = {"number": number, "fitted": True}
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
