"""Real GRPO runs, replayed: the problem of the installed wheel under the registry's base class."""

from advisor.optuna import ReplayProblem

try:
    from optunahub.benchmarks import BaseProblem
except ImportError:  # the package file also serves where OptunaHub is not installed
    BaseProblem = object


class Problem(ReplayProblem, BaseProblem):
    """See :class:`advisor.optuna.ReplayProblem`."""


__all__ = ["Problem"]
