"""Pruner for studies whose trials are GRPO runs: the class of the installed wheel."""

from advisor.optuna import AdvisorPruner

__all__ = ["AdvisorPruner"]
