"""The calibration studies: do their own instruments measure what they claim?"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from cohorts import data_of, likelihood
from processes import python
from scipy.stats import binom

FOLDER = Path(__file__).parents[2] / "case_studies" / "calibration"
sys.path.insert(0, str(FOLDER))

import one_simulation  # noqa: E402
import rank_study  # noqa: E402
import ranks  # noqa: E402
import simulation  # noqa: E402

from advisor.model import FAMILIES, load_priors  # noqa: E402

SIMULATIONS, DRAWS, REPEATS = 100, 99, 500


@pytest.fixture(scope="module")
def band():
    return ranks.uniform_band(SIMULATIONS, DRAWS)


def uniform_ranks(seed):
    return np.random.default_rng(seed).integers(0, DRAWS + 1, (REPEATS, SIMULATIONS))


# Ranks -------------------------------------------------------------------------------------------


def test_counts_and_difference_by_hand():
    own = np.array([0, 0, 2, 3])
    assert ranks.counts_up_to(own, 3).tolist() == [2, 2, 3]
    assert ranks.difference(own, 3) == pytest.approx([0.5 - 0.25, 0.5 - 0.5, 0.75 - 0.75])
    assert ranks.counts_up_to(np.stack([own, own]), 3).tolist() == [[2, 2, 3]] * 2


@pytest.mark.evidence
def test_uniform_ranks_pass_nineteen_times_in_twenty(band):
    chances = [band.chance(own) for own in uniform_ranks(1)]
    for level in (0.05, 0.3):
        rejected = int(np.sum(np.array(chances) < level))
        low, high = binom.ppf([0.001, 0.999], REPEATS, level)
        assert low <= rejected <= high


@pytest.mark.evidence
@pytest.mark.parametrize("wrong", ["shifted", "too narrow", "too wide"])
def test_ranks_of_a_wrong_posterior_fail(band, wrong):
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((40, SIMULATIONS, 1))
    noise = rng.standard_normal((40, SIMULATIONS, DRAWS))
    draws = {"shifted": noise + 0.5, "too narrow": 0.6 * noise, "too wide": 1.7 * noise}[wrong]
    chances = [
        band.chance((cohort < at).sum(axis=1)) for cohort, at in zip(draws, truth, strict=True)
    ]
    assert np.mean(np.array(chances) < 0.05) > 0.9
    right = [
        band.chance((cohort < at).sum(axis=1)) for cohort, at in zip(noise, truth, strict=True)
    ]
    assert np.mean(np.array(right) < 0.05) < 0.25


# Simulator against machine code ------------------------------------------------------------------


def scores(family, wrong, draws):
    """Slope of the log likelihood at the truth, of data drawn there, shape (draws, parameters)."""
    rng = np.random.default_rng(5)
    priors, cohort = load_priors(one_simulation.PRESET), simulation.design()
    parameters = simulation.draw_prior(cohort, priors, family, rng)
    # Halfway to the prior mean: a curve that moves, so that no slope is zero by chance.
    centre = data_of(cohort, priors, family)["prior_mean"]
    parameters["population"] = 0.5 * (parameters["population"] + centre)
    parameters["task_level"][:, 1] = -3.0
    point = {name: values[0] for name, values in parameters.items()}
    out = []
    for _ in range(draws):
        drawn = simulation.simulate(cohort, parameters, family, rng, wrong)
        out.append(likelihood(data_of(drawn, priors, family), point)[1])
    return np.array(out)


def strayed(found):
    """Standard errors between the mean slope and zero, of parameters that the data touch."""
    moves = found.std(axis=0) > 1e-9
    assert moves.sum() > 40
    error = found.std(axis=0, ddof=1)[moves] / np.sqrt(len(found))
    return np.abs(found.mean(axis=0)[moves] / error)


@pytest.mark.evidence
@pytest.mark.parametrize("name", FAMILIES)
def test_the_score_has_mean_zero_under_the_simulator(name):
    # Bartlett's first identity: it holds for every parameter only if the two are of one model.
    assert strayed(scores(FAMILIES[name], simulation.RIGHT, 400)).max() < 4.5


@pytest.mark.parametrize(
    "wrong", [simulation.Wrong(sampling_noise=1.6), simulation.Wrong(wander=0)]
)
def test_the_score_betrays_a_wrong_simulator(wrong):
    assert strayed(scores(FAMILIES["spectrum"], wrong, 300)).max() > 10


@pytest.mark.evidence
def test_a_collapse_is_drawn_from_the_hazard():
    rng = np.random.default_rng(6)
    priors, cohort = load_priors(one_simulation.PRESET), simulation.design()
    family = FAMILIES["spectrum"]
    parameters = simulation.draw_prior(cohort, priors, family, rng)
    parameters["population"][:] = data_of(cohort, priors, family)["prior_mean"]
    rate = np.exp(simulation.log_hazard(cohort, parameters)[0])
    repeats = 600
    drawn = [simulation.simulate(cohort, parameters, family, rng) for _ in range(repeats)]
    collapsed = np.sum([one.collapsed for one in drawn], axis=0)
    expected = -np.expm1(-rate * cohort.exposure)
    low, high = binom.ppf([[1e-4], [1 - 1e-4]], repeats, expected)
    assert np.all((low <= collapsed) & (collapsed <= high))
    assert collapsed.max() > 60 > 10 > collapsed.min()
    assert all(np.all(one.exposure <= cohort.exposure) for one in drawn)
    assert all(one.reward.size == cohort.reward.size for one in drawn)


# The command -------------------------------------------------------------------------------------


def command(out, *more):
    return python(FOLDER / "run.py", "ranks", "--quick", "--out", out, *more)


@pytest.mark.evidence
def test_the_quick_command_ranks_and_resumes(tmp_path):
    done = command(tmp_path, "--simulations", "4")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "ranks.json").read_text())["spectrum"]
    assert told["simulations"] == 4
    assert told["quantities_tested"] == len(told["quantities"]) > 40
    assert {"log likelihood", "plateau [s]", "luck.shape"} <= told["quantities"].keys()
    assert (tmp_path / "ranks.svg").stat().st_size > 1000
    kept = (tmp_path / "simulations" / "spectrum.jsonl").read_text()
    assert command(tmp_path, "--simulations", "5").returncode == 0
    longer = (tmp_path / "simulations" / "spectrum.jsonl").read_text()
    assert longer.startswith(kept)
    assert longer.count("\n") == kept.count("\n") + 1


# What is committed -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told():
    return json.loads((FOLDER / "ranks.json").read_text())


@pytest.mark.evidence
def test_the_result_is_that_of_the_simulations_beside_it(told):
    assert told.keys() == {path.stem for path in (FOLDER / "simulations").glob("*.jsonl")}
    for study, result in told.items():
        again = rank_study.summary(FOLDER / "simulations" / f"{study}.jsonl")
        assert json.loads(json.dumps(again)) == result


def test_families_pass_and_controls_fail(told):
    assert {study: result["passes"] for study, result in told.items()} == {
        study: not study.startswith("control") for study in told
    }
