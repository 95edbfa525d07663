"""For tests of one's own: simulated runs, made-up posteriors, conformance of readers."""

from advisor.testing.reader_conformance import ReaderConformance
from advisor.testing.simulate import (
    PLANS,
    Plan,
    Truth,
    cohort_of_plans,
    made_up_posterior,
    prior_means,
    rising,
    simulate_run,
    simulate_runs,
)

__all__ = [
    "PLANS",
    "Plan",
    "ReaderConformance",
    "Truth",
    "cohort_of_plans",
    "made_up_posterior",
    "prior_means",
    "rising",
    "simulate_run",
    "simulate_runs",
]
