"""The advice: a configuration that meets a probabilistic stability margin, and its reasons."""

from advisor.advice.answer import check_request, recommend
from advisor.advice.candidates import Lattice
from advisor.advice.cost import Cost, CostModel, learn_cost
from advisor.advice.objective import Budget, Objective
from advisor.advice.recommendation import Alternative, NextPilot, Recommendation
from advisor.advice.scenario import what_if
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
    "Stability",
    "check_request",
    "learn_cost",
    "recommend",
    "stability",
    "what_if",
]
