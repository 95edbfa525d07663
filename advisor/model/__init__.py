"""The hierarchical model: its definition in PyMC, parameters, priors, fit and posterior."""

from advisor.model import equations
from advisor.model.cohort import (
    CLOCK_EXPONENTS,
    Cohort,
    Covariates,
    Reference,
    build_cohort,
    clock_table,
    planned_factors,
)
from advisor.model.compat import TRUSTED_K, convergence, density, draw_ranks, smoothed_weights
from advisor.model.equations import (
    DEGREES,
    LEAST_VARIANCE,
    MOST_HAZARD,
    WANDER_SHARE,
    clock_polynomial,
    shifted_share,
    sigmoid,
)
from advisor.model.families import FAMILIES, SPECTRUM, Family, family_of
from advisor.model.fit_clock import FitClock
from advisor.model.observations import Observations
from advisor.model.parameters import (
    GROUP_LEVELS,
    LAWS,
    LEVELS,
    POPULATION,
    RUN_EFFECTS,
    TASK_LEVELS,
)
from advisor.model.posterior import (
    INTERVAL,
    MIN_SIZES,
    Convergence,
    Meta,
    Posterior,
    Provenance,
    RunSummary,
    make_posterior,
)
from advisor.model.presets import all_small, outside_evidence, preset_for
from advisor.model.prior_draws import prior_posterior
from advisor.model.prior_trajectories import (
    BANDS,
    COLLAPSE_STEPS,
    GAIN,
    REFERENCE,
    PriorPredictive,
    prior_predictive,
)
from advisor.model.priors import Priors, load_priors, preset_names
from advisor.model.priors.loader import NO_LINE, Domain, NormalPrior, StabilityLine, preset_folder
from advisor.model.priors.table import prior_entries, prior_table
from advisor.model.priors.text import show_learned, show_preset, show_presets
from advisor.model.priors.writing import check_preset_file, write_preset
from advisor.model.run_residuals import FEWEST_BINS, residuals
from advisor.model.sampling import FIRST_LOOK, Sampling, cohort_of, converged, sampled

__all__ = [
    "BANDS",
    "CLOCK_EXPONENTS",
    "COLLAPSE_STEPS",
    "DEGREES",
    "FAMILIES",
    "FEWEST_BINS",
    "FIRST_LOOK",
    "GAIN",
    "GROUP_LEVELS",
    "INTERVAL",
    "LAWS",
    "LEAST_VARIANCE",
    "LEVELS",
    "MIN_SIZES",
    "MOST_HAZARD",
    "NO_LINE",
    "POPULATION",
    "REFERENCE",
    "RUN_EFFECTS",
    "SPECTRUM",
    "TASK_LEVELS",
    "TRUSTED_K",
    "WANDER_SHARE",
    "Cohort",
    "Convergence",
    "Covariates",
    "Domain",
    "Family",
    "FitClock",
    "Meta",
    "NormalPrior",
    "Observations",
    "Posterior",
    "PriorPredictive",
    "Priors",
    "Provenance",
    "Reference",
    "RunSummary",
    "Sampling",
    "StabilityLine",
    "all_small",
    "build_cohort",
    "check_preset_file",
    "clock_polynomial",
    "clock_table",
    "cohort_of",
    "converged",
    "convergence",
    "density",
    "draw_ranks",
    "equations",
    "family_of",
    "load_priors",
    "make_posterior",
    "outside_evidence",
    "planned_factors",
    "preset_folder",
    "preset_for",
    "preset_names",
    "prior_entries",
    "prior_posterior",
    "prior_predictive",
    "prior_table",
    "residuals",
    "sampled",
    "shifted_share",
    "show_learned",
    "show_preset",
    "show_presets",
    "sigmoid",
    "smoothed_weights",
    "write_preset",
]
