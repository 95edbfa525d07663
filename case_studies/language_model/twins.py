"""How often a run falls where another fell: of one setting, and at three times its learning rate.

A setting is all arguments of a run but its seed, with its length. A run fell by the advisor's rule
for pilots, and every ordered pair counts. Of a rate the pairs with the next rate of its ladder, two
to six times as high, count.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations
from typing import Any

from run_store import packed_places, unpack
from trained_runs import trained

from advisor.diagnosis.collapse import find_any_fall

LEAST_ROWS = 4
NEXT_RATE = (2, 6)
"""Times a learning rate, of the next one of its ladder."""


def result() -> dict[str, Any]:
    """Ordered pairs by whether the first fell, and how many of their seconds fell."""
    ladders: dict[tuple[Any, ...], dict[tuple[float, int], bool]] = defaultdict(dict)
    for place in packed_places():
        for run in trained(unpack(place)):
            step, reward = run.rewards
            if reward.size >= LEAST_ROWS:
                fell = find_any_fall(step, reward, 0.0, prompts=4).unstable
                own = (run.configuration.rate, run.own["seed"])
                setting = (place, run.configuration._replace(rate=0.0), run.steps)
                ladders[setting][own] = bool(fell)
    same, hotter = defaultdict(list), defaultdict(list)
    for runs in ladders.values():
        for ((rate, _), fell), ((other, _), also_fell) in permutations(runs.items(), 2):
            if other == rate:
                same[fell].append(also_fell)
            elif NEXT_RATE[0] <= other / rate <= NEXT_RATE[1]:
                hotter[fell].append(also_fell)
    return {
        name: {"pairs": len(pairs[fell]), "fell": sum(pairs[fell])}
        for name, pairs, fell in (
            ("first fell", same, True),
            ("first lived", same, False),
            ("a lower rate fell", hotter, True),
            ("a lower rate lived", hotter, False),
        )
    }
