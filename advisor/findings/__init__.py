"""What may be said of a posterior: identifiability, design, sensitivity, learned priors."""

from advisor.findings.design import informed_share
from advisor.findings.gates import at_pilot, middle_pilot, prior_groups
from advisor.findings.history import read_history, read_posteriors
from advisor.findings.learned_priors import (
    PastStudy,
    check_name,
    check_studies,
    learn_from_studies,
    refuse_different_presets,
)
from advisor.findings.run_fit import misfit_caution
from advisor.findings.text import describe, log_prior

__all__ = [
    "PastStudy",
    "at_pilot",
    "check_name",
    "check_studies",
    "describe",
    "informed_share",
    "learn_from_studies",
    "log_prior",
    "middle_pilot",
    "misfit_caution",
    "prior_groups",
    "read_history",
    "read_posteriors",
    "refuse_different_presets",
]
