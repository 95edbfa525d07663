"""A posterior as ArviZ has it: under 0.23 and 1.x the same groups, labels, statistics and plots."""

from __future__ import annotations

import warnings

import matplotlib
import numpy as np
import pytest
from cohorts import simulated
from scipy.stats import multivariate_t

from advisor.forecast import fit
from advisor.model import (
    GROUP_EFFECTS,
    GROUP_LEVELS,
    TASK_LEVELS,
    Posterior,
    Sampling,
    import_arviz,
)
from advisor.model import equations as eq
from advisor.model.storage import inference_groups

matplotlib.use("Agg")
pytestmark = [pytest.mark.evidence, pytest.mark.smoke]

GROUPS = {
    "posterior",
    "sample_stats",
    "prior",
    "log_prior",
    "log_likelihood",
    "log_likelihood_parts",
    "posterior_predictive",
    "observed_data",
    "constant_data",
}


@pytest.fixture(scope="module")
def arviz():
    return import_arviz()


@pytest.fixture(scope="module")
def posterior():
    runs = simulated("two tasks").runs
    sampling = Sampling(draws=500, tune=300, seed=2)
    return fit(runs, priors="small_models", sampling=sampling)


@pytest.fixture(scope="module")
def data(posterior):
    return posterior.to_arviz()


@pytest.fixture(autouse=True)
def quiet():
    """ArviZ warns of a high Pareto k; that is asserted on, not printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    matplotlib.pyplot.close("all")


def test_groups_and_labels_are_there(data, posterior):
    listed = data.groups() if callable(data.groups) else data.groups
    assert {name.strip("/") for name in listed} - {""} == GROUPS
    draws = data["posterior"]
    meta = posterior.meta
    assert list(draws["group"].values) == [f"{task} / {model}" for task, model in meta.groups]
    assert list(draws["task"].values) == list(meta.tasks)
    assert list(draws["run"].values) == [run.id for run in meta.runs]
    assert list(draws["rate_term"].values) == ["learning_rate", "group_size", "prompts_per_step"]
    np.testing.assert_array_equal(draws["plateau"].values, posterior.draws["plateau"])
    np.testing.assert_array_equal(draws["log_misfit"].values, posterior.draws["log_misfit"])
    assert set(draws.data_vars) - {"is_oscillator"} == set(data["prior"].data_vars)


def test_saved_file_opens_in_arviz_with_all_of_them(posterior, data, arviz, tmp_path):
    posterior.save(tmp_path / "posterior.nc")
    opened = arviz.from_netcdf(tmp_path / "posterior.nc")
    saved = inference_groups(posterior)  # as the sampler stacks them
    for group in GROUPS:
        for name, variable in saved[group].items():
            np.testing.assert_array_equal(opened[group][name].values, variable.values)
        for name in data[group].coords:
            assert list(opened[group][name].values) == list(data[group][name].values)
    again = Posterior.load(tmp_path / "posterior.nc").to_arviz()
    for group in ("log_likelihood", "log_likelihood_parts"):
        for name in data[group].data_vars:
            np.testing.assert_array_equal(again[group][name].values, data[group][name].values)


def test_log_likelihood_of_a_run_is_that_of_its_parts(data, posterior):
    likelihood, constant = data["log_likelihood_parts"], data["constant_data"]
    total = likelihood["collapse_exposure"].values.copy()
    for at, run in enumerate(constant["run_of_train_bin"].values):
        total[:, :, int(run)] += likelihood["train_reward"].values[:, :, at]
    for at, run in enumerate(posterior.observations.run_of_evaluation):
        total[:, :, run] += likelihood["held_out_reward"].values[:, :, at]
    np.testing.assert_allclose(total, data["log_likelihood"]["whole_run"].values, rtol=1e-9)


def test_bins_are_jointly_student_t(posterior):
    """By scipy's multivariate Student t, of the first draw; another tail is told apart."""
    from advisor.model import POPULATION, RUN_EFFECTS
    from advisor.model import likelihood as law

    seen = posterior.observations
    names = (
        *POPULATION,
        *TASK_LEVELS,
        *GROUP_LEVELS,
        *GROUP_EFFECTS,
        *RUN_EFFECTS,
        "is_oscillator",
    )
    first = {name: posterior.flat(name)[:1].reshape(1, -1) for name in names}
    expected = law.expectation(first, seen.constant, seen)
    white = expected.sampling_variance + eq.LEAST_VARIANCE
    correlation = seen.constant["correlation"]
    found = law.run_log_density(
        seen.train_reward,
        expected.train_reward,
        white,
        expected.residual_variance,
        correlation,
        seen.is_logged,
    )[0]
    matrices = law.covariance(white, expected.residual_variance, correlation)[0]
    for run, bins in enumerate(seen.is_logged > 0):
        residual = (seen.train_reward[run] - expected.train_reward[0, run])[bins]
        matrix = matrices[run][np.ix_(bins, bins)]
        wanted = multivariate_t.logpdf(residual, None, matrix, eq.DEGREES)
        assert found[run] == pytest.approx(wanted, rel=1e-9)
        other = multivariate_t.logpdf(residual, None, matrix, eq.DEGREES + 1)
        assert abs(found[run] - other) > 1e-4


def test_loo_by_run_has_a_pareto_k_for_each(data, arviz, posterior):
    loo = arviz.loo(data, pointwise=True)
    k = np.asarray(loo.pareto_k)
    assert k.shape == (len(posterior.meta.runs),)
    assert np.isfinite(k).all()
    # The control: a run whose rewards nobody expected costs a worse score.
    groups = inference_groups(posterior)
    worse = groups["log_likelihood"]["whole_run"].values.sum(axis=2).mean() - 50
    assert float(getattr(loo, "elpd", getattr(loo, "elpd_loo", np.nan))) > worse
