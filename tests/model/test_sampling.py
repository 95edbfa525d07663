"""The sampler: draws of nutpie from machine code against PyMC's own of the model it stands for."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from cohorts import PRIORS, simulated

from advisor.model import (
    FAMILIES,
    GROUP_EFFECTS,
    GROUP_LEVELS,
    POPULATION,
    RUN_EFFECTS,
    TASK_LEVELS,
    likelihood,
    parameters,
)
from advisor.model import compat as _compat
from advisor.model.fast import density, sampler_coordinates, shape_of, shapes_of
from advisor.model.posterior import STACKS

COHORT = "two tasks"


def by_nutpie(family="spectrum", **changes):
    """Draws and statistics of the cohort by NUTS."""
    cohort = simulated(COHORT)
    placement = sampler_coordinates.place(cohort, PRIORS, FAMILIES[family])
    settings = {"draws": 800, "tune": 400, "chains": 4, "seed": 1, "target_accept": 0.9}
    return _compat.sample_density(
        density.density_of(placement.block),
        density.draw_of(placement.block, shape_of(cohort)),
        shapes_of(shape_of(cohort)),
        placement.start,
        **{**settings, "progress": _compat.silent, **changes},
    )


NAMES = (*POPULATION, *TASK_LEVELS, *GROUP_LEVELS, *GROUP_EFFECTS, *RUN_EFFECTS)


@cache
def drawn():
    return by_nutpie()


def figures(draws):
    """Mean and its Monte Carlo error, and standard deviation, of every parameter."""
    ess = np.concatenate([pair[1].ravel() for pair in _compat.convergence(draws).values()])
    values = np.concatenate(
        [one.reshape(*one.shape[:2], -1) for one in draws.values()], axis=2
    ).reshape(-1, ess.size)
    spread = values.std(axis=0)
    return values.mean(axis=0), spread / np.sqrt(ess), spread


@pytest.mark.evidence
@pytest.mark.parametrize("family", FAMILIES)
def test_chains_of_every_family_agree(family):
    """Not yet as well as a fit asks for: that samples on until its own gate is passed."""
    draws, statistics = drawn() if family == "spectrum" else by_nutpie(family)
    diagnostics = _compat.convergence(draws).values()
    assert max(pair[0].max() for pair in diagnostics) < 1.1
    assert statistics["diverging"].mean() < 0.01


@pytest.mark.evidence
def test_definition_samples_and_predicts_in_pymc():
    """A few steps of PyMC's own NUTS: that its draws are the same follows from the densities."""
    _compat.import_arviz()
    import pymc
    from pytensor.compile.mode import Mode

    from advisor import build_model

    cohort, plain = simulated("one run"), Mode(linker="py", optimizer=None)
    with warnings.catch_warnings(), build_model(cohort, PRIORS):
        warnings.simplefilter("ignore")
        trace = pymc.sample(
            draws=4,
            tune=4,
            chains=1,
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
            nuts={"max_treedepth": 2},
            compile_kwargs={"mode": plain},
        )
        predicted = pymc.sample_posterior_predictive(
            trace, random_seed=4, progressbar=False, compile_kwargs={"mode": plain}
        )
    posterior = {name: np.asarray(values) for name, values in trace["posterior"].items()}
    named = parameters.named_draws(
        {name: posterior[name] for name in (*parameters.STACKED, *parameters.ALONE)}
    )
    assert set(NAMES) == set(named)
    assert all(np.isfinite(values).all() for values in named.values())
    rewards = np.asarray(predicted["posterior_predictive"]["train_reward"])
    seen = likelihood.observations(cohort)
    assert rewards.shape == (1, 4, *seen.train_reward.shape)
    assert np.all((rewards == 0) == (seen.is_logged == 0))


@pytest.mark.evidence
@pytest.mark.timeout(1800)
def test_definition_and_kernel_sample_the_same_posterior():
    """A whole fit of the PyMC model, means and spreads against the kernel's."""
    import nutpie

    from advisor import build_model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = build_model(simulated(COHORT), PRIORS)
        trace = nutpie.sample(
            nutpie.compile_pymc_model(model, backend="numba"),
            draws=500,
            tune=400,
            chains=4,
            seed=2,
            target_accept=0.9,
            progress_bar=False,
        )
    definition = {name: np.asarray(values) for name, values in trace["posterior"].items()}
    definition = parameters.named_draws(
        {name: definition[name] for name in (*parameters.STACKED, *parameters.ALONE)}
    )
    raw, _ = drawn()
    raw = {**raw, "start_logit": raw["start_logit"][:, :, None]}
    kernel = {
        name: raw[stack][:, :, index]
        for stack, names in STACKS.items()
        for index, name in enumerate(names)
    }
    assert set(NAMES) == set(kernel) == set(definition)
    mean, error, spread = figures({name: kernel[name] for name in NAMES})
    by_definition, its_error, its_spread = figures({name: definition[name] for name in NAMES})
    far = (by_definition - mean) / np.hypot(error, its_error)
    assert np.abs(far).max() < 5
    assert np.sqrt((far**2).mean()) == pytest.approx(1, abs=0.4)
    np.testing.assert_allclose(its_spread, spread, rtol=0.25)
    # A posterior that is off by a third of its spread is told apart.
    shifted = (by_definition - mean + spread / 3) / np.hypot(error, its_error)
    assert np.median(shifted) > 5


def test_graph_of_the_definition_names_its_variables():
    pytest.importorskip("graphviz")
    import pymc

    from advisor import build_model

    drawn = pymc.model_to_graphviz(build_model(simulated("one run"), PRIORS)).source
    for name in ("train_reward", "held_out_reward", "collapse_exposure", "plateau", "shared"):
        assert name in drawn
