"""Train a language model with TRL: one run, the table, what it says, the closed loop.

    python case_studies/language_model/run.py model              # weights, from the registry
    python case_studies/language_model/run.py table [--workers 2] [--part long LoRA ...]
    python case_studies/language_model/run.py one --task sums --learning-rate 1e-5 --seed 1
    python case_studies/language_model/run.py file trl_config.yaml --task sums --seed 2 --name NAME
    python case_studies/language_model/run.py loop [--task NAME...] [--presets FOLDER] [--out FILE]
    python case_studies/language_model/run.py pack               # the runs of the cache, to commit

Needs `pip install -e '.[trl]' peft` and the weights. Training that was killed is redone, finished
runs are kept: call it again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from later_tasks import ALL_TASKS  # noqa: E402
from run_plan import (  # noqa: E402
    LATER_PARTS,
    PARTS,
    STEPS,
    Configuration,
    Planned,
    planned,
    planned_later,
)
from run_store import RUNS, pack, unpack  # noqa: E402

ENVIRONMENT = {
    # Blocks of tens of megabytes come and go each step: asked for anew, they cost half of it.
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "100000000",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class Job(NamedTuple):
    """A run to train in a process of its own: its folder, and the words of the command."""

    folder: Path
    words: tuple[str, ...]

    @classmethod
    def of(cls, one: Planned) -> Job:
        """Of a configuration."""
        own = one.configuration
        named = {
            "task": one.task,
            "seed": one.seed,
            "steps": one.steps,
            "learning-rate": own.rate,
            "group": own.group,
            "minibatches": own.minibatches,
            "epochs": own.epochs,
            "kl": own.kl,
            "completions": own.completions,
        }
        flags = [f"--{name}={value}" for name, value in named.items()]
        flags += ["--lora"] if own.lora else []
        return cls(RUNS / one.task / one.name, ("one", *flags))

    @classmethod
    def of_file(cls, config: Path, task: str, seed: int, name: str) -> Job:
        """Of a file of TRL's arguments, as it is."""
        flags = (f"--task={task}", f"--seed={seed}", f"--name={name}")
        return cls(RUNS / task / name, ("file", str(config), *flags))


def train_all(jobs: Iterable[Job], workers: int, device: str) -> None:
    """Train what is not there yet, each run in a process of its own with one thread."""
    waiting = [job for job in dict.fromkeys(jobs) if not job.folder.is_dir()]
    going: dict[subprocess.Popen[bytes], tuple[Job, float]] = {}
    print(f"{len(waiting)} runs to train", flush=True)
    while waiting or going:
        while waiting and len(going) < workers:
            job = waiting.pop(0)
            going[_started(job, device)] = (job, time.monotonic())
        time.sleep(0.2)
        for process in [each for each in going if each.poll() is not None]:
            job, started = going.pop(process)
            took = time.monotonic() - started
            word = "done" if process.returncode == 0 else f"FAILED ({process.returncode})"
            where = job.folder.relative_to(RUNS)
            print(f"{word} {where} {took:.0f} s, {len(waiting)} wait", flush=True)


def _started(job: Job, device: str) -> subprocess.Popen[bytes]:
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    with open(job.folder.with_name(f"{job.folder.name}.log"), "wb") as log:
        return subprocess.Popen(
            [sys.executable, str(HERE / "run.py"), *job.words, f"--device={device}"],
            env=os.environ | ENVIRONMENT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def _remove_what_was_killed() -> None:
    """A run that was killed is done again from its first step; others' runs are left alone."""
    for left in RUNS.glob("*/*.part"):
        if not Path("/proc", left.suffixes[-2].lstrip(".")).exists():
            shutil.rmtree(left)


def train_one(one: Planned, device: str) -> Path:
    """Train a single run in this process."""
    import torch
    from trl_training import arguments, train

    torch.set_num_threads(1)
    own = one.configuration
    given = arguments(
        own.rate,
        one.steps,
        group=own.group,
        minibatches=own.minibatches,
        epochs=own.epochs,
        kl=own.kl,
        lora=own.lora,
        completions=own.completions,
    )
    return train(RUNS / one.task / one.name, ALL_TASKS[one.task], given, one.seed, device=device)


def train_file(config: Path, task: str, seed: int, name: str, device: str) -> Path:
    """Train from a file of TRL's arguments as it is."""
    import torch
    import yaml
    from trl_training import train

    torch.set_num_threads(1)
    given = yaml.safe_load(config.read_text(encoding="utf-8"))
    return train(RUNS / task / name, ALL_TASKS[task], given, seed, device=device)


def close_loops(
    tasks: list[str], presets: Path | None, out: Path, workers: int, device: str
) -> None:
    """Per task: the ladder, pilots and advice, the advised run; then every other method."""
    import advice_loop

    def train_from(file: Path, task: str, seed: int, name: str) -> None:
        train_all([Job.of_file(file, task, seed, name)], workers, device)

    train_all((Job.of(one) for task in tasks for one in advice_loop.ladder(task)), workers, device)
    advice = {}
    for task in tasks:
        priors = presets / f"{task}.toml" if presets else None
        advice[task] = advice_loop.advised(task, train_from, priors)
        print(f"{task}: {advice[task].answer['kind']}, {advice[task].arguments}", flush=True)
    jobs = [
        Job.of_file(advice[task].file, task, seed, advice[task].name(seed))
        for task in tasks
        for seed in advice_loop.lacking(task, advice[task])
    ]
    for stage in (advice_loop.recipes, advice_loop.trials, advice_loop.chosen):
        more = [Job.of(one) for task in tasks for one in stage(task, tasks)]
        train_all([*jobs, *more], workers, device)
        score(tasks, out)


def score(tasks: list[str], out: Path) -> None:
    """Pack what is trained, and write what the loops came to so far."""
    import advice_loop

    pack()
    advice = {task: advice_loop.kept(RUNS.parent / "loops" / task) for task in tasks}
    found = [advice_loop.told(task, tasks, advice[task]) for task in tasks]
    advice_loop.write(found, out)
    advice_loop.draw_all(out.with_suffix(".svg"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("model", help="make the model's folder")
    commands.add_parser("pack", help="pack the cache's runs into tables/")
    table = commands.add_parser("table", help="train the planned runs that are not there yet")
    table.add_argument("--workers", type=int, default=2)
    parts = (*PARTS, *LATER_PARTS)
    table.add_argument("--part", nargs="+", choices=parts, default=parts, help="of the plan")
    one = commands.add_parser("one", help="train one run")
    one.add_argument("--task", choices=ALL_TASKS, required=True)
    one.add_argument("--learning-rate", type=float, required=True)
    one.add_argument("--steps", type=int, default=STEPS)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--group", type=int, default=8)
    one.add_argument("--minibatches", type=int, default=1)
    one.add_argument("--epochs", type=int, default=1)
    one.add_argument("--kl", type=float, default=0.0)
    one.add_argument("--completions", type=int, default=32)
    one.add_argument("--lora", action="store_true")
    file = commands.add_parser("file", help="train from a file of TRL's arguments")
    file.add_argument("config", type=Path)
    file.add_argument("--task", choices=ALL_TASKS, required=True)
    file.add_argument("--seed", type=int, default=1)
    file.add_argument("--name", required=True)
    loops = commands.add_parser("loop", help="pilots, advice, the full run as advised, and others")
    loops.add_argument("--workers", type=int, default=2)
    loops.add_argument(
        "--presets",
        type=Path,
        help="folder of a preset for each task, learned without it (learn.py --without-task) "
        "[default: the one that is shipped for the runs]",
    )
    scored = commands.add_parser("score", help="what the loops came to, as far as they are trained")
    for command in (loops, scored):
        command.add_argument("--task", nargs="+", choices=ALL_TASKS, default=list(ALL_TASKS))
        command.add_argument("--out", type=Path, default=HERE / "loop.json")
    for command in (table, one, file, loops):
        command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    return parser


def main() -> None:
    """Do what the command says."""
    asked = _parser().parse_args()
    if asked.command == "model":
        from model_folder import model_folder

        print(model_folder())
    elif asked.command == "pack":
        print(f"{pack()} runs packed")
    elif asked.command == "score":
        score(asked.task, asked.out)
    elif asked.command == "file":
        print(train_file(asked.config, asked.task, asked.seed, asked.name, asked.device))
    elif asked.command in ("table", "loop"):
        for task in ALL_TASKS:
            unpack(task)
        _remove_what_was_killed()
        if asked.command == "table":
            runs = [one for one in planned() + planned_later() if one.part in asked.part]
            train_all(map(Job.of, runs), asked.workers, asked.device)
        else:
            close_loops(asked.task, asked.presets, asked.out, asked.workers, asked.device)
    else:
        own = Configuration(
            asked.learning_rate,
            asked.group,
            asked.minibatches,
            asked.epochs,
            asked.kl,
            asked.lora,
            asked.completions,
        )
        print(train_one(Planned(asked.task, own, asked.steps, asked.seed, "one"), asked.device))


if __name__ == "__main__":
    main()
