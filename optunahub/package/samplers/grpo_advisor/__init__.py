"""Sampler for studies whose trials are GRPO runs: the class of the installed wheel."""

from advisor.optuna import AdvisorSampler

__all__ = ["AdvisorSampler"]
