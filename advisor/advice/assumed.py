"""Which of the many things that an answer assumed can change it, and so are said first."""

from __future__ import annotations

import re
from collections.abc import Sequence

SAID = 3
"""Assumptions that are written out beside an answer."""

WEIGHTY = (
    r"the chains agree only loosely",
    r"adapter = .* assumed",
    r"reward ceiling .* assumed",
    r"planned steps = ",
    r"learning rates stop at ",
    r"(minibatches|epochs)_per_refresh = .* assumed",
    r"group_size = .* assumed|prompts_per_step = .* assumed",
    r"parameters = .* assumed",
    r"reward floor .* assumed",
    r"price of a step",
    r"prior preset ",
    r"target = ",
)
"""What an assumption that matters begins with, the weightiest first: what the forecast is of (full
weights or an adapter, the range of the reward, the length of the run), then what a step is, then
what the pilots are believed to be alike to."""


def weightiest(assumptions: Sequence[str], most: int = SAID) -> tuple[list[str], int]:
    """Assumptions that matter most, and how many others there are."""

    def rank(line: str) -> int:
        found = (place for place, begins in enumerate(WEIGHTY) if re.match(begins, line))
        return next(found, len(WEIGHTY))

    ordered = sorted(assumptions, key=rank)
    return ordered[:most], max(0, len(ordered) - most)
