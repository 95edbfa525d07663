"""The advice: a configuration that meets a probabilistic stability margin, and its reasons."""

from advisor.recommend.advice import Alternative, Recommendation
from advisor.recommend.lattice import Lattice
from advisor.recommend.recommend import check_request, recommend
from advisor.recommend.stability import Stability, stability

__all__ = [
    "Alternative",
    "Lattice",
    "Recommendation",
    "Stability",
    "check_request",
    "recommend",
    "stability",
]
