"""A cohort as tables of numbers, and the correlation of the slow wander."""

from __future__ import annotations

import numpy as np
import pytest
from cohorts import PRIORS, data_of, simulated
from simulated_runs import PLANS, Plan, cohort_of_plans, rising

from advisor.model import (
    GROUP_LEVELS,
    LAWS,
    POPULATION,
    TASK_LEVELS,
    clock_polynomial,
    cohort_of,
    likelihood,
)
from advisor.model import equations as eq
from advisor.model import fast as columns

# Data ------------------------------------------------------------------------------------------


def test_runs_stand_in_their_table():
    cohort = cohort_of_plans()
    data = data_of(cohort, PRIORS)
    table = data["run_table"]
    assert table.shape == (len(PLANS), columns.RUN_COLUMNS)
    np.testing.assert_array_equal(table[:, columns.RUN_INTERVAL], [2, 8, 2, 2, 4])
    for column, name in (
        (columns.RUN_CLIPPED, "clipped"),
        (columns.RUN_CORRECTED, "corrected"),
        (columns.RUN_MOMENTUM, "momentum"),
        (columns.RUN_MEAN_AGE, "mean_age"),
        (columns.RUN_COLLAPSED, "collapsed"),
        (columns.RUN_EXPOSURE, "exposure"),
    ):
        np.testing.assert_array_equal(table[:, column], getattr(cohort, name))
    x = cohort.covariates
    np.testing.assert_array_equal(table[:, columns.RUN_LOG_PARAMETERS], x.log_parameters)
    laws = np.split(table, [columns.RUN_RATE, columns.RUN_PLATEAU_LOSS, columns.RUN_HAZARD], axis=1)
    for found, law in zip(laws[1:], LAWS, strict=True):
        np.testing.assert_array_equal(found, getattr(eq, f"{law}_design")(x))
    # No run is placed yet.
    assert not table[:, columns.RUN_PLACES : columns.RUN_RATE].any()
    np.testing.assert_array_equal(data["parents"][:, 0], cohort.group_of_run)
    np.testing.assert_array_equal(data["parents"][:, 1], cohort.task_of_group[cohort.group_of_run])


def test_bins_follow_their_run_and_evaluations_its_bins():
    cohort = simulated("all there is")
    data = data_of(cohort, PRIORS)
    first, table = data["first_bin"].astype(int), data["bin_table"]
    assert first[0] == 0
    assert first[-1] == len(table) == cohort.reward.size + cohort.eval_reward.size
    for run in range(len(cohort.runs)):
        mine = table[first[run] : first[run + 1]]
        bins, tests = cohort.run_of_bin == run, cohort.run_of_eval == run
        tested = mine[:, columns.BIN_IS_EVALUATION]
        assert tested.tolist() == [0.0] * bins.sum() + [1.0] * tests.sum()
        rewards = np.concatenate([cohort.reward[bins], cohort.eval_reward[tests]])
        np.testing.assert_array_equal(mine[:, columns.BIN_REWARD], rewards)
        clock = np.concatenate([cohort.clock[bins], cohort.eval_clock[tests]])
        polynomial = mine[:, columns.BIN_CLOCK :]
        np.testing.assert_array_equal(polynomial, clock_polynomial(clock))
        train, held_out = mine[: bins.sum()], mine[bins.sum() :]
        for column, values in (
            (columns.BIN_NOISE_KNOWN, cohort.noise_known),
            (columns.BIN_NOISE_WITHIN, cohort.noise_per_completion),
            (columns.BIN_NOISE_BETWEEN, cohort.noise_per_prompt),
            (columns.BIN_PERSISTENCE, likelihood.residual_persistence(cohort)),
        ):
            np.testing.assert_array_equal(train[:, column], values[bins])
            assert not held_out[:, column].any()
    assert cohort.run_of_eval.size > 0


def test_priors_stand_in_the_order_of_the_parameters():
    data = data_of(cohort_of_plans(), PRIORS)
    for index, name in enumerate(POPULATION):
        prior = getattr(PRIORS, name.replace(".", "_"))
        assert (data["prior_mean"][index], data["prior_sd"][index]) == (prior.mean, prior.sd)
    for index, name in enumerate((*TASK_LEVELS, *GROUP_LEVELS)):
        prior = getattr(PRIORS, name)
        assert (data["level_mean"][index], data["level_sd"][index]) == (prior.mean, prior.sd)


# Wander ----------------------------------------------------------------------------------------


def long_runs():
    """Runs of several lengths and binnings, one of which collapsed at once."""
    late = rising(200)
    late[1:] = 0.0
    return cohort_of(
        [
            Plan(steps=60).run(rising(60), "short"),
            Plan(1e-3, steps=400).run(rising(400), "long"),
            Plan(1e-4, steps=7).run(rising(7), "few"),
            Plan(2e-4, logging=5).run(rising(50), "windows"),
            Plan(9e-3).run(late, "dead"),
        ]
    )


def test_persistence_multiplies_to_the_exponential_correlation():
    """Between any two bins of a run, not neighbours only."""
    assert eq.WANDER_SHARE == 0.5
    cohort = long_runs()
    persistence, sizes = likelihood.residual_persistence(cohort), []
    for run in range(len(cohort.runs)):
        bins = np.flatnonzero(cohort.run_of_bin == run)
        step = cohort.step[bins]
        sizes.append(bins.size)
        assert persistence[bins[0]] == 0
        for i in range(bins.size):
            for j in range(i, bins.size):
                wanted = np.exp(-(step[j] - step[i]) / (0.5 * max(step[-1], 1.0)))
                assert np.prod(persistence[bins[i + 1 : j + 1]]) == pytest.approx(wanted)
    assert sorted(sizes) == [1, 7, 14, 14, 14]
    assert persistence.shape == cohort.reward.shape
