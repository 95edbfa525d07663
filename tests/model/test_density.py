"""The density that is sampled: that of the definition in PyMC."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cohorts import (
    PRIORS,
    Block,
    data_of,
    flat,
    luck,
    random_point,
    shape_of,
    simulated,
    unflat,
    with_places,
    without_bins,
)
from test_kernel import differences, places

from advisor.model import (
    FAMILIES,
    GROUP_EFFECTS,
    GROUP_LEVELS,
    POPULATION,
    RUN_EFFECTS,
    TASK_LEVELS,
    load_priors,
    parameters,
)
from advisor.model import compat as _compat
from advisor.model import equations as eq

NAMES = (*POPULATION, *TASK_LEVELS, *GROUP_LEVELS, *GROUP_EFFECTS, *RUN_EFFECTS)
"""Parameters in the order of the flat point."""

CASES = {
    "all there is": ("all there is", "spectrum", True),
    "two tasks": ("two tasks", "spectrum", False),
    "oscillator": ("all there is", "oscillator", True),
}


@cache
def case(name):
    """Cohort, data and family; in the full cohort one run has no bins and most are placed."""
    scenario, family, placed = CASES[name]
    cohort = simulated(scenario)
    if placed:
        cohort = without_bins(cohort, 3)
    data = data_of(cohort, PRIORS, FAMILIES[family])
    if placed:
        data = with_places(data, np.random.default_rng(80))
    return cohort, data, FAMILIES[family]


@cache
def model_of(name):
    _compat.import_arviz()
    from advisor import build_model

    cohort, _, family = case(name)
    return build_model(cohort, PRIORS, family.name)


def plain():
    """Evaluation of the graph as it is written: nothing is rewritten or compiled."""
    from pytensor.compile.mode import Mode

    return Mode(linker="py", optimizer=None)


@cache
def functions(name):
    """Log density and gradient that PyTensor computes of the definition."""
    model = model_of(name)
    return model.compile_logp(mode=plain()), model.compile_dlogp(mode=plain())


def variables(point, cohort):
    """A point as the variables of the definition, all run effects as such."""
    rows = (
        *point["population"],
        *point["task_level"],
        point["start_logit"],
        *point["eval_level"],
        *point["group_offset"],
        *point["run_offset"],
    )
    draws = {name: np.asarray(row)[None, None] for name, row in zip(NAMES, rows, strict=True)}
    return {name: values[0, 0] for name, values in parameters.model_variables(draws).items()}


class Definition:
    """The definition in PyMC, in the coordinates of the sampler."""

    def __init__(self, name):
        self.cohort, self.data, self.family = case(name)
        self.block = Block(self.cohort, self.data)
        self.logp, self.dlogp = functions(name)
        self.model = model_of(name)

    def natural(self, there):
        """Point of the definition, flat: every run's offset as run effect."""
        drawn = self.block.draw(there)
        return np.concatenate([values.ravel() for values in drawn.values()])

    def volume(self, there):
        """Log of how much the coordinates of the runs shrink volumes."""
        point = unflat(self.block.natural(there), self.cohort)
        factor, _ = places(self.cohort, point, self.data)
        has_bins = np.isin(np.arange(len(self.cohort.runs)), self.cohort.run_of_bin)
        return float(np.log(factor)[:, has_bins].sum())

    def value(self, there):
        point = variables(unflat(self.natural(there), self.cohort), self.cohort)
        return float(self.logp(point)) + self.volume(there)

    def gradient(self, there):
        point = variables(unflat(self.natural(there), self.cohort), self.cohort)
        by_variable, at = {}, 0
        slope = np.asarray(self.dlogp(point))
        for variable in self.model.free_RVs:
            shape = np.shape(point[variable.name])
            size = int(np.prod(shape))
            by_variable[variable.name] = slope[at : at + size].reshape(shape)[None, None]
            at += size
        named = {name: values[0, 0] for name, values in parameters.named_draws(by_variable).items()}
        turned = np.concatenate([np.ravel(named[name]) for name in NAMES]) @ differences(
            self.natural, there
        )
        return turned + differences(self.volume, there)


# PyMC ------------------------------------------------------------------------------------------


@pytest.mark.evidence
@pytest.mark.smoke
@pytest.mark.parametrize("name", CASES)
def test_density_and_gradient_are_those_of_the_definition_in_pymc(name):
    """Up to a constant: differences of the value between points, and the gradient at each."""
    definition, levels = Definition(name), []
    for seed in range(3):
        point = random_point(
            definition.cohort, np.random.default_rng([81, seed]), definition.family
        )
        there = definition.block.sampled(flat(point))
        value, gradient = definition.block.density(there)
        levels.append(value - definition.value(there))
        np.testing.assert_allclose(gradient, definition.gradient(there), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(levels, levels[0], rtol=1e-9, atol=1e-7)


@pytest.mark.evidence
def test_comparison_rejects_a_wrong_formula(monkeypatch):
    """A kernel is compared with the definition, not with itself."""
    from advisor import build_model

    definition = Definition("two tasks")
    right = eq.clipped_stiffness

    def wrong(stiffness, interval, progress_limit, clipped):
        return right(stiffness, interval + 0.01, progress_limit, clipped)

    monkeypatch.setattr(eq, "clipped_stiffness", wrong)
    logp = build_model(definition.cohort, PRIORS).compile_logp(mode=plain())
    monkeypatch.undo()
    off = []
    for seed in (0, 1):
        point = random_point(definition.cohort, np.random.default_rng([84, seed]))
        there = definition.block.sampled(flat(point))
        now = variables(unflat(definition.natural(there), definition.cohort), definition.cohort)
        off.append(definition.block.density(there)[0] - float(logp(now)))
    assert abs(off[1] - off[0]) > 1e-6


def test_model_carries_the_labels_of_tasks_models_and_runs():
    cohort, model = case("all there is")[0], model_of("all there is")
    assert tuple(model.coords["task"]) == cohort.tasks
    assert list(model.coords["group"]) == [f"{task} / {name}" for task, name in cohort.groups]
    assert list(model.coords["run"]) == [run.id for run in cohort.runs]
    dims = {
        name: tuple(map(str, model.named_vars_to_dims.get(name, ()))) for name in parameters.DIMS
    }
    assert dims == parameters.DIMS
    free = {variable.name for variable in model.free_RVs}
    assert free == set(parameters.model_variables({name: np.zeros((1, 1, 1)) for name in NAMES}))
    observed = {variable.name for variable in model.observed_RVs}
    assert observed == {"train_reward", "held_out_reward", "collapse_exposure"}
    kept = {variable.name for variable in model.deterministics}
    assert kept == {"start", "plateau", "stiffness", "collapse_rate"}


# Coordinates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_coordinates_of_the_sampler_have_a_way_back(name):
    cohort, data, family = case(name)
    block = Block(cohort, data)
    for seed in range(3):
        vector = flat(random_point(cohort, np.random.default_rng([92, seed]), family))
        there = block.sampled(vector)
        np.testing.assert_allclose(block.natural(there), vector, rtol=1e-12, atol=1e-12)
        # Two move: what a cold run lacks at its plateau, as a sum and as a balance.
        loss = POPULATION.index("plateau_loss.level")
        task = np.bincount(cohort.task_of_group[cohort.group_of_run]).argmax()
        headroom = len(POPULATION) + task
        moved = np.flatnonzero(there != vector)
        assert sorted(moved) == sorted((loss, headroom))
        lacking = np.exp(-vector[headroom]) + np.exp(vector[loss])
        assert np.exp(there[headroom]) == pytest.approx(lacking)
        odds = np.exp(vector[loss]) / np.exp(-vector[headroom])
        assert np.exp(there[loss]) == pytest.approx(odds)


# Data ------------------------------------------------------------------------------------------


COLUMNS = [
    (key, column)
    for key, count in (("run_table", 31), ("bin_table", 10), ("parents", 2))
    for column in range(count)
]


@pytest.mark.parametrize(("key", "column"), COLUMNS)
def test_each_column_of_the_data_counts(key, column):
    cohort, data, family = case("all there is")
    point = random_point(cohort, np.random.default_rng(84), family)
    before, _ = Block(cohort, data).at(point)
    table = data[key].copy()
    # Exchanged rather than moved, so that an index stays one and a weight a share.
    table[:, column] = np.roll(table[:, column], 1)
    after, _ = Block(cohort, data | {key: table}).at(point)
    if np.array_equal(table, data[key]):
        # All runs are alike in this: the intercept of a law.
        table[:, column] = 0.9
        after, _ = Block(cohort, data | {key: table}).at(point)
    assert abs(after - before) > 1e-6


@pytest.mark.parametrize("key", ["prior_mean", "prior_sd", "level_mean", "level_sd"])
def test_each_prior_counts(key):
    cohort, data, family = case("two tasks")
    point = random_point(cohort, np.random.default_rng(85), family)
    before, _ = Block(cohort, data).at(point)
    for index in range(data[key].size):
        moved = data[key].copy()
        moved[index] += 0.1
        after, _ = Block(cohort, data | {key: moved}).at(point)
        assert abs(after - before) > 1e-6


@pytest.mark.parametrize("family", ["spectrum", "oscillator"])
@pytest.mark.parametrize(
    ("preset", "reach"), [("small_models", 4), ("lora", 4), ("uninformative", 2)]
)
def test_density_is_finite_far_from_the_prior_means(preset, reach, family):
    """Everywhere within so many prior standard deviations in every direction at once."""
    cohort, priors = simulated("all there is"), load_priors(preset)
    data = data_of(cohort, priors, FAMILIES[family])
    block = Block(cohort, data)
    tasks, groups, runs = shape_of(cohort)
    counts, rest = [tasks] * 3 + [groups] * 3, 2 * groups + 3 * runs
    mean, sd = (
        np.concatenate([data[f"prior_{part}"], np.repeat(data[f"level_{part}"], counts), other])
        for part, other in (("mean", np.zeros(rest)), ("sd", np.ones(rest)))
    )
    widest = 0.0
    for seed in range(200):
        rng = np.random.default_rng([88, seed])
        vector = mean + sd * rng.uniform(-reach, reach, sd.size)
        # Where the priors speak of the levels, and as if they spoke of those at the reference.
        point = unflat(vector, cohort)
        stiffness = eq.task_log_stiffness(*point["task_level"][:2])
        spoken = dict(zip(POPULATION, point["population"], strict=True))
        point["population"] = np.array(list(eq.at_reference(spoken, stiffness).values()))
        widest = max(widest, np.ptp(flat(point) - vector))
        for place in (vector, flat(point)):
            value, gradient = block.density(block.sampled(place))
            assert np.isfinite(value)
            assert np.all(np.isfinite(gradient))
    assert widest > 20


# What the sampler is given -----------------------------------------------------------------------


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e4])
def test_point_without_a_finite_density_is_refused(broken):
    cohort, data, family = case("two tasks")
    block = Block(cohort, data)
    vector = flat(random_point(cohort, np.random.default_rng(90), family))
    assert np.isfinite(block.density(vector)[0])
    for index in (POPULATION.index("log_noise_scale"), vector.size - 1):
        if broken == 1e4 and index == vector.size - 1:
            continue  # far away, but a number
        moved = vector.copy()
        moved[index] = broken
        assert not np.isfinite(block.density(moved)[0])


@pytest.mark.parametrize("name", CASES)
def test_draws_are_kept_with_luck_in_place_of_offsets(name):
    cohort, data, family = case(name)
    block = Block(cohort, data)
    vector = flat(random_point(cohort, np.random.default_rng(91), family))
    wanted, found = unflat(block.natural(vector), cohort), block.draw(vector)
    by_luck = luck(data, wanted)
    np.testing.assert_allclose(found.pop("run_offset"), by_luck, rtol=1e-12)
    offsets = wanted.pop("run_offset")
    for key, values in wanted.items():
        np.testing.assert_array_equal(found[key], values)
    is_placed = CASES[name][2]
    assert np.any(np.abs(by_luck - offsets) > 0.1) == is_placed
