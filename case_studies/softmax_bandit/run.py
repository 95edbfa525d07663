"""The paper's predictions on softmax bandits: stiffness, transition, threshold, group size.

python case_studies/softmax_bandit/run.py [--quick]      # two minutes on two cores
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from simulator import Bandit, Plan, softmax, train

import advisor
from advisor.dynamics import oscillatory_onset, stiffness_limit

FloatArray = npt.NDArray[np.float64]
HERE = Path(__file__).parent
BANDIT = Bandit()
HALVINGS = 18


def modes() -> dict[str, Any]:
    """Stiffness by finite differences against the relaxation of the exact recursion."""
    found = BANDIT.curvatures()
    curvature = float(found[0])
    start = BANDIT.fixed_point() + 1e-4 * BANDIT.stiffest()
    rate = 0.02 / curvature
    path = train(BANDIT, Plan(rate), start, 200)
    distance = np.linalg.norm(path - BANDIT.fixed_point(), axis=1)
    measured = float(-np.log(distance[-1] / distance[0]) / 200)
    return {
        "curvatures": found.round(6).tolist(),
        "stiffness_by_differences": rate * curvature,
        "stiffness_by_relaxation": measured,
    }


def swings(plan: Plan, steps: int) -> bool:
    """Whether the distance along the stiffest mode changes its sign."""
    direction = BANDIT.stiffest()
    path = train(BANDIT, plan, BANDIT.fixed_point() + 1e-4 * direction, steps)
    along = (path - BANDIT.fixed_point()) @ direction
    return bool(np.any(along < -1e-9))


def grows(plan: Plan, steps: int) -> bool:
    """Whether a small distance from the fixed point has grown."""
    start = BANDIT.fixed_point() + 1e-6 * BANDIT.stiffest()
    path = train(BANDIT, plan, start, steps)
    distance = np.linalg.norm(path - BANDIT.fixed_point(), axis=1)
    tail = distance[-steps // 4 :]
    return bool(not np.all(np.isfinite(tail)) or tail.max() > 1e-6)


def threshold(test: Any, low: float, high: float) -> float:
    """Smallest stiffness at which a test holds, by bisection of its logarithm."""
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if test(middle) else (middle, high)
    return float(np.sqrt(low * high))


def transition() -> list[dict[str, float]]:
    """Onset of oscillation on policy, by momentum."""
    curvature = float(BANDIT.curvatures()[0])
    rows = []
    for momentum in (0.5, 0.8, 0.9, 0.95):
        predicted = float(oscillatory_onset(momentum))
        measured = threshold(
            lambda k, m=momentum: swings(Plan(k / curvature, m), 4000), predicted / 3, predicted * 3
        )
        rows.append({"momentum": momentum, "predicted": predicted, "measured": measured})
    return rows


def refresh(quick: bool) -> list[dict[str, float]]:
    """Stiffness at which held samples diverge, by momentum, interval and lag."""
    curvature = float(BANDIT.curvatures()[0])
    rows = []
    for momentum in (0.0, 0.9):
        for interval in (2, 8) if quick else (2, 4, 8, 16, 64):
            for cycles in (0, 1) if quick else (0, 1, 2):
                exact = float(stiffness_limit(momentum, interval, 1.0, cycles * interval))
                measured = threshold(
                    lambda k, m=momentum, i=interval, c=cycles: grows(
                        Plan(k / curvature, m, i, c), 40 * i + 400
                    ),
                    exact / 4,
                    exact * 4,
                )
                rows.append(
                    {
                        "momentum": momentum,
                        "interval": interval,
                        "lag_cycles": cycles,
                        "map": exact,
                        "paper": 1 / interval,
                        "measured": measured,
                    }
                )
    return rows


def fluctuation(plan: Plan, steps: int, seeds: int) -> tuple[float, float, float]:
    """Mean reward, variance of the stiffest mode, and its lag-one correlation, once settled."""
    direction = BANDIT.stiffest()
    along, rewards = [], []
    for seed in range(seeds):
        path = train(BANDIT, plan, BANDIT.fixed_point(), steps, seed)[steps // 4 :]
        along.append((path - BANDIT.fixed_point()) @ direction)
        rewards.append(np.mean([softmax(row) @ BANDIT.rewards for row in path[::10]]))
    values = np.array(along)
    around = values - values.mean()
    lag = float((around[:, 1:] * around[:, :-1]).mean() / (around**2).mean())
    return float(np.mean(rewards)), float((around**2).mean()), lag


def sampled_threshold(quick: bool) -> list[dict[str, float]]:
    """Fluctuation with real samples through the threshold, held against corrected."""
    curvature = float(BANDIT.curvatures()[0])
    rows = []
    for momentum, interval in ((0.0, 8), (0.9, 16)):
        limit = float(stiffness_limit(momentum, interval, 1.0))
        calm = None
        for share in (0.1, 0.5, 0.8, 0.95, 1.1, 1.5):
            row: dict[str, float] = {"momentum": momentum, "interval": interval, "share": share}
            for samples in ("held", "corrected"):
                plan = Plan(
                    share * limit / curvature, momentum, interval, samples=samples, group_size=16
                )
                seeds = 2 if quick else 8
                row[samples] = fluctuation(plan, 1500 if quick else 4000, seeds)[1] / share
            calm = calm or row["held"]
            row["held"] /= calm
            row["corrected"] /= calm
            rows.append(row)
    return rows


def group_sizes(quick: bool) -> list[dict[str, Any]]:
    """What a group size does to mean, fluctuation and speed, plain, normalised and under AdamW."""
    rows: list[dict[str, Any]] = []
    steps, seeds = (1500, 2) if quick else (6000, 8)
    for optimizer, scaling in (
        ("sgd", "leave_one_out"),
        ("sgd", "none"),
        ("sgd", "group"),
        ("adamw", "leave_one_out"),
    ):
        for group in (2, 4, 8, 16, 32):
            rate = 0.02 if optimizer == "sgd" else 2e-3
            plan = Plan(rate, 0.9, groups=4, group_size=group, scaling=scaling, optimizer=optimizer)
            mean, variance, lag = fluctuation(plan, steps, seeds)
            rows.append(
                {
                    "optimizer": optimizer,
                    "scaling": scaling,
                    "group_size": group,
                    "reward": mean,
                    "variance": variance,
                    "lag_one": lag,
                    "half_time": half_time(plan, 4 if quick else 16),
                }
            )
    return rows


def half_time(plan: Plan, seeds: int) -> float:
    """Steps to half of the gain from the uniform policy, mean over seeds."""
    target = softmax(BANDIT.fixed_point()) @ BANDIT.rewards
    times = []
    for seed in range(seeds):
        path = train(BANDIT, plan, np.zeros_like(BANDIT.rewards), 3000, seed)
        reward = np.array([softmax(row) @ BANDIT.rewards for row in path])
        half = (reward[0] + target) / 2
        times.append(float(np.argmax(reward >= half)) if (reward >= half).any() else np.nan)
    return float(np.nanmean(times))


def slopes(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Exponents of the group size in variance and speed."""
    out = {}
    for name in sorted({f"{r['optimizer']}, {r['scaling']}" for r in rows}):
        own = [r for r in rows if f"{r['optimizer']}, {r['scaling']}" == name]
        size = np.log([r["group_size"] for r in own])
        speed = -np.log([r["half_time"] for r in own])
        out[name] = {
            "variance": float(np.polyfit(size, np.log([r["variance"] for r in own]), 1)[0]),
            "speed": float(np.polyfit(size, speed, 1)[0]),
            "reward_spread": float(np.ptp([r["reward"] for r in own])),
        }
    return out


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw predicted against measured thresholds, and the fluctuation through one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = found["refresh"]
    exact = [r["map"] * r["interval"] for r in rows]
    left.plot([0.2, 5], [0.2, 5], color="#c4c4c4", lw=1)
    for cycles, colour in ((0, "#0072B2"), (1, "#E69F00"), (2, "#009E73")):
        own = [r for r in rows if r["lag_cycles"] == cycles]
        left.plot(
            [r["map"] * r["interval"] for r in own],
            [r["measured"] * r["interval"] for r in own],
            "o",
            color=colour,
            label=f"{cycles} cycles old",
        )
    left.axvline(1, color="#D55E00", ls="--", lw=1)
    left.annotate("the paper's rule", (1, max(exact)), color="#D55E00", ha="right", rotation=90,
                  va="top", fontsize=8)  # fmt: skip
    left.set(xlabel="k K at the limit of the refresh map", ylabel="k K where the bandit diverges")
    left.legend(frameon=False, fontsize=8)
    for momentum, colour in ((0.0, "#0072B2"), (0.9, "#E69F00")):
        own = [r for r in found["sampled_threshold"] if r["momentum"] == momentum]
        for samples, style in (("held", "o-"), ("corrected", "s--")):
            right.semilogy(
                [r["share"] for r in own],
                [r[samples] for r in own],
                style,
                color=colour,
                label=f"momentum {momentum:g}, {samples}",
            )
    right.axvline(1, color="#666666", lw=1)
    right.set(xlabel="stiffness over its limit", ylabel="variance over learning rate, relative")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run every part, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    started = time.perf_counter()
    sizes = group_sizes(asked.quick)
    found: dict[str, Any] = {
        "modes": modes(),
        "transition": transition(),
        "refresh": refresh(asked.quick),
        "sampled_threshold": sampled_threshold(asked.quick),
        "group_size": sizes,
        "group_size_exponents": slopes(sizes),
        "manifest": {
            "advisor": advisor.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "quick": asked.quick,
        },
    }
    seconds = round(time.perf_counter() - started)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "bandit.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found, asked.out / "bandit.svg")
    print(json.dumps({k: v for k, v in found.items() if k != "group_size"}, indent=1))
    print(f"{seconds} s")


if __name__ == "__main__":
    main()
