"""Bayesian hyperparameter advice for GRPO runs, from short pilot logs.

Importing the package is cheap: PyMC, ArviZ, Optuna and matplotlib load when they are first needed.
Type checkers read the same names from ``__init__.pyi``.
"""

import importlib as _importlib

from advisor.common import VERSION as _VERSION

__version__ = _VERSION

_NAMES = {
    "advisor.advice": "CostModel Recommendation Request Search advise export next_pilot what_if",
    "advisor.advice.pilot_plan": "PilotPlan plan",
    "advisor.advice.piloting": "pilots",
    "advisor.backtesting": "backtest",
    "advisor.diagnosis": "diagnose find_collapse",
    "advisor.errors": "AdvisorError CannotTellError InputError NotConvergedError StudyError",
    "advisor.findings.text": "describe",
    "advisor.forecast.fitting": "fit",
    "advisor.forecast.forecaster": "Forecaster",
    "advisor.forecast.target": "Target",
    "advisor.runs.logs": "Inspection demo_folder inspect read_runs",
    "advisor.model.posterior": "Posterior",
    "advisor.model.priors": "Priors load_priors preset_names",
    "advisor.model.pymc_model": "build_model",
    "advisor.model.sampling": "Sampling cohort_of",
    "advisor.monitoring": "Watch watch",
    "advisor.reporting": "plot report",
    "advisor.runs.pilot_run": "PilotRun",
    "advisor.runs.settings": "PartialSettings Settings",
    "advisor.study.comparison": "compare table",
    "advisor.study.study": "Study",
}
"""Public names by the module that they come from."""

_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'advisor' has no attribute '{name}'")
    return getattr(_importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
