"""A posterior of made-up draws, and runs that its own laws make."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import made_up_posterior
from watched import PLAN, PLANS


@pytest.fixture(scope="session")
def posterior():
    return made_up_posterior(PLANS, draws=500, width=0.15)


@pytest.fixture
def rows():
    """Rewards of a healthy run that ends at 0.8, with the noise of 128 completions."""
    rng = np.random.default_rng(5)
    mean = 0.8 - 0.6 * np.exp(-np.arange(PLAN.steps) / 20)
    return rng.binomial(128, mean) / 128
