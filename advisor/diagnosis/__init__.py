"""What is wrong with a run; needs no sampler, optimiser or plotting."""

from advisor.diagnosis.collapse import Collapse, find_collapse

__all__ = ["Collapse", "find_collapse"]
