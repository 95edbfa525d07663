"""Two studies, or two runs, side by side: what differs; importing needs no PyMC."""

from advisor.compare.compare import compare
from advisor.compare.lines import Comparison, Line, Section

__all__ = ["Comparison", "Line", "Section", "compare"]
