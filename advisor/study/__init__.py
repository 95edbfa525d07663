"""Studies: the folder an answer leaves, and how two of them differ."""

from advisor.study.comparison import compare
from advisor.study.outcomes import Comparison
from advisor.study.study import Study, check_place, is_study

__all__ = [
    "Comparison",
    "Study",
    "check_place",
    "compare",
    "is_study",
]
