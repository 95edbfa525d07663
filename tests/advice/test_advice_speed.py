"""The search within a person's patience, at the draws that a forecast keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from decisions import decision, searched
from processor_time import at_most
from simulated_runs import PLANS, made_up_posterior

TRIALS, DRAWS = 300, 4000


@pytest.mark.evidence
# A lag of no other test: limits of refresh schedules that were looked up before are kept.
@pytest.mark.parametrize("lag", [None, 43.0])
def test_search_takes_seconds(lag):
    posterior = made_up_posterior([replace(plan, lag=lag) for plan in PLANS], draws=DRAWS // 2)
    evaluate, lattice = decision(posterior, draws=DRAWS)
    assert len(evaluate.forecaster.population["log_misfit"]) == DRAWS
    assert len(lattice) > TRIALS
    # Measured: 1.2 s, and 2.8 s with the lag, whose limits are looked up first.
    with at_most(20):
        best, _ = searched(evaluate, lattice, trials=TRIALS)
    assert best is not None
