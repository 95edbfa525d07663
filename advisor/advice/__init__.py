"""The advice: a configuration that meets a probabilistic stability margin, and its reasons."""

from advisor.advice.answer import check_request, recommend
from advisor.advice.lattice import Lattice
from advisor.advice.recommendation import Alternative, Recommendation
from advisor.advice.stability import Stability, stability

__all__ = [
    "Alternative",
    "Lattice",
    "Recommendation",
    "Stability",
    "check_request",
    "recommend",
    "stability",
]
