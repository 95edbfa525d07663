"""A log file becomes a `PilotRun`: what was logged, in one set of names, units and steps."""

from advisor.runs.pilot_run import Hyperparameters, PilotRun
from advisor.runs.read import read_runs

__all__ = ["Hyperparameters", "PilotRun", "read_runs"]
