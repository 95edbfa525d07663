"""Posterior densities against their priors."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.forecast import Forecaster, RunEffect, Target
from advisor.model import Posterior
from advisor.reporting import FIGURES

posteriors_info, draw_posteriors = FIGURES["posteriors"].info, FIGURES["posteriors"].draw


def test_intervals_are_those_of_a_setting_that_was_piloted(posterior: Posterior) -> None:
    info = posteriors_info(posterior)
    assert info.reference == "at lr 3e-4, G 16, K 2"
    settings = [one.settings for one in posterior.meta.runs]
    piloted = [(one.learning_rate, one.group_size, one.refresh_interval) for one in settings]
    run = settings[piloted.index((3e-4, 16, 2))]
    row = posterior.table.loc["curvature exponent"]
    assert [info.curvature.lower, info.curvature.upper] == pytest.approx([row.lower, row.upper])
    for index, (task, model) in enumerate(posterior.meta.groups):
        target = Target(task, model, posterior.meta.group_parameters[index])
        forecaster = Forecaster(posterior, target)
        # The forecaster's own curve of that setting, without the luck of one run.
        still = forecaster.with_run_effect(RunEffect(lambda _, kept: np.zeros((3, kept.size))))
        stiffness = still.law_stiffness(run)
        plateau = still.run(run).plateau
        for ridge, draws in ((info.stiffness[index], stiffness), (info.plateau[index], plateau)):
            assert [ridge.lower, ridge.upper] == pytest.approx(
                np.quantile(draws, [0.1, 0.9]).tolist()
            )
            assert ridge.lower < ridge.median < ridge.upper
    assert [ridge.label for ridge in info.plateau] == ["tiny-m on sort", "tiny-s on sort"]


def test_densities_hold_the_mass_that_they_should(posterior: Posterior) -> None:
    info = posteriors_info(posterior)
    axes = [(ridge, np.asarray) for ridge in (*info.plateau, info.curvature)]
    axes += [(ridge, np.log10) for ridge in info.stiffness]
    for ridge, axis in axes:
        for value, height, low, high, mass in (
            (ridge.value, ridge.height, ridge.lower, ridge.upper, 0.8),
            (ridge.prior_value, ridge.prior_height, ridge.prior_lower, ridge.prior_upper, 0.9),
        ):
            assert np.trapezoid(height, axis(value)) == pytest.approx(1, abs=0.03)
            within = np.where((value >= low) & (value <= high), height, 0)
            assert np.trapezoid(within, axis(value)) == pytest.approx(mass, abs=0.05)


def test_the_prior_is_that_of_the_preset(posterior: Posterior) -> None:
    prior = posterior.meta.priors.curvature_exponent
    ridge = posteriors_info(posterior).curvature
    assert ridge.prior_upper == pytest.approx(prior.mean + 1.645 * prior.sd, abs=0.06)
    assert ridge.prior_lower == pytest.approx(prior.mean - 1.645 * prior.sd, abs=0.06)


def test_stiffness_has_a_log_axis_and_all_axes_have_units(posterior: Posterior) -> None:
    plateau, stiffness, curvature = draw_posteriors(posteriors_info(posterior)).axes
    assert (plateau.get_xscale(), stiffness.get_xscale()) == ("linear", "log")
    assert plateau.get_xlabel() == "train reward (reward units)"
    assert stiffness.get_xlabel() == "stiffness k (per optimizer step)"
    assert curvature.get_xlabel() == "exponent c (no unit)"
