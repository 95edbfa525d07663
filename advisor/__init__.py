"""Bayesian hyperparameter advice for GRPO runs, from short pilot logs.

Importing the package is cheap: PyMC, ArviZ, Optuna and matplotlib load when they are first needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from advisor import _version

__version__ = _version.VERSION

if TYPE_CHECKING:
    from advisor.advice import CostModel, Objective, Recommendation, recommend, what_if
    from advisor.demo import demo_folder
    from advisor.diagnosis import find_collapse
    from advisor.errors import (
        AdvisorError,
        CannotTellError,
        InputError,
        NotConvergedError,
        StudyError,
    )
    from advisor.integrations.export import export_config
    from advisor.posterior import Forecaster, Posterior, Sampling, Target, fit
    from advisor.posterior.learned_priors import learn_priors
    from advisor.priors import Priors, load_priors, preset_names
    from advisor.report import draw_all, write_report
    from advisor.runs import Hyperparameters, PilotRun, read_runs
    from advisor.runs.survey import survey
    from advisor.study import load_study, write_study
    from advisor.watch import Watch, watch_run

_HOME = {
    "AdvisorError": "advisor.errors",
    "CannotTellError": "advisor.errors",
    "CostModel": "advisor.advice",
    "Forecaster": "advisor.posterior",
    "Hyperparameters": "advisor.runs",
    "InputError": "advisor.errors",
    "NotConvergedError": "advisor.errors",
    "Objective": "advisor.advice",
    "PilotRun": "advisor.runs",
    "Posterior": "advisor.posterior",
    "Priors": "advisor.priors",
    "Recommendation": "advisor.advice",
    "Sampling": "advisor.posterior",
    "StudyError": "advisor.errors",
    "Target": "advisor.posterior",
    "Watch": "advisor.watch",
    "demo_folder": "advisor.demo",
    "draw_all": "advisor.report",
    "export_config": "advisor.integrations.export",
    "find_collapse": "advisor.diagnosis",
    "fit": "advisor.posterior",
    "learn_priors": "advisor.posterior.learned_priors",
    "load_priors": "advisor.priors",
    "load_study": "advisor.study",
    "preset_names": "advisor.priors",
    "read_runs": "advisor.runs",
    "recommend": "advisor.advice",
    "survey": "advisor.runs.survey",
    "watch_run": "advisor.watch",
    "what_if": "advisor.advice",
    "write_report": "advisor.report",
    "write_study": "advisor.study",
}

__all__ = [
    "AdvisorError",
    "CannotTellError",
    "CostModel",
    "Forecaster",
    "Hyperparameters",
    "InputError",
    "NotConvergedError",
    "Objective",
    "PilotRun",
    "Posterior",
    "Priors",
    "Recommendation",
    "Sampling",
    "StudyError",
    "Target",
    "Watch",
    "__version__",
    "demo_folder",
    "draw_all",
    "export_config",
    "find_collapse",
    "fit",
    "learn_priors",
    "load_priors",
    "load_study",
    "preset_names",
    "read_runs",
    "recommend",
    "survey",
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
