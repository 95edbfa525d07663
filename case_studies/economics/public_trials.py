"""Whether any rule could choose among the public trials of `epappas/autoresearch-rl`.

    python case_studies/economics/public_trials.py traces/basilica-grpo/events.jsonl

with the file of that repository, which is not ours to store: `public_trials.json` holds numbers
that were derived from it. A trial is a setting and one score: right answers of 100 after training.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
from manifest import manifest  # noqa: E402

POLICIES = {"b7fa42978300": "language model", "01816cafc510": "grid", "4ab662d4eedf": "hybrid"}
"""Episodes of its three policies, as its report names them; two short ones have none."""

BROKEN = "897e096800b8"
"""Episode whose prompts lacked the chat template: 0 to 4 % right."""

VARIED = ("learning_rate", "max_steps", "num_generations", "temperature")
"""What its training script reads; `batch_size` it does not, so that trials which differ in it alone
are repeats."""

LOOKS = (3, 5, 8, 15)
PROBLEMS = 100
FATAL = 1e-5
"""Rate at which 80 steps of training end below the untrained model."""

SHUFFLES = 20_000


class Trial(NamedTuple):
    """One training."""

    policy: str
    setting: tuple[float, ...]
    score: float


def read(path: Path) -> list[Trial]:
    """Trials that ended, in order."""
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [
        Trial(
            POLICIES.get(one["episode_id"], "none"),
            tuple(one["params"][name] for name in VARIED),
            one["metrics"]["eval_score"],
        )
        for one in events
        if one["type"] == "iteration" and one["status"] == "ok" and one["episode_id"] != BROKEN
    ]


def by_setting(trials: Sequence[Trial]) -> dict[tuple[float, ...], list[float]]:
    """Scores of each setting."""
    found: dict[tuple[float, ...], list[float]] = defaultdict(list)
    for trial in trials:
        found[trial.setting].append(trial.score)
    return found


def within(groups: Sequence[Sequence[float]]) -> float:
    """Sum of squares within settings."""
    return float(sum(np.sum((np.array(one) - np.mean(one)) ** 2) for one in groups))


def spread(trials: Sequence[Trial]) -> dict[str, Any]:
    """Whether settings differ by more than their repeats do."""
    groups = [one for one in by_setting(trials).values() if len(one) > 1]
    pooled = np.concatenate(groups)
    own, freedom = within(groups), len(pooled) - len(groups)
    rng, lengths = np.random.default_rng(0), np.cumsum([len(one) for one in groups])[:-1]
    chance = [within(np.split(rng.permutation(pooled), lengths)) <= own for _ in range(SHUFFLES)]
    between = sum(len(one) * (np.mean(one) - pooled.mean()) ** 2 for one in groups)
    noise = own / freedom
    size = len(pooled) / len(groups)
    variance = (between / (len(groups) - 1) - noise) / size
    return {
        "settings": len(groups),
        "trials": len(pooled),
        "mean": round(float(pooled.mean()), 3),
        "sd_of_repeats": round(noise**0.5, 3),
        "sd_of_counting": round(float(np.sqrt(pooled.mean() * (1 - pooled.mean()) / PROBLEMS)), 3),
        "sd_of_settings": round(float(np.sqrt(max(0.0, variance))), 3),
        "p_of_chance": round(float(np.mean(chance)), 2),
    }


def named(trials: Sequence[Trial]) -> dict[str, Any]:
    """What each policy names after so many trials, and what other trials of that setting score."""
    found: dict[str, Any] = {}
    for policy in POLICIES.values():
        own = [trial for trial in trials if trial.policy == policy]
        for count in LOOKS:
            best = max(own[:count], key=lambda trial: trial.score)
            others = [t.score for t in trials if t is not best and t.setting == best.setting]
            found[f"{policy}, {min(count, len(own))} trials"] = {
                "score": best.score,
                "repeats": len(others),
                "mean_of_repeats": round(float(np.mean(others)), 3) if others else None,
            }
    return found


def main() -> None:
    """Read, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("events", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "public_trials.json")
    given = parser.parse_args()
    trials = read(given.events)
    mild = [trial for trial in trials if trial.setting[0] < FATAL]
    hot = [t.score for t in trials if t.setting[0] >= FATAL and t.setting[1] == 80]
    summed = {
        "trials": len(trials),
        "settings": len(by_setting(trials)),
        "below the fatal rate": spread(mild),
        "at 1e-5 and 80 steps": {"trials": len(hot), "mean": round(float(np.mean(hot)), 3)},
        "named": named(trials),
        "manifest": manifest(Path(__file__), seeds=1, checks={}, inputs=[given.events]),
    }
    given.out.write_text(json.dumps(summed, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(summed, indent=1))


if __name__ == "__main__":
    main()
