"""Draw the pictures of docs/howto/symptoms.md, and print what ``diagnose`` answers to each.

    python docs/howto/symptoms.py [--check]

Writes a picture of each and ``symptoms_output.txt`` into its folder; with ``--check`` it ends with
1 where the text there is not what ``diagnose`` answers now. The runs are made up, one symptom each,
from the numbers that reports of such runs have; their logs have the keys of TRL.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import advisor

HERE = Path(__file__).parent
OUTPUT = HERE / "symptoms_output.txt"
STEPS = np.arange(1, 161)
SETTINGS = {"learning_rate": 2e-6, "group_size": 8, "prompts_per_step": 32}


def wiggle(size: float, seed: int) -> np.ndarray:
    """Noise of one row."""
    return size * np.random.default_rng(seed).standard_normal(STEPS.size)


def rise(start: float, end: float, steps: float) -> np.ndarray:
    """A reward that saturates."""
    return end - (end - start) * np.exp(-STEPS / steps)


def after(step: int, steps: float) -> np.ndarray:
    """0 up to a step, then towards 1."""
    return 1 - np.exp(-np.clip(STEPS - step, 0, None) / steps)


def symptoms() -> dict[str, tuple[dict[str, np.ndarray], str]]:
    """Each symptom: the columns of its log, and the one that shows the cause."""
    calm = {"entropy": 0.6 + wiggle(0.02, 1), "grad_norm": 0.3 + np.abs(wiggle(0.05, 2))}
    fall = after(70, 25)
    return {
        "reward flat": (
            {
                **calm,
                "reward": np.clip(0.03 + wiggle(0.012, 3), 0, 1),
                "frac_reward_zero_std": np.clip(0.86 + wiggle(0.03, 4), 0, 1),
            },
            "frac_reward_zero_std",
        ),
        "KL explodes": (
            {
                "reward": (rise(0.2, 0.62, 30) + wiggle(0.02, 5)) * (1 - 0.9 * fall),
                "kl": 0.002 + 0.02 * STEPS / 160 + 6 * after(66, 12) ** 2,
                "grad_norm": 0.3 + np.abs(wiggle(0.05, 6)) + 9 * after(66, 8),
                "entropy": 0.6 + wiggle(0.02, 7) + 2.4 * after(66, 15),
            },
            "kl",
        ),
        "answers shrink": (
            {
                **calm,
                "reward": rise(0.35, 0.85, 40) + wiggle(0.015, 8),
                "rewards/brevity/mean": rise(0.1, 0.6, 40) + wiggle(0.01, 9),
                "rewards/correct/mean": 0.25
                + 0.12 * after(1, 15)
                - 0.3 * after(40, 30)
                + wiggle(0.01, 10),
                "eval_reward": 0.25 + 0.12 * after(1, 15) - 0.3 * after(40, 30) + wiggle(0.01, 11),
                "completions/mean_length": 420 * np.exp(-STEPS / 45) + 25 + wiggle(4, 12),
            },
            "completions/mean_length",
        ),
        "entropy gone": (
            {
                "reward": rise(0.2, 0.45, 12) + wiggle(0.012, 13),
                "entropy": 0.9 * np.exp(-STEPS / 14) + 0.008 + np.abs(wiggle(0.002, 14)),
                "grad_norm": 0.3 * np.exp(-STEPS / 40) + 0.02,
                "frac_reward_zero_std": np.clip(
                    0.2 + 0.55 * after(10, 30) + wiggle(0.03, 15), 0, 1
                ),
            },
            "entropy",
        ),
        "falls after a plateau": (
            {
                **calm,
                "reward": rise(0.15, 0.7, 18) - 0.45 * after(85, 35) + wiggle(0.02, 16),
                "completions/clipped_ratio": np.clip(0.02 + 0.7 * after(80, 30), 0, 1),
            },
            "completions/clipped_ratio",
        ),
    }


def log_of(columns: Mapping[str, np.ndarray], file: Path) -> None:
    """Write the rows of a log; every tenth has an evaluation, where there are any."""
    rows = []
    for place, step in enumerate(STEPS):
        row = {name: round(float(values[place]), 6) for name, values in columns.items()}
        held_out = row.pop("eval_reward", None)
        rows.append({"step": int(step), **row})
        if held_out is not None and step % 10 == 0:
            rows.append({"step": int(step), "eval_reward": held_out})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def answers() -> str:
    """What ``diagnose`` answers to each symptom: verdict, and the cards that are not passed."""
    blocks = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (columns, _) in symptoms().items():
            file = Path(folder) / f"{name.replace(' ', '_')}.jsonl"
            log_of(columns, file)
            (run,) = advisor.read_runs(file, overrides=SETTINGS)
            cards = [
                one for one in advisor.diagnose(run).cards if one.status in ("FAIL", "WARNING")
            ]
            lines = [f"{one.status}  {one.title}: {one.headline}\n  {one.change}" for one in cards]
            blocks.append("\n".join([f"[{name}]", *(lines or ["PASS  nothing wrong"]), ""]))
    return "\n".join(blocks)


def draw() -> None:
    """A picture for each symptom: the reward, and next to it what shows the cause."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "symptoms", "svg.fonttype": "none", "font.size": 9})
    for name, (series, cause) in symptoms().items():
        figure, panels = plt.subplots(1, 2, figsize=(7, 2.1), layout="constrained")
        drawn = (("reward", "#1f5a96"), (cause, "#b84f00"))
        for panel, (key, colour) in zip(panels, drawn, strict=True):
            panel.plot(STEPS, series[key], color=colour, linewidth=1.2)
            panel.set(title=key, xlabel="optimizer step")
            panel.spines[["top", "right"]].set_visible(False)
            panel.set_ylim(bottom=0)
        panels[0].set_ylim(0, 1)
        figure.savefig(HERE / f"{name.lower().replace(' ', '_')}.svg", metadata={"Date": None})
        plt.close(figure)


def main() -> int:
    """Write both, or compare the text."""
    text = answers()
    if "--check" in sys.argv:
        return int(OUTPUT.read_text(encoding="utf-8") != text)
    OUTPUT.write_text(text, encoding="utf-8")
    draw()
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
