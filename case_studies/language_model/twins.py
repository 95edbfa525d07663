"""Whether seeds of one setting end alike: how often the second falls where the first fell.

A setting is all arguments of a run but its seed, with its length. A run fell by the advisor's rule
for pilots, and every ordered pair of seeds counts.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from run_store import packed_places, unpack
from trained_runs import trained

from advisor.diagnosis.collapse import find_any_fall

LEAST_ROWS = 4


def result() -> dict[str, Any]:
    """Ordered pairs by whether the first fell, and how many of their seconds fell."""
    settings: dict[tuple[Any, ...], dict[int, bool]] = defaultdict(dict)
    for place in packed_places():
        for run in trained(unpack(place)):
            step, reward = run.rewards
            if reward.size >= LEAST_ROWS:
                fell = find_any_fall(step, reward, 0.0, prompts=4).unstable
                settings[place, run.configuration, run.steps][run.own["seed"]] = bool(fell)
    several = [list(seeds.values()) for seeds in settings.values() if len(seeds) > 1]
    found: dict[str, Any] = {"settings": len(several), "with a fall": sum(map(any, several))}
    for name, fell in (("fell", True), ("lived", False)):
        firsts = [(seeds, at) for seeds in several for at, one in enumerate(seeds) if one is fell]
        others = [seeds[:at] + seeds[at + 1 :] for seeds, at in firsts]
        found[f"first {name}"] = {"pairs": sum(map(len, others)), "fell": sum(map(sum, others))}
    return found
