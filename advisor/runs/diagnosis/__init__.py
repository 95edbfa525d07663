"""What is wrong with a run; needs no sampler, optimiser or plotting."""

from advisor.runs.diagnosis.card import MODES, Card
from advisor.runs.diagnosis.collapse import Collapse, find_collapse
from advisor.runs.diagnosis.diagnose import Diagnosis, diagnose

__all__ = ["MODES", "Card", "Collapse", "Diagnosis", "diagnose", "find_collapse"]
