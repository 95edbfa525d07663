"""Bayesian hyperparameter advice for GRPO runs, from short pilot logs.

Importing the package is cheap: PyMC, ArviZ, Optuna and matplotlib load when they are first needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from advisor._version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from advisor.advice import CostModel, Objective, Recommendation, recommend, what_if
    from advisor.diagnosis import find_collapse
    from advisor.errors import (
        AdvisorError,
        CannotTellError,
        InputError,
        NotConvergedError,
        StudyError,
    )
    from advisor.findings.learned_priors import learn_priors
    from advisor.findings.text import describe
    from advisor.forecast.fit import fit
    from advisor.forecast.forecaster import Forecaster, Target
    from advisor.logs import demo_folder, inspect, read_runs
    from advisor.model.posterior import Posterior
    from advisor.model.priors import Priors, load_priors, preset_names
    from advisor.model.sampling import Sampling
    from advisor.monitoring import Watch, watch_run
    from advisor.reporting import draw_all, write_report
    from advisor.run.pilot_run import PilotRun
    from advisor.run.settings import PartialSettings, Settings
    from advisor.study.study import load_study, write_study
    from advisor.trainers.export import export_config

_HOME = {
    "AdvisorError": "advisor.errors",
    "CannotTellError": "advisor.errors",
    "CostModel": "advisor.advice",
    "Forecaster": "advisor.forecast.forecaster",
    "InputError": "advisor.errors",
    "NotConvergedError": "advisor.errors",
    "Objective": "advisor.advice",
    "PartialSettings": "advisor.run.settings",
    "PilotRun": "advisor.run.pilot_run",
    "Posterior": "advisor.model.posterior",
    "Priors": "advisor.model.priors",
    "Recommendation": "advisor.advice",
    "Sampling": "advisor.model.sampling",
    "Settings": "advisor.run.settings",
    "StudyError": "advisor.errors",
    "Target": "advisor.forecast.forecaster",
    "Watch": "advisor.monitoring",
    "describe": "advisor.findings.text",
    "demo_folder": "advisor.logs",
    "draw_all": "advisor.reporting",
    "export_config": "advisor.trainers.export",
    "find_collapse": "advisor.diagnosis",
    "fit": "advisor.forecast.fit",
    "inspect": "advisor.logs",
    "learn_priors": "advisor.findings.learned_priors",
    "load_priors": "advisor.model.priors",
    "load_study": "advisor.study.study",
    "preset_names": "advisor.model.priors",
    "read_runs": "advisor.logs",
    "recommend": "advisor.advice",
    "watch_run": "advisor.monitoring",
    "what_if": "advisor.advice",
    "write_report": "advisor.reporting",
    "write_study": "advisor.study.study",
}

__all__ = [
    "AdvisorError",
    "CannotTellError",
    "CostModel",
    "Forecaster",
    "InputError",
    "NotConvergedError",
    "Objective",
    "PartialSettings",
    "PilotRun",
    "Posterior",
    "Priors",
    "Recommendation",
    "Sampling",
    "Settings",
    "StudyError",
    "Target",
    "Watch",
    "__version__",
    "demo_folder",
    "describe",
    "draw_all",
    "export_config",
    "find_collapse",
    "fit",
    "inspect",
    "learn_priors",
    "load_priors",
    "load_study",
    "preset_names",
    "read_runs",
    "recommend",
    "watch_run",
    "what_if",
    "write_report",
    "write_study",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'advisor' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
