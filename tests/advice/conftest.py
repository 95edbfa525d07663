"""Answers that many tests look at; none of them changes one."""

from __future__ import annotations

import pytest
from decisions import HOT
from simulated_runs import Plan, made_up_posterior, without_line

from advisor.advice import advise


@pytest.fixture(scope="session")
def advice(posterior):
    return advise(posterior)


@pytest.fixture(scope="session")
def infeasible():
    return advise(without_line(made_up_posterior(moved=HOT)))


@pytest.fixture(scope="session")
def first_contact():
    return advise(without_line(made_up_posterior([Plan()])))
