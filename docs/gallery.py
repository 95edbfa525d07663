"""Draw the cases of the front page from committed runs and forecasts.

python docs/gallery.py
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STUDIES = HERE.parent / "case_studies"
sys.path[:0] = [str(STUDIES), str(STUDIES / "language_model")]

import numpy as np  # noqa: E402
from matplotlib import rc_context  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from run_store import unpack  # noqa: E402
from said import KINDS  # noqa: E402
from trained_runs import Trained, trained  # noqa: E402

PILOT_STEPS, SMOOTHED = 12, 5
PILOTS = {3e-6: "#0072B2", 1e-5: "#009E73", 3e-5: "#E69F00", 1e-4: "#D55E00"}
OUTSIDE, INSIDE = "#D55E00", "#0072B2"
QUARTER, LOW, MIDDLE, HIGH = 0.25, 1, 3, 5
"""Share of a public run that was seen; places of the 10, 50 and 90 % quantiles."""


def smoothed(run: Trained, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Trailing mean of the rewards up to a step."""
    step, reward = run.rewards
    step, reward = step[step <= until], reward[step <= until]
    kernel = np.ones(SMOOTHED) / SMOOTHED
    return step[SMOOTHED - 1 :], np.convolve(reward, kernel, "valid")


def sweep(axes: Axes, task: str) -> None:
    """Four pilots, the rest of these runs, the forecast of the advised rate."""
    loop = json.loads((STUDIES / "language_model/loop.json").read_text(encoding="utf-8"))
    (one,) = [one for one in loop["tasks"] if one["task"] == task]
    ladder = {
        run.configuration.rate: run
        for run in trained(unpack(task))
        if KINDS["full"].on_ladder(run) and run.own["seed"] == 1
    }
    for rate, colour in PILOTS.items():
        run = ladder[rate]
        axes.plot(*smoothed(run, run.steps), color=colour, lw=1.2, alpha=0.6)
        axes.plot(*smoothed(run, PILOT_STEPS), color=colour, lw=3, label=f"{rate:g}")
    axes.axvline(PILOT_STEPS, color="#888888", lw=0.8, ls=":")
    low, middle, high = one["said"]["interval"]
    axes.errorbar(
        [63], [middle], [[middle - low], [high - middle]], fmt="o", color="black", capsize=3
    )
    axes.set(xlabel="optimizer step", ylabel="train reward", ylim=(-0.03, 1.03), xlim=(0, 66))
    axes.legend(title="learning rate", frameon=False, fontsize=8, title_fontsize=8, ncols=2)


def public(axes: Axes) -> None:
    """Forecast and outcome of the third folder's runs with rewards in [0, 1], a quarter seen."""
    path = STUDIES / "real_runs/pool.predictions.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    key = ("third_real_logs", QUARTER)
    rows = [
        (one["quantiles"][LOW], one["quantiles"][MIDDLE], one["quantiles"][HIGH], one["target"])
        for one in found
        if (one["folder"], one["share"]) == key
        and min(*one["quantiles"], one["target"]) >= 0
        and max(*one["quantiles"], one["target"]) <= 1
    ]
    rows.sort(key=lambda row: row[1])
    for place, (low, middle, high, outcome) in enumerate(rows):
        colour = INSIDE if low <= outcome <= high else OUTSIDE
        axes.plot([place, place], [low, high], color="#bbbbbb", lw=2)
        axes.plot([place], [middle], "_", color="#555555")
        axes.plot([place], [outcome], "o", ms=3.5, color=colour)
    axes.plot([], [], color="#bbbbbb", lw=2, label="80 % interval")
    axes.plot([], [], "o", ms=3.5, color=INSIDE, label="outcome, inside")
    axes.plot([], [], "o", ms=3.5, color=OUTSIDE, label="outcome, outside")
    axes.set(
        xlabel=f"{len(rows)} public runs", ylabel="final reward", ylim=(-0.03, 1.03), xticks=[]
    )
    axes.legend(frameon=False, fontsize=8)
    print(f"{len(rows)} runs, {sum(low <= came <= high for low, _, high, came in rows)} inside")


def main() -> None:
    """Write one SVG per case."""
    with rc_context({"svg.hashsalt": "gallery", "font.size": 9}):
        for name in ("sums", "json", "reversed", "count", "public"):
            figure = Figure(figsize=(5.2, 3.1), layout="constrained")
            axes = figure.subplots()
            axes.spines[["top", "right"]].set_visible(False)
            sweep(axes, name) if name != "public" else public(axes)
            figure.savefig(HERE / "gallery" / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
