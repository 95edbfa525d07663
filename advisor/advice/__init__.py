"""The advice: a configuration that meets a probabilistic stability margin, and its reasons."""

from advisor.advice.answer import advise
from advisor.advice.candidates import Lattice
from advisor.advice.cost import Cost, CostModel, learn_cost
from advisor.advice.objective import Budget, Objective
from advisor.advice.pilot_choice import next_pilot
from advisor.advice.recommendation import Alternative, NextPilot, Recommendation
from advisor.advice.request import Request, Search
from advisor.advice.scenario import what_if
from advisor.advice.trainer_config import export
from advisor.forecast.stability import Stability, stability

__all__ = [
    "Alternative",
    "Budget",
    "Cost",
    "CostModel",
    "Lattice",
    "NextPilot",
    "Objective",
    "Recommendation",
    "Request",
    "Search",
    "Stability",
    "advise",
    "export",
    "learn_cost",
    "next_pilot",
    "stability",
    "what_if",
]
