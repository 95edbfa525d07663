"""Drop-in parts for an Optuna study whose trials are GRPO runs, short or full."""

from advisor.optuna.pruner import AdvisorPruner
from advisor.optuna.replay import ReplayProblem
from advisor.optuna.sampler import AdvisorSampler
from advisor.optuna.trials import pilots_of_study

__all__ = ["AdvisorPruner", "AdvisorSampler", "ReplayProblem", "pilots_of_study"]
