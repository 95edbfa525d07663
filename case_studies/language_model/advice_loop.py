"""The product's main job on a language model: pilots, advice, the full run as advised, and others.

Used by ``run.py loop``. Pilots are the first steps of the ladder's runs; the advice is that of the
commands ``advisor advise`` and ``advisor export``, under the shipped presets or those that the task
is left out of; training starts from the exported file as it is.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from figures import draw_loops
from manifest import write_result
from run_plan import LADDER, STEPS, Configuration, Planned
from run_store import FILES, RUNS, TABLES, write_run
from trained_runs import Trained, configuration_of, cut, sidecar, trained

PILOTED = (3e-6, 1e-5, 3e-5, 1e-4)
PILOT_STEPS = 12
ADVISED_SEEDS = (2, 3, 4)
SEARCH_SEED = 7
TRL_DEFAULT = Configuration(1e-6)

SPACE = {"rate": (1e-6, 1e-3), "group": (4, 8, 16), "refresh": (1, 2, 4)}
"""Where the searches look; with as many steps as the pilots took."""

RUNGS = ((8, 3), (4, 6), (2, 12))
"""Configurations and their steps: 48 steps in all, as four pilots of 12."""

Train = Callable[[Path, str, int, str], None]
"""Trains from a file: task, seed, name of the run."""


class Advice(NamedTuple):
    """What a user holds after ``advisor advise`` and ``advisor export``."""

    file: Path
    arguments: dict[str, Any]
    answer: dict[str, Any]
    text: str

    @property
    def configuration(self) -> Configuration:
        """What the file would train."""
        return configuration_of(self.arguments)

    def name(self, seed: int) -> str:
        """Of a run that is trained from the file: another advice has another name."""
        digest = hashlib.sha256(json.dumps(self.arguments, sort_keys=True).encode()).hexdigest()
        return f"advised_{digest[:8]}_n{STEPS}_s{seed}"


def ladder(task: str) -> list[Planned]:
    """Runs of the table, the pilots' rates among them."""
    return [ladder_run(task, rate) for rate in LADDER]


def trials(task: str, tasks: Sequence[str]) -> list[Planned]:
    """Configurations that a search without a model starts with, each trained for a pilot's steps.

    Optuna's TPE draws its first ten trials at random: with the price of four pilots it is these.
    """
    generator = random.Random(f"{SEARCH_SEED} {task}")
    low, high = SPACE["rate"]
    found = []
    for _ in range(RUNGS[0][0]):
        rate = float(f"{low * (high / low) ** generator.random():.2g}")
        group, refresh = generator.choice(SPACE["group"]), generator.choice(SPACE["refresh"])
        own = Configuration(rate, int(group), int(refresh))
        found.append(Planned(task, own, PILOT_STEPS, 1))
    return found


def advised(task: str, train: Train, priors: Path | None = None) -> Advice:
    """Advise as a user does: the commands, on the pilots' folders as TRL left them.

    Where the answer is one more pilot it is trained and the question asked again, once: five pilots
    are what a user would pay for. Still without an answer, the best piloted setting is launched.
    """
    folder = RUNS.parent / "loops" / task
    pilots = folder / "pilots"
    shutil.rmtree(folder, ignore_errors=True)
    for rate in PILOTED:
        cut(_run(ladder_run(task, rate)), PILOT_STEPS, pilots)
    sidecar(pilots, task)
    advice = _advised(pilots, folder / "study", priors)
    if advice.answer["kind"] == "next_pilot":
        name = "asked_pilot"
        train(advice.file, task, 1, name)
        write_run(pilots / name, {file: _text(RUNS / task / name / file) for file in FILES[:2]})
        advice = _advised(pilots, folder / "study", priors)
    if advice.answer["kind"] == "next_pilot":
        own = advice.answer["settings"]
        refresh = own["minibatches_per_refresh"], own["epochs_per_refresh"]
        plain = {
            "learning_rate": own["learning_rate"],
            "num_generations": own["group_size"],
            "steps_per_generation": refresh[0],
            "num_iterations": refresh[1],
            "per_device_train_batch_size": round(own["prompts_per_step"] * own["group_size"]),
            "beta": own["kl_coefficient"],
            "lr_scheduler_type": "constant",
            "max_steps": STEPS,
        }
        advice.file.write_text(yaml.safe_dump(plain), encoding="utf-8")
        advice = advice._replace(arguments=plain)
    return advice


def _advised(pilots: Path, study: Path, priors: Path | None) -> Advice:
    believed = ("--priors", priors) if priors else ()
    _command("advise", pilots, "--steps", STEPS, "--out", study, "--quiet", *believed)
    exported = _command("export", study, "--to", "trl")
    file = study.parent / "launch.yaml"
    file.write_text(exported, encoding="utf-8")
    answer = json.loads(_text(study / "recommendation.json"))
    return Advice(file, yaml.safe_load(exported), answer, _text(study / "recommendation.txt"))


def ladder_run(task: str, rate: float) -> Planned:
    """The ladder's run at a rate."""
    return Planned(task, Configuration(rate), STEPS, 1)


def searched(task: str) -> dict[str, Configuration]:
    """What random trials (TPE's first) and successive halving choose, on the pilots' price."""
    runs = {one.configuration: _run(one) for one in trials(task, ())}
    if not all(run.folder.is_dir() for run in runs.values()):
        return {}

    def seen(own: Configuration, steps: int) -> float:
        at, reward = runs[own].rewards
        here = reward[at <= steps]
        return float(here[-max(1, len(here) // 3) :].mean()) if here.size else 0.0

    going = list(runs)
    for (count, _), (_, steps) in zip(RUNGS[1:], RUNGS, strict=False):
        going = sorted(going, key=lambda own: -seen(own, steps))[:count]
    first = list(runs)[: len(PILOTED)]
    return {
        "Optuna's TPE": max(first, key=lambda own: seen(own, PILOT_STEPS)),
        "successive halving": max(going, key=lambda own: seen(own, PILOT_STEPS)),
    }


def best_pilot(task: str) -> Configuration:
    """The piloted setting whose last rows stand highest."""

    def last(rate: float) -> float:
        at, reward = _run(ladder_run(task, rate)).rewards
        return float(reward[at <= PILOT_STEPS][-3:].mean())

    return Configuration(max(PILOTED, key=last))


def constant_of_others(task: str, tasks: Iterable[str]) -> Configuration:
    """The rate of the ladder with the best mean end on the other tasks."""
    others = [one for one in tasks if one != task]

    def mean(rate: float) -> float:
        return float(np.mean([_run(ladder_run(one, rate)).final for one in others]))

    return Configuration(max(LADDER, key=mean))


def methods(task: str, tasks: Sequence[str]) -> dict[str, Configuration]:
    """What each of the others launches; the searches once their trials are trained."""
    return {
        "TRL's default": TRL_DEFAULT,
        "best pilot": best_pilot(task),
        "best constant of the other tasks": constant_of_others(task, tasks),
        **searched(task),
    }


def recipes(task: str, tasks: Sequence[str]) -> list[Planned]:
    """Runs of what is known beforehand, or from the pilots alone."""
    return _full(task, [best_pilot(task), constant_of_others(task, tasks)])


def chosen(task: str, tasks: Sequence[str]) -> list[Planned]:
    """Runs of what the searches choose."""
    return _full(task, searched(task).values())


def _full(task: str, own: Iterable[Configuration]) -> list[Planned]:
    return [Planned(task, one, STEPS, 1) for one in own]


def outcome(run: Trained) -> dict[str, Any]:
    """What a full run came to."""
    _, exact = run.evaluations("eval_rewards/exact/mean")
    return {
        "run": run.name,
        "reward": round(run.final, 4),
        "exact_held_out": round(float(exact[-1]), 4),
        "died": run.died_at,
        "unstable": run.unstable,
    }


def lacking(task: str, advice: Advice) -> list[int]:
    """Seeds to train from the advised file: with what is there of its settings, three runs."""
    new = [one for one in ADVISED_SEEDS if not _at(task, advice.name(one)).folder.is_dir()]
    return new[: max(0, len(ADVISED_SEEDS) - len(runs_of(task, advice.configuration)))]


def runs_of(task: str, own: Configuration) -> list[Trained]:
    """Every finished full run of a configuration, whatever its seed."""
    return [one for one in trained(RUNS / task) if one.configuration == own and one.steps == STEPS]


def told(task: str, tasks: Sequence[str], advice: Advice) -> dict[str, Any]:
    """What was said and what came, by method."""
    answer = advice.answer
    best, name = best_of(task)
    interval = [answer["reward"][which] for which in ("low", "median", "high")]
    full = runs_of(task, advice.configuration)
    others = {
        name: {"settings": own._asdict(), "runs": [outcome(one) for one in finished]}
        for name, own in methods(task, tasks).items()
        if (finished := runs_of(task, own))
    }
    return {
        "task": task,
        "pilots": [*PILOTED, *_asked(task)],
        "kind": answer["kind"],
        "said": {"interval": interval, "p_stable": answer["stability"]["probability"]},
        "text": advice.text,
        "best": best,
        "best_configuration": name,
        "methods": {
            "advisor": {
                "settings": full[0].configuration._asdict(),
                "runs": [outcome(one) for one in full],
            },
            **others,
        },
    }


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Regret by method: against the best configuration trained on the task, means of its seeds."""
    told: dict[str, Any] = {}
    for name in found[0]["methods"]:
        if not all(name in one["methods"] for one in found):
            continue
        own = [one["methods"][name] for one in found]
        regrets = [
            one["best"] - np.mean([run["reward"] for run in mine["runs"]])
            for one, mine in zip(found, own, strict=True)
        ]
        told[name] = {
            "regret": round(float(np.mean(regrets)), 4),
            "by_task": {
                one["task"]: round(float(value), 4)
                for one, value in zip(found, regrets, strict=True)
            },
            "runs": sum(len(mine["runs"]) for mine in own),
            "died": sum(run["died"] is not None for mine in own for run in mine["runs"]),
        }
    advised = [one["methods"]["advisor"]["runs"] for one in found]
    inside = []
    for one, runs in zip(found, advised, strict=True):
        low, _, high = one["said"]["interval"]
        inside.append([low <= run["reward"] <= high for run in runs])
    told["interval_80_holds"] = [sum(map(sum, inside)), sum(map(len, inside))]
    told["interval_80_holds_tasks_alike"] = round(float(np.mean([*map(np.mean, inside)])), 3)
    told["p_stable_said"] = round(float(np.mean([one["said"]["p_stable"] for one in found])), 3)
    told["unstable"] = sum(run["unstable"] for runs in advised for run in runs)
    return told


def best_of(task: str) -> tuple[float, str]:
    """Mean end of the best configuration that was trained on a task, and its name.

    Of those at the pilots' price of a step: adapters and larger batches are other questions.
    """
    kinds: dict[Configuration, list[float]] = {}
    for one in trained(RUNS / task):
        own = one.configuration
        if one.steps == STEPS and not own.lora and own.completions <= TRL_DEFAULT.completions:
            kinds.setdefault(own, []).append(one.final)
    best = max(kinds, key=lambda own: np.mean(kinds[own]))
    return round(float(np.mean(kinds[best])), 4), best.name


def write(found: Sequence[dict[str, Any]], out: Path) -> None:
    """Keep the result beside what made it."""
    document = {"summary": summary(found), "tasks": found}
    write_result(out, document, Path(__file__), sorted(TABLES.glob("*.gz")))


def draw_all(out: Path) -> None:
    """Draw what `write` kept."""
    found = json.loads(_text(out.with_suffix(".json")))["tasks"]
    runs = {
        task: {
            "ladder": [_run(one) for one in ladder(task)],
            "pilots": [_run(ladder_run(task, rate)) for rate in PILOTED],
            "advised": [_at(one["task"], run["run"]) for run in one["methods"]["advisor"]["runs"]],
        }
        for one in found
        for task in [one["task"]]
    }
    draw_loops(found, runs, out)


def _asked(task: str) -> list[float]:
    """Rate of the pilot that was asked for, if one was."""
    folder = RUNS / task / "asked_pilot"
    return [Trained(folder).configuration.rate] if folder.is_dir() else []


def _run(one: Planned) -> Trained:
    return _at(one.task, one.name)


def _at(task: str, name: str) -> Trained:
    return Trained(RUNS / task / name)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _command(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "advisor", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return done.stdout
