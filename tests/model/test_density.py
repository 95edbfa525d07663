"""The density that is sampled: that of the PyMC model, from Python and through its C addresses."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from cohorts import (
    PRIORS,
    SCENARIOS,
    flat,
    random_point,
    simulated,
    unflat,
    with_places,
    without_bins,
)
from scipy.stats import norm

from advisor.model import compat as _compat
from advisor.model import equations as eq
from advisor.model.families import FAMILIES
from advisor.model.fast.density import (
    density_callback,
    expand_callback,
    log_density,
    natural,
    pack,
    sampled,
)
from advisor.model.fast.kernel import luck_of_runs
from advisor.model.fast.sampler_coordinates import density_of
from advisor.model.fast.start import start_points
from advisor.model.fast.tables import data_of, shape_of, shapes_of
from advisor.model.parameters import LEVELS, POPULATION, RUN_EFFECTS
from advisor.model.priors import load_priors

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
    from advisor.model.pymc_model import build_model

    cohort, data, _ = case(name)
    return build_model(shape_of(cohort), data)


@cache
def functions(name):
    """Log density and gradient of the PyMC model, uncompiled."""
    model = model_of(name)
    return model.compile_logp(mode="FAST_COMPILE"), model.compile_dlogp(mode="FAST_COMPILE")


def constant(data, cohort):
    """What PyMC adds for the normal priors that no parameter moves."""
    tasks, groups, runs = shape_of(cohort)
    levels = norm.logpdf(0, scale=data["level_sd"]) * ([tasks] * 3 + [groups] * 3)
    shared = norm.logpdf(0, scale=data["prior_sd"])
    return shared.sum() + levels.sum() + norm.logpdf(0) * (2 * groups + 3 * runs)


def value_and_slope(data, cohort, point):
    """Log density of a point of the model, with its gradient as the sampler has it."""
    block = pack(data, shape_of(cohort))
    return density_of(block)(sampled(flat(point), block))


def as_sampled(slope, data, cohort, point):
    """Gradient of the model in the coordinates of the sampler, by the Jacobian of the turn."""
    block = pack(data, shape_of(cohort))
    return slope @ jacobian(lambda at: natural(at, block), sampled(flat(point), block))


def jacobian(function, vector):
    """Derivatives by central differences of fourth order: rows by what comes out."""
    columns, step = [], 1e-3
    for index in range(vector.size):
        moved = np.zeros_like(vector)
        moved[index] = step
        near = function(vector + moved) - function(vector - moved)
        far = function(vector + 2 * moved) - function(vector - 2 * moved)
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, axis=1)


# PyMC ------------------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("name", CASES)
def test_density_is_that_of_the_model_in_pymc(name):
    cohort, data, family = case(name)
    logp, dlogp = functions(name)
    for seed in range(3):
        point = random_point(cohort, np.random.default_rng([81, seed]), family)
        value, gradient = value_and_slope(data, cohort, point)
        wanted = float(logp(point)) - constant(data, cohort)
        assert value == pytest.approx(wanted, rel=1e-10, abs=1e-8)
        slope = as_sampled(np.asarray(dlogp(point)), data, cohort, point)
        np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-8)


def test_comparison_rejects_another_density():
    cohort, data, family = case("all there is")
    point = random_point(cohort, np.random.default_rng(82), family)
    logp, dlogp = functions("all there is")
    wanted = float(logp(point)) - constant(data, cohort)
    slope = as_sampled(np.asarray(dlogp(point)), data, cohort, point)
    for key in ("prior_mean", "level_sd", "run_table", "bin_table"):
        other = data | {key: 1.001 * data[key]}
        value, gradient = value_and_slope(other, cohort, point)
        assert abs(value - wanted) > 1e-5, key
        assert np.abs(gradient - slope).max() > 1e-5, key


def test_model_names_its_dims_and_variables_as_the_draws_are_named():
    cohort, model = case("all there is")[0], model_of("all there is")
    dims = {
        "population": ("population_term",),
        "task_level": ("task_term", "task"),
        "start_logit": ("group",),
        "eval_level": ("eval_term", "group"),
        "group_offset": ("group_term", "group"),
        "run_offset": ("run_term", "run"),
    }
    assert {name: tuple(model.named_vars_to_dims[name]) for name in dims} == dims
    assert [variable.name for variable in model.free_RVs] == list(dims)
    assert list(shapes_of(shape_of(cohort))) == list(dims)
    assert tuple(model.coords["population_term"]) == POPULATION
    assert tuple(model.coords["run_term"]) == RUN_EFFECTS
    levels = (*model.coords["task_term"], "start_logit", *model.coords["eval_term"])
    assert levels == LEVELS
    sizes = tuple(len(model.coords[name]) for name in ("task", "group", "run"))
    assert sizes == shape_of(cohort)
    assert {variable.name for variable in model.data_vars} == set(case("all there is")[1])


def test_model_takes_the_data_of_another_cohort_of_its_shape():
    """With other priors, another family and another number of bins."""
    cohort, data, family = case("all there is")
    other = without_bins(cohort, 0)
    assert other.reward.size < cohort.reward.size
    replaced = data_of(other, load_priors("lora"), FAMILIES["oscillator"])
    point = random_point(cohort, np.random.default_rng(83), family)
    model, (logp, dlogp) = model_of("all there is"), functions("all there is")
    before = float(logp(point))
    try:
        for key, values in replaced.items():
            model[key].set_value(np.asarray(values))
        value, gradient = value_and_slope(replaced, other, point)
        assert float(logp(point)) - constant(replaced, other) == pytest.approx(value, rel=1e-10)
        slope = as_sampled(np.asarray(dlogp(point)), replaced, other, point)
        np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-8)
        assert abs(float(logp(point)) - before) > 10
    finally:
        for key, values in data.items():
            model[key].set_value(np.asarray(values))
    assert float(logp(point)) == before


# Coordinates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_coordinates_of_the_sampler_have_a_way_back(name):
    cohort, data, family = case(name)
    block = pack(data, shape_of(cohort))
    for seed in range(3):
        vector = flat(random_point(cohort, np.random.default_rng([92, seed]), family))
        there = sampled(vector, block)
        np.testing.assert_allclose(natural(there, block), vector, rtol=1e-12, atol=1e-12)
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


def test_coordinates_of_the_sampler_keep_volumes():
    """So that its density is that of the model at the same point."""
    cohort, data, family = case("two tasks")
    block = pack(data, shape_of(cohort))
    for seed in range(5):
        vector = flat(random_point(cohort, np.random.default_rng([93, seed]), family))
        slopes = jacobian(lambda at: natural(at, block), sampled(vector, block))
        assert abs(np.linalg.det(slopes)) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("balance", [-1e3, -40.0, -29.9, 0.0, 29.9, 40.0, 1e3])
def test_way_back_holds_where_one_part_is_nothing(balance):
    cohort, data, family = case("two tasks")
    block = pack(data, shape_of(cohort))
    vector = flat(random_point(cohort, np.random.default_rng(94), family))
    loss = POPULATION.index("plateau_loss.level")
    vector[loss] = balance
    there = sampled(vector, block)
    assert np.all(np.isfinite(there))
    np.testing.assert_allclose(natural(there, block), vector, rtol=1e-9)
    moved = there + 0.1
    np.testing.assert_allclose(sampled(natural(moved, block), block), moved, rtol=1e-9)


# Data ------------------------------------------------------------------------------------------


def test_block_holds_its_own_size_first():
    cohort, data, _ = case("oscillator")
    block = pack(data, shape_of(cohort))
    numbers = [data[name] for name in data if name != "is_oscillator"]
    assert block[0] == block.size
    np.testing.assert_array_equal(
        block[-sum(values.size for values in numbers) :],
        np.concatenate([values.ravel() for values in numbers]),
    )
    assert tuple(block[2:5]) == shape_of(cohort)
    assert block.dtype == np.float64
    assert block.flags.c_contiguous


COLUMNS = [
    (key, column)
    for key, count in (("run_table", 31), ("bin_table", 10), ("parents", 2))
    for column in range(count)
]


def test_tables_have_the_columns_that_are_tested():
    data = case("all there is")[1]
    for key in ("run_table", "bin_table", "parents"):
        assert data[key].shape[1] == sum(of == key for of, _ in COLUMNS)


@pytest.mark.parametrize(("key", "column"), COLUMNS)
def test_each_column_of_the_data_counts(key, column):
    cohort, data, family = case("all there is")
    point = random_point(cohort, np.random.default_rng(84), family)
    before, _ = value_and_slope(data, cohort, point)
    table = data[key].copy()
    # Exchanged rather than moved, so that an index stays one and a weight a share.
    table[:, column] = np.roll(table[:, column], 1)
    after, _ = value_and_slope(data | {key: table}, cohort, point)
    if np.array_equal(table, data[key]):
        # All runs are alike in this: the intercept of a law.
        table[:, column] = 0.9
        after, _ = value_and_slope(data | {key: table}, cohort, point)
    assert abs(after - before) > 1e-6


@pytest.mark.parametrize("key", ["prior_mean", "prior_sd", "level_mean", "level_sd"])
def test_each_prior_counts(key):
    cohort, data, family = case("two tasks")
    point = random_point(cohort, np.random.default_rng(85), family)
    before, _ = value_and_slope(data, cohort, point)
    for index in range(data[key].size):
        moved = data[key].copy()
        moved[index] += 0.1
        after, _ = value_and_slope(data | {key: moved}, cohort, point)
        assert abs(after - before) > 1e-6


@pytest.mark.parametrize("name", SCENARIOS)
def test_density_is_finite_and_alive_at_every_start(name):
    cohort = simulated(name)
    data = data_of(cohort, PRIORS)
    for seed in range(4):
        rng = np.random.default_rng([86, seed])
        start = start_points(cohort, PRIORS)
        shapes = shapes_of(shape_of(cohort))
        point = {key: start.get(key, rng.uniform(-1, 1, size)) for key, size in shapes.items()}
        assert start.keys() <= shapes.keys()
        value, gradient = value_and_slope(data, cohort, point)
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))
        # The sampler refuses a start at which a coordinate has no slope.
        assert np.all(gradient != 0)


@pytest.mark.parametrize("family", ["spectrum", "oscillator"])
@pytest.mark.parametrize(
    ("preset", "reach"), [("small_models", 4), ("lora", 4), ("uninformative", 2)]
)
def test_density_is_finite_far_from_the_prior_means(preset, reach, family):
    """Everywhere within so many prior standard deviations in every direction at once."""
    cohort, priors = simulated("all there is"), load_priors(preset)
    data = data_of(cohort, priors, FAMILIES[family])
    block = pack(data, shape_of(cohort))
    density = density_of(block)
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
            value, gradient = density(sampled(place, block))
            assert np.isfinite(value)
            assert np.all(np.isfinite(gradient))
    assert widest > 20


# C ---------------------------------------------------------------------------------------------

REAL = ctypes.POINTER(ctypes.c_double)
SIZE = ctypes.c_uint64
DENSITY = ctypes.CFUNCTYPE(ctypes.c_int64, SIZE, REAL, REAL, REAL, ctypes.c_void_p)
EXPAND = ctypes.CFUNCTYPE(ctypes.c_int64, SIZE, SIZE, REAL, REAL, ctypes.c_void_p)


def real(values):
    return values.ctypes.data_as(REAL)


def through_c(block, vector):
    """Return code, value and gradient of the density's C address."""
    gradient, value = np.full(vector.size, np.nan), np.full(1, np.nan)
    function = DENSITY(density_callback.address)
    code = function(vector.size, real(vector), real(gradient), real(value), block.ctypes.data)
    return code, value[0], gradient


@pytest.mark.parametrize("name", CASES)
def test_density_through_its_address_is_that_from_python(name):
    cohort, data, family = case(name)
    block = pack(data, shape_of(cohort))
    for seed in range(3):
        vector = flat(random_point(cohort, np.random.default_rng([89, seed]), family))
        gradient = np.empty_like(vector)
        value = log_density(vector, block, gradient)
        code, found, slope = through_c(block, vector)
        assert code == 0
        assert found == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(slope, gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e4])
def test_point_without_a_finite_density_is_refused(broken):
    cohort, data, family = case("two tasks")
    block = pack(data, shape_of(cohort))
    vector = flat(random_point(cohort, np.random.default_rng(90), family))
    assert through_c(block, vector)[0] == 0
    for index in (POPULATION.index("log_noise_scale"), vector.size - 1):
        if broken == 1e4 and index == vector.size - 1:
            continue  # far away, but a number
        moved = vector.copy()
        moved[index] = broken
        assert through_c(block, moved)[0] > 0


@pytest.mark.parametrize("name", CASES)
def test_draws_are_kept_with_luck_in_place_of_offsets(name):
    cohort, data, family = case(name)
    block = pack(data, shape_of(cohort))
    vector = flat(random_point(cohort, np.random.default_rng(91), family))
    kept = np.full(vector.size, np.nan)
    function = EXPAND(expand_callback.address)
    assert function(vector.size, vector.size, real(vector), real(kept), block.ctypes.data) == 0
    wanted, found = unflat(natural(vector, block), cohort), unflat(kept, cohort)
    luck = np.empty_like(wanted["run_offset"])
    names = ("population", "task_level", "start_logit", "group_offset", "run_offset")
    parts = (np.ascontiguousarray(wanted[name]) for name in names)
    luck_of_runs(*parts, data["run_table"], data["parents"], luck)
    np.testing.assert_allclose(found.pop("run_offset"), luck, rtol=1e-12)
    offsets = wanted.pop("run_offset")
    for key, values in wanted.items():
        np.testing.assert_array_equal(found[key], values)
    is_placed = CASES[name][2]
    assert np.any(np.abs(luck - offsets) > 0.1) == is_placed
