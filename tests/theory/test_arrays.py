"""The theory needs numpy only, and one source serves numbers, arrays and PyTensor graphs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from processes import python
from theory_oracles import stationary_variance

import advisor.theory
from advisor.theory import (
    coefficients,
    damping_ratio,
    namespace,
    oscillatory_onset,
    overdamped_trajectory,
)

HEAVY = (
    "pandas",
    "pymc",
    "pytensor",
    "scipy",
    "matplotlib",
    "arviz",
    "optuna",
    "pydantic",
    "xarray",
)
ROOT = Path(advisor.theory.__file__).parents[2]


def loaded_after(statement):
    """Heavy packages that a fresh interpreter has loaded after one statement."""
    code = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    return python("-W", "error", "-c", code, check=True, env=known).stdout.split()


def test_importing_the_theory_imports_numpy_only():
    assert loaded_after("import advisor.theory") == []


def test_using_the_theory_imports_numpy_only():
    use = "from advisor.theory import *; trajectory(3.0, 0.2, 0.7, coefficients(0.01, 0.9))"
    assert loaded_after(f"{use}; silent_group_share(4, PromptDifficulty(0.3, 2.0))") == []


def test_import_check_sees_a_package_that_is_imported():
    assert "scipy" in loaded_after("import scipy")


@pytest.mark.parametrize(
    "values", [(), (1,), (0.5, 2), (np.arange(3), 1.0), (np.float64(1), [1, 2])], ids=str
)
def test_namespace_is_numpy_without_a_pytensor_value(values):
    assert namespace(*values) is np


@pytest.mark.parametrize(
    "value", [pt.dscalar(), pt.dvector() + 1, pt.constant(2.0), pytensor.shared(1.0)], ids=str
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_namespace_is_pytensor_wherever_a_pytensor_value_stands(value, place):
    values = [1.0, np.arange(3)]
    values.insert(place, value)
    assert namespace(*values) is pt


@pytest.mark.parametrize(
    "function",
    [
        lambda k: coefficients(k, 0.9, 3.5, 0.5).mass,
        lambda k: damping_ratio(coefficients(k, 0.9)),
        lambda k: oscillatory_onset(k),
        lambda k: overdamped_trajectory(5.0, 0.2, 0.7, 1 / k),
        lambda k: stationary_variance(0.01, k / 0.01, 0.9, 32, 8),
    ],
    ids=["mass", "damping_ratio", "oscillatory_onset", "overdamped_trajectory", "variance"],
)
def test_numbers_arrays_and_pytensor_give_the_same_values(function):
    values = np.array([1e-4, 0.01, 0.3])
    symbol = pt.dvector()
    compiled = pytensor.function([symbol], function(symbol), mode="FAST_COMPILE")(values)
    np.testing.assert_allclose(compiled, function(values), rtol=1e-13)
    np.testing.assert_allclose([function(float(v)) for v in values], function(values), rtol=1e-13)
