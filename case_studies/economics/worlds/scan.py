"""Choose the learning rates of the worlds by short runs: `scan.py [WORLD ...]`.

Eight rates, groups of 8, refreshes of 4 minibatches, a third of the steps. The fatal rate is the
lowest above the best one whose last ten steps earn less than half of the best one's. The grid of a
world reaches from a hundredth of it to a little above it; for worlds of late death it starts at
half of it. Where no run learns in that time, or none dies, a usual fatal rate stands in.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import torch
from base import make_base
from plan import BY_NAME, RATES_PATH, Run, World
from train import train_runs

SCANNED = {
    "adamw": [3e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2],
    "sgd": [3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0, 30.0, 100.0],
}
USUAL_FATAL = {"adamw": 1e-2, "sgd": 1.0}
LEARNED = 0.1  # mean reward below which a scan says nothing
RELATIVE_WIDTH = 16  # rates are those of this width; wider models are scanned at lower ones
GROUP_SIZE, REFRESH, AVERAGED, SCAN_SEED = 8, 4, 10, 99
ABOVE, SPAN, RATES = 1.5, 150.0, 7
LATE_ABOVE, LATE_SPAN, LATE_RATES = 1.1, 2.2, 6


def scan(world: World) -> dict[str, list[float]]:
    """Train the short runs of a world and choose its grid."""
    problem, shape, base = make_base(world)
    shortened = replace(world, steps=max(60, world.steps // 3))
    factor = (RELATIVE_WIDTH / shape.width) / world.scale
    rates = [float(f"{rate * factor:.2g}") for rate in SCANNED[world.optimizer]]
    prompts = world.prompts_of(GROUP_SIZE)
    members = [Run(rate, GROUP_SIZE, REFRESH, prompts, SCAN_SEED) for rate in rates]
    _, series = train_runs(shortened, problem, shape, base, members)
    ends = np.mean(series["reward"][-AVERAGED:], axis=0)
    best = int(ends.argmax())
    dead = [
        rate for rate, end in zip(rates[best:], ends[best:], strict=True) if end < ends[best] / 2
    ]
    usual = USUAL_FATAL[world.optimizer] * factor
    fatal = dead[0] if dead and ends[best] >= LEARNED else usual
    above, span, count = (LATE_ABOVE, LATE_SPAN, LATE_RATES) if world.late else (ABOVE, SPAN, RATES)
    grid = np.geomspace(fatal * above / span, fatal * above, count)
    return {
        "grid": [float(f"{rate:.2g}") for rate in grid],
        "scanned": rates,
        "scan_rewards": [round(float(end), 4) for end in ends],
    }


def main() -> None:
    """Scan the worlds named, or all that have no rates yet."""
    torch.set_num_threads(1)
    known = json.loads(RATES_PATH.read_text(encoding="utf-8")) if RATES_PATH.exists() else {}
    for name in sys.argv[1:] or [name for name in BY_NAME if name not in known]:
        found = scan(BY_NAME[name])
        # Read again: another process may have scanned other worlds meanwhile.
        known = json.loads(RATES_PATH.read_text(encoding="utf-8")) if RATES_PATH.exists() else {}
        known[name] = found
        text = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in sorted(known.items()))
        partial = RATES_PATH.with_suffix(f".{name}")
        partial.write_text("{\n" + text + "\n}\n", encoding="utf-8")
        partial.replace(RATES_PATH)
        print(name, found["grid"], found["scan_rewards"], flush=True)


if __name__ == "__main__":
    main()
