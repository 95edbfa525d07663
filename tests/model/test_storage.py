"""Saving and loading without a fit, and the gate that a fit must pass; posteriors are made up."""

from __future__ import annotations

from dataclasses import replace

import h5netcdf
import numpy as np
import pytest
from cohorts import Block
from simulated_runs import (
    PLANS,
    PRESET,
    Plan,
    cohort_of_plans,
    made_up_posterior,
    raw_draws,
    rising,
)

from advisor.common import Kind, note, silent
from advisor.errors import InputError, NotConvergedError, StudyError
from advisor.findings import describe
from advisor.forecast import fit
from advisor.model import (
    POPULATION,
    RUN_EFFECTS,
    SPECTRUM,
    Posterior,
    Sampling,
    cohort_of,
    compat,
    load_priors,
    sampling,
)
from advisor.model.fast import Shape, data_of, density, sampler_coordinates, shapes_of

RHAT_LIMIT = 1.01
ESS_LIMIT = 400
DIVERGENT_SHARE = 0.001
CAREFUL = 0.99


@pytest.fixture
def saved(posterior, tmp_path):
    path = tmp_path / "posterior.nc"
    posterior.save(path)
    return path


def gate(posterior):
    return posterior.convergence.complaint(RHAT_LIMIT, ESS_LIMIT, DIVERGENT_SHARE)


# Files -----------------------------------------------------------------------------------------


@pytest.mark.evidence
@pytest.mark.smoke
def test_round_trip_keeps_every_bit(posterior, saved):
    loaded = Posterior.load(saved)
    assert loaded.meta == posterior.meta
    np.testing.assert_equal(loaded.draws, posterior.draws)
    np.testing.assert_equal(loaded.pilots, posterior.pilots)
    assert describe(loaded) == describe(posterior)
    assert loaded.to_json() == posterior.to_json()


@pytest.mark.parametrize(
    "content", [b"", b"step,reward\n1,0.2\n", b"\x89HDF\r\n\x1a\n" + bytes(90)]
)
def test_file_that_is_no_netcdf_is_refused(tmp_path, content):
    path = tmp_path / "posterior.nc"
    path.write_bytes(content)
    with pytest.raises(StudyError, match="this is no saved posterior") as no:
        Posterior.load(path)
    assert no.value.path == str(path)


def test_missing_file_and_folder_are_refused(tmp_path):
    for path, said in (
        (tmp_path / "none.nc", "there is no such file"),
        (tmp_path, "it is no file"),
    ):
        with pytest.raises(StudyError, match=said):
            Posterior.load(path)


def test_netcdf_of_others_is_refused(tmp_path):
    path = tmp_path / "weather.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions["time"] = 3
        file.create_variable("rain", ("time",), np.float64)[...] = 1.0
    with pytest.raises(StudyError, match="this is no saved posterior"):
        Posterior.load(path)
    with h5netcdf.File(path, "a") as file:
        file.attrs["advisor"] = "{}"
    with pytest.raises(StudyError, match="this is no saved posterior"):
        Posterior.load(path)


# Names and levels ------------------------------------------------------------------------------


def test_named_draws_are_those_that_were_sampled():
    cohort, priors = cohort_of_plans(), load_priors(PRESET)
    raw = raw_draws(cohort, priors, np.random.default_rng(1), 200, 0.3, {})
    posterior = made_up_posterior(seed=1)
    np.testing.assert_array_equal(posterior.draws["start_logit"], raw["start_logit"])
    effects = ("run_offset.plateau", "run_offset.stiffness", "run_offset.shape")
    assert effects == RUN_EFFECTS
    stacks = {
        "population": POPULATION,
        "task_level": ("headroom_logit", "log_slope", "log_onset"),
        "eval_level": ("eval_start_logit", "log_eval_gain"),
        "group_offset": ("group_offset.headroom", "group_offset.stiffness"),
        "run_offset": effects,
    }
    for stack, names in stacks.items():
        for index, name in enumerate(names):
            np.testing.assert_array_equal(posterior.draws[name], raw[stack][:, :, index])
    assert {posterior.draws[name].shape for name in effects} == {(2, 200, len(PLANS))}


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-2.0, 6.0)])
def test_levels_are_in_reward_units(bounds):
    posterior = made_up_posterior(bounds=bounds)
    low, high = bounds
    start = 1 / (1 + np.exp(-posterior.draws["start_logit"]))
    np.testing.assert_allclose(posterior.draws["start"], low + (high - low) * start)
    assert np.all(posterior.draws["plateau"] < high)
    # What temperature takes, at the reference, given back.
    sizes = np.log(np.array(posterior.meta.group_parameters) / posterior.meta.reference.parameters)
    level, by_size = (
        posterior.draws[f"plateau_loss.{term}"][..., None] for term in ("level", "size")
    )
    loss = np.exp(np.minimum(level + by_size * sizes, 3.0))
    cold = (posterior.draws["plateau"] - low) / (high - low) * np.exp(loss)
    assert np.all((cold > start) & (cold < 1))
    share = (cold - start) / (1 - start)
    # The sampled slope: share of the headroom per step, for a model of the reference size.
    model = (
        posterior.draws["curvature_exponent"][..., None] * sizes
        + np.exp(posterior.draws["log_model_spread"])[..., None]
        * posterior.draws["group_offset.stiffness"]
    )
    np.testing.assert_allclose(
        np.log(share * posterior.draws["stiffness"]) - model,
        np.broadcast_to(posterior.draws["log_slope"], share.shape),
        rtol=1e-9,
    )


# Gate ------------------------------------------------------------------------------------------

FINE = {name: (np.array([1.001]), np.array([900.0])) for name in shapes_of(Shape(1, 1, 1))}


def diagnosed(name, rhat, ess):
    return made_up_posterior(
        diagnostics={**FINE, name: (np.array([1.001, rhat]), np.array([900.0, ess]))}
    )


def test_gate_lets_converged_draws_pass():
    assert gate(made_up_posterior()) is None
    assert gate(diagnosed("run_offset", RHAT_LIMIT - 1e-4, ESS_LIMIT + 1)) is None


@pytest.mark.parametrize("name", FINE)
def test_gate_stops_any_variable_that_did_not_mix(name):
    wanted = f"R-hat 1.030 of {name} is not below {RHAT_LIMIT}"
    assert gate(diagnosed(name, 1.03, 900.0)) == wanted
    assert "only 120 effective draws" in gate(diagnosed(name, 1.001, 120.0))


@pytest.mark.parametrize("name", FINE)
def test_gate_stops_a_parameter_that_never_moved(name):
    wanted = f"R-hat nan of {name} is not below {RHAT_LIMIT}"
    assert gate(diagnosed(name, np.nan, 900.0)) == wanted
    assert "only nan effective draws" in gate(diagnosed(name, 1.001, np.nan))


def test_gate_stops_divergences():
    diverging = np.zeros((2, 2000))
    diverging[0, :32] = 1
    steps = np.full((2, 2000), 7.0)
    posterior = made_up_posterior(statistics={"diverging": diverging, "n_steps": steps})
    assert gate(posterior) == "0.8% of the draws diverged"
    diverging[0, round(DIVERGENT_SHARE * 4000) :] = 0
    assert diverging.sum() > 0
    assert gate(made_up_posterior(statistics={"diverging": diverging, "n_steps": steps})) is None


BRIEF = Sampling(draws=600, tune=100, target_accept=0.8, seed=5)


@pytest.mark.evidence
def test_fit_that_never_converges_gives_no_number(sampler):
    said = []
    with pytest.raises(NotConvergedError, match="did not converge in 2 attempts: R-hat") as no:
        fit(
            [Plan().run(rising())],
            priors=PRESET,
            sampling=BRIEF,
            progress=lambda *stage: said.append(stage),
        )
    assert no.value.exit_code == 4
    assert "--fast" not in str(no.value)
    # Nothing diverged: it takes a longer warm-up, not smaller steps.
    assert sampler.attempts == [(600, 100, 0.8, 5), (600, 200, 0.8, 6)]
    (again,) = [detail for stage, _, detail in said if stage == "Sampling again"]
    assert again.startswith("R-hat")
    assert "; a longer warm-up, from other starts" in again


@pytest.mark.parametrize(
    ("bounds", "notes", "is_asked"),
    [
        ((-20.0, 30.0), (note(Kind.REWARD_FLOOR, value=-20.0, low=-20.0),), True),
        ((-20.0, 30.0), (), False),
        ((0.0, 1.0), (note(Kind.REWARD_CEILING, value=1.0, why="rewards lie in [0, 1]"),), False),
    ],
)
def test_bounds_that_were_read_off_the_logs_are_asked_for(bounds, notes, is_asked, monkeypatch):
    apart = diagnosed("run_offset", 1.5, 20.0)
    monkeypatch.setattr(sampling, "sampled", lambda *_: apart)
    cohort = replace(cohort_of_plans(PLANS, bounds), notes=notes)
    with pytest.raises(NotConvergedError) as no:
        sampling.converged(cohort, apart.meta.priors, SPECTRUM, BRIEF, silent)
    wanted = "bounds, -20 to 30, were read off the logs, where odd rows may stretch them: give"
    assert (wanted in str(no.value)) == is_asked


@pytest.mark.evidence
def test_chains_that_agree_and_diverge_now_and_then_are_published_with_a_note(sampler):
    """Few divergences also with smaller steps: a note. Control: as many as a tenth are refused."""
    sampler.passes_at, sampler.diverging = (1, 2), 0.005
    posterior = fit([Plan().run(rising())], priors=PRESET, sampling=BRIEF)
    # Chains that agree need no more draws.
    assert [(draws, accept) for draws, _, accept, _ in sampler.attempts] == [
        (600, 0.8),
        (600, CAREFUL),
    ]
    assert gate(posterior) == "0.5% of the draws diverged"
    # R-hat and the effective draws pass: no digit is in doubt.
    assert "the chains agree (0.5% of the draws diverged, attempt 2)" in map(
        str, posterior.meta.notes
    )
    sampler.attempts.clear()
    sampler.passes_at, sampler.diverging = (1, 2), 0.1
    with pytest.raises(NotConvergedError, match=r"10\.0% of the draws diverged"):
        fit([Plan().run(rising())], priors=PRESET, sampling=BRIEF)


def test_sampler_gets_the_placed_cohort_and_starts_round_its_mode(sampler):
    sampler.passes_at = 1
    runs = [Plan().run(rising(), "a"), Plan(1e-3).run(rising(40), "b")]
    posterior = fit(runs, priors=PRESET, sampling=BRIEF)
    priors = load_priors(PRESET).at(cohort_of(runs).reference)
    placement = sampler_coordinates.place(cohort_of(runs), priors)
    here = placement.start(0)
    assert sampler.densities[0](here)[0] == density.density_of(placement.block)(here)[0]
    starts = np.array([placement.start(chain) for chain in range(4)])
    np.testing.assert_array_equal(sampler.starts[0], starts)
    unplaced = Block(cohort_of(runs), data_of(cohort_of(runs), priors))
    assert sampler.densities[0](here)[0] != unplaced.density(here)[0]
    for name in RUN_EFFECTS:
        assert posterior.draws[name].shape == (4, 600, 2)


def test_fit_refuses_bad_input_before_it_loads_anything(sampler):
    said = []
    with pytest.raises(InputError, match="no prior preset"):
        fit([Plan().run(rising())], priors="no_such", progress=lambda *stage: said.append(stage))
    with pytest.raises(InputError, match="there is no curve to learn from"):
        fit([Plan().run(np.full(60, 0.5))], progress=lambda *stage: said.append(stage))
    with pytest.raises(InputError, match="no run to fit"):
        fit([], progress=lambda *stage: said.append(stage))
    assert said == sampler.attempts == []


@pytest.mark.smoke
def test_figures_are_those_of_the_chains():
    # Real diagnostics, on draws without a trend, and on two chains that disagree.
    rng = np.random.default_rng(70)
    good = rng.standard_normal((4, 500, 2))
    rhat, ess = compat.convergence({"x": good})["x"]
    assert rhat.shape == ess.shape == (2,)
    assert np.all(rhat < 1.01)
    assert np.all((ess > 1500) & (ess < 2600))
    apart = good + np.array([0, 0, 1, 1])[:, None, None]
    rhat, ess = compat.convergence({"x": apart})["x"]
    assert np.all(rhat > 1.1)
    assert np.all(ess < 100)
