"""Trained runs as the advisor reads them: whole ones as outcomes, their first steps as pilots."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from model_weights import SMOLLM2, LanguageModel, model_of
from run_plan import Configuration
from run_store import write_run

import advisor
from advisor.diagnosis.collapse import find_final_fall

FINAL_SHARE = 0.1
"""Last steps of a run whose mean reward is what it came to, as the advisor forecasts it."""

FALL, LEAST_FALL = 1 / 3, 0.1
"""A run died that ends below this share less of its best ten steps, and by this much at least."""

SMOOTHED, LEAST_STEPS = 10, 6
"""Optimizer steps of a mean, and of the end of a run that is asked whether it died."""


class Trained:
    """One run of the study that is finished.

    Parameters
    ----------
    folder : Path
        As `trl_training.train` leaves it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name

    @cached_property
    def state(self) -> dict[str, Any]:
        """TRL's own ``trainer_state.json``."""
        return dict(json.loads((self.folder / "trainer_state.json").read_text(encoding="utf-8")))

    @cached_property
    def own(self) -> dict[str, Any]:
        """Task, seed, seconds, and whether its weights diverged."""
        return dict(json.loads((self.folder / "run.json").read_text(encoding="utf-8")))

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """TRL's arguments."""
        return dict(yaml.safe_load((self.folder / "config.yaml").read_text(encoding="utf-8")))

    @cached_property
    def configuration(self) -> Configuration:
        """What was varied; the length and the seed are not in it."""
        return configuration_of(self.arguments)

    @property
    def steps(self) -> int:
        """Optimizer steps that it was to take."""
        return int(self.arguments["max_steps"])

    @cached_property
    def rewards(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps and train rewards, where there is one."""
        rows = [row for row in self.state["log_history"] if "reward" in row]
        return (
            np.array([row["step"] for row in rows], float),
            np.array([row["reward"] for row in rows], float),
        )

    def evaluations(self, name: str = "eval_reward") -> tuple[np.ndarray, np.ndarray]:
        """Steps and means over the held-out prompts."""
        rows = [row for row in self.state["log_history"] if name in row]
        return (
            np.array([row["step"] for row in rows], float),
            np.array([row[name] for row in rows], float),
        )

    @cached_property
    def final(self) -> float:
        """Mean train reward of the last tenth of its steps; of what there is, if it diverged."""
        return final_at(self, int(self.rewards[0][-1]))

    @cached_property
    def best(self) -> float:
        """Highest mean train reward of ten steps: what its best checkpoint is worth."""
        step, reward = self.rewards
        width = min(reward.size, max(2, round(SMOOTHED * step.size / step[-1])))
        return float(np.convolve(reward, np.ones(width) / width, "valid").max())

    @cached_property
    def died_at(self) -> float | None:
        """Step at which its best ten steps ended, if it fell from there for good; else None.

        0 where the held-out reward before the first step was the best: a run that is dead from
        birth. One that starts at nothing and stays there did not die.
        """
        step, reward = self.rewards
        if self.own["diverged"]:
            return float(step[-1])
        width = max(2, round(SMOOTHED * step.size / step[-1]))
        means = np.convolve(reward, np.ones(width) / width, "valid")
        levels = np.concatenate([self.evaluations()[1][:1], means])
        ends = np.concatenate([[0.0], step[width - 1 :]])
        best = levels.argmax()
        # Three rows of 16 completions fall by a third by chance: six at least are the end.
        end = final_at(self, int(step[-1]), LEAST_STEPS)
        fallen = end < (1 - FALL) * levels[best] and levels[best] - end > LEAST_FALL
        return float(ends[best]) if fallen else None

    @cached_property
    def unstable(self) -> bool:
        """Whether it fell for good by the advisor's own rule: what P(stable) is about."""
        return bool(find_final_fall(*self.rewards, 0.0)[0].unstable)


def final_at(run: Trained, horizon: int, least: int = 1) -> float:
    """Mean train reward of the last tenth of a run's first steps, ``least`` of them or more."""
    step, reward = run.rewards
    seen = step <= horizon
    end = step[seen][-1]
    last = step[seen] > end - max(FINAL_SHARE * end, least)
    return float(reward[seen][last].mean())


def configuration_of(arguments: dict[str, Any]) -> Configuration:
    """What TRL's arguments say of what is varied."""
    parts, own = arguments.get("gradient_accumulation_steps", 1), Configuration(0.0)
    return Configuration(
        arguments["learning_rate"],
        arguments["num_generations"],
        arguments["steps_per_generation"] // parts,
        arguments["num_iterations"],
        arguments["beta"],
        bool(arguments.get("use_peft", False)),
        arguments["per_device_train_batch_size"] * parts,
        arguments.get("lora_r", own.rank),
        arguments.get("epsilon", own.clip),
    )


def trained(task_folder: Path) -> list[Trained]:
    """Finished runs of a task, by name."""
    folders = sorted(path for path in task_folder.glob("*/") if (path / "run.json").is_file())
    return [Trained(folder) for folder in folders if not folder.name.endswith(".part")]


def cut(run: Trained, steps: int, folder: Path) -> Path:
    """Leave the first steps of a run as a pilot of that length leaves them.

    The learning rate is constant and the seed the run's, so that a pilot trained anew has the same
    rows.
    """
    state = run.state | {
        "log_history": [row for row in run.state["log_history"] if row["step"] <= steps],
        "global_step": steps,
        "max_steps": steps,
    }
    files = {
        "trainer_state.json": json.dumps(state),
        "config.yaml": yaml.safe_dump(run.arguments | {"max_steps": steps}),
    }
    write_run(folder / run.name, files)
    return folder / run.name


def sidecar(folder: Path, task: str, model: LanguageModel = SMOLLM2) -> None:
    """Say what no file of TRL's says of a model that lies in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f'model = "{model.name}"',
        f"parameters = {model.parameters}",
        f'task = "{task}"',
    ]
    text = "[defaults]\n" + "\n".join(lines) + "\n"
    (folder / "pilots.toml").write_text(text, encoding="utf-8")


def pilots_of(runs: list[Trained], steps: int, task: str, folder: Path) -> list[advisor.PilotRun]:
    """The first steps of runs, read by the advisor from files as TRL writes them."""
    for run in runs:
        cut(run, steps, folder)
    sidecar(folder, task, model_of(runs[0].arguments) if runs else SMOLLM2)
    return list(advisor.read_runs([folder]))
