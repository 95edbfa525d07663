"""From TRL pilots to a TRL run as advised, with the callback: as a user would do it, on a CPU.

python case_studies/trl_end_to_end/run.py [--quick] [--out FILE]      # needs the extra trl

A random one-layer Llama and a tokenizer of eight letters, made here: nothing is downloaded. The
reward is the share of a completion's letters that are those of the prompt.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
import yaml  # noqa: E402
from letters import grpo, train  # noqa: E402
from manifest import manifest  # noqa: E402

from advisor.monitoring.trl_callback import AdvisorCallback  # noqa: E402
from advisor.study.study import Study  # noqa: E402

PILOTS = [(1e-3, 4, 1), (1e-3, 8, 1), (3e-3, 8, 1), (3e-3, 4, 2), (1e-2, 8, 1), (3e-2, 8, 1)]
"""Learning rate, group size, iterations."""

PILOT_STEPS, STEPS, SEEDS = 40, 120, 5
QUICK_STEPS, QUICK_SEEDS = 60, 1
LATEST = 12
NAMES = ("model=tiny-llama", "task=letters", "parameters=1.2e4")
"""What a model made in memory cannot say of itself."""


def command(*words: object) -> str:
    """Run the advisor as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "advisor", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return done.stdout


def piloted(folder: Path) -> dict[str, list[float]]:
    """Train the pilots; rewards by name."""
    found = {}
    for rate, group, iterations in PILOTS:
        name = f"lr{rate:g}_g{group}_i{iterations}"
        arguments = grpo(rate, group, iterations, PILOT_STEPS)
        found[name] = train(folder / name, arguments, 1, [])
        last = np.mean(found[name][-5:])
        print(f"{name}: {np.mean(found[name][:5]):.2f} -> {last:.2f}", file=sys.stderr)
    return found


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw the pilots, the runs as advised and as the best pilot, and the forecast."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    groups = (
        ("pilots", found["pilots"].values(), "#9a9a9a"),
        ("best pilot's settings", found["best_pilot"]["rewards"], "#D55E00"),
        ("as advised", found["came"]["rewards"], "#0072B2"),
    )
    for label, runs, colour in groups:
        for number, rewards in enumerate(runs):
            kernel = np.ones(5) / 5
            smooth = np.convolve(rewards, kernel, "valid")
            axes.plot(
                np.arange(smooth.size) + 5,
                smooth,
                color=colour,
                lw=1.2,
                alpha=0.8,
                label=label if number == 0 else None,
            )
    told = found["advised"]["reward"]
    middle = told["mean"]
    axes.errorbar(
        [found["steps"] + 2],
        [middle],
        [[middle - told["lower"]], [told["upper"] - middle]],
        fmt="o",
        color="#0072B2",
        capsize=4,
        label="forecast, 80 %",
    )
    axes.set(xlabel="optimizer step", ylabel="reward (mean of 5 steps)")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Pilots, advice, export, the runs, and what came of them.

    Long because: one experiment from start to end, and the table of its result.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed of a short run")
    parser.add_argument("--out", type=Path, default=HERE / "trl.json")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    steps, seeds = (QUICK_STEPS, QUICK_SEEDS) if asked.quick else (STEPS, SEEDS)
    took: dict[str, float] = {}

    def timed(name: str, started: float) -> None:
        took[name] = round(time.perf_counter() - started, 1)

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        started = time.perf_counter()
        pilots = piloted(folder / "pilots")
        timed("pilots", started)
        started = time.perf_counter()
        given = [word for name in NAMES for word in ("--set", name)]
        request = ("--steps", steps, "--priors", "small_models", "--quiet", *given)
        said = command("advise", folder / "pilots", "--out", folder / "study", *request)
        print(said, file=sys.stderr)
        study = Study.load(folder / "study")
        posterior, advice = study.posterior, study.recommendation
        timed("advice", started)
        exported = yaml.safe_load(command("export", folder / "study", "--to", "trl"))
        runs, looks = [], []
        started = time.perf_counter()
        for seed in range(2, 2 + seeds):
            callback = AdvisorCallback(posterior, task="letters", model="tiny-llama")
            runs.append(train(folder / f"full{seed}", exported, seed, [callback]))
            assert callback.last is not None
            looks.append(callback.last.update)
        timed("run", started)
        best = max(PILOTS, key=lambda p: np.mean(pilots[f"lr{p[0]:g}_g{p[1]}_i{p[2]}"][-LATEST:]))
        others = [
            train(folder / f"best{seed}", grpo(*best, steps), seed, [])
            for seed in range(2, 2 + seeds)
        ]
    own = advice.reward
    reward = {"mean": own.mean, "lower": own.low, "upper": own.high}
    finals = [float(np.mean(rewards[-LATEST:])) for rewards in runs]
    best_finals = [float(np.mean(rewards[-LATEST:])) for rewards in others]
    inside = sum(reward["lower"] <= final <= reward["upper"] for final in finals)
    result = {
        "steps": steps,
        "advised": {
            "kind": advice.kind,
            "learning_rate": advice.settings.learning_rate,
            "group_size": advice.settings.group_size,
            "refresh_interval": advice.settings.refresh_interval,
            "p_stable": advice.stability.probability,
            "reward": reward,
        },
        "came": {
            "finals": [round(value, 4) for value in finals],
            "inside_80": [inside, len(finals)],
            "rewards": [[round(value, 4) for value in rewards] for rewards in runs],
        },
        "best_pilot": {
            "settings": best,
            "finals": [round(value, 4) for value in best_finals],
            "rewards": [[round(value, 4) for value in rewards] for rewards in others],
        },
        "pilots": {name: [round(v, 4) for v in rewards] for name, rewards in pilots.items()},
        "callback": {
            "last_steps": [look.step for look in looks],
            "milliseconds": [round(1000 * look.seconds) for look in looks],
        },
        "seconds": took,
        "manifest": manifest(
            Path(__file__),
            seeds=seeds,
            checks={
                "the callback saw the last step": all(look.step == steps for look in looks),
                "as advised is no worse than the best pilot's settings": bool(
                    np.mean(finals) >= np.mean(best_finals)
                ),
            },
        ),
    }
    asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    draw(result, asked.out.with_suffix(".svg"))
    shown = {name: result[name] for name in ("advised", "seconds")}
    print(json.dumps({**shown, "finals": finals, "best pilot": best_finals}, indent=1))


if __name__ == "__main__":
    main()
