"""Bayesian hyperparameter advice for GRPO runs, from short pilot logs.

Importing the package is cheap: PyMC, ArviZ, Optuna and matplotlib load when they are first needed.
Type checkers read the same names from ``__init__.pyi``.
"""

import importlib as _importlib

from advisor.common import VERSION as _VERSION

__version__ = _VERSION

_NAMES = {
    "advisor.advice": "Recommendation Request advise export next_pilot what_if",
    "advisor.advice.pilot_plan": "PilotPlan plan",
    "advisor.advice.piloting": "pilots",
    "advisor.backtesting": "backtest",
    "advisor.diagnosis": "diagnose",
    "advisor.errors": "AdvisorError InputError NotConvergedError",
    "advisor.findings.text": "describe",
    "advisor.forecast.fitting": "fit",
    "advisor.runs.logs": "demo_folder inspect read_runs",
    "advisor.model.posterior": "Posterior",
    "advisor.model.priors": "Priors load_priors",
    "advisor.model.pymc_model": "build_model",
    "advisor.model.sampling": "Sampling",
    "advisor.monitoring": "watch",
    "advisor.reporting": "plot report",
    "advisor.runs.pilot_run": "PilotRun",
    "advisor.runs.settings": "Settings",
    "advisor.study.comparison": "compare",
    "advisor.study.study": "Study",
}
"""Public names by the module that they come from."""

_OLDER = {
    "advisor.advice": "CostModel Search",
    "advisor.errors": "CannotTellError StudyError",
    "advisor.forecast": "Forecaster Target",
    "advisor.model.sampling": "cohort_of",
    "advisor.model.priors": "preset_names",
    "advisor.monitoring": "Watch",
    "advisor.diagnosis": "find_collapse",
    "advisor.runs.logs": "Inspection",
    "advisor.runs.settings": "PartialSettings",
    "advisor.study.comparison": "table",
}
"""Names that 1.0 listed as well; they stay within reach for all of 1.x."""

_HOME = {
    name: home for of in (_NAMES, _OLDER) for home, names in of.items() for name in names.split()
}

__all__ = sorted([*" ".join(_NAMES.values()).split(), "__version__"])


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'advisor' has no attribute '{name}'")
    return getattr(_importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
