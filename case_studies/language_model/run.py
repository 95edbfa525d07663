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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cell_plan import CELLS, CELLS_PART, Cell, planned_cells  # noqa: E402
from harder_tasks import EVERY_TASK  # noqa: E402
from later_tasks import ALL_TASKS  # noqa: E402
from model_weights import MODELS  # noqa: E402
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
            "rank": own.rank,
            "clip": own.clip,
        }
        flags = [f"--{name}={value}" for name, value in named.items()]
        flags += ["--lora"] if own.lora else []
        flags += [f"--model={one.model}"] if one.model else []
        return cls(RUNS / one.place / one.name, ("one", *flags))

    def lacks(self) -> bool:
        """Whether the run is neither finished nor being trained by another command."""
        parts = self.folder.parent.glob(f"{self.folder.name}.*.part")
        return not self.folder.is_dir() and not any(map(_is_alive, parts))

    @classmethod
    def of_file(cls, config: Path, task: str, seed: int, name: str) -> Job:
        """Of a file of TRL's arguments, as it is."""
        flags = (f"--task={task}", f"--seed={seed}", f"--name={name}")
        return cls(RUNS / task / name, ("file", str(config), *flags))


def train_all(jobs: Callable[[], Iterable[Job]], workers: int, device: str) -> None:
    """Train what is not there yet, each run in a process of its own with one thread.

    Jobs are asked for each time one may begin: what is planned may follow from what is trained.
    """
    going: dict[subprocess.Popen[bytes], tuple[Job, float]] = {}
    failed: set[Job] = set()
    while True:
        for process in [each for each in going if each.poll() is not None]:
            job, started = going.pop(process)
            took = time.monotonic() - started
            word = "done" if process.returncode == 0 else f"FAILED ({process.returncode})"
            failed |= {job} if process.returncode else set()
            print(f"{word} {job.folder.relative_to(RUNS)} {took:.0f} s", flush=True)
        if len(going) < workers:
            begun = failed | {job for job, _ in going.values()}
            waiting = [job for job in dict.fromkeys(jobs()) if job.lacks() and job not in begun]
            for job in waiting[: workers - len(going)]:
                going[_started(job, device)] = (job, time.monotonic())
                print(f"{job.folder.relative_to(RUNS)}, {len(waiting) - 1} wait", flush=True)
        if not going:
            break
        time.sleep(0.5)


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
    for left in RUNS.glob("**/*.part"):
        if not _is_alive(left):
            shutil.rmtree(left)


def _is_alive(part: Path) -> bool:
    """Whether the process is there that writes an unfinished run."""
    return Path("/proc", part.suffixes[-2].lstrip(".")).exists()


def lacking(cell: Cell) -> list[Planned]:
    """Runs of a cell, its ladder first, then second seeds where the ladder ended highest."""
    from trained_runs import Trained

    ladder = cell.ladder()
    folders = {one.configuration.rate: RUNS / one.place / one.name for one in ladder}
    there = {rate: Trained(folder).final for rate, folder in folders.items() if folder.is_dir()}
    return ladder + cell.repeats(there)


def train_one(one: Planned, device: str) -> Path:
    """Train a single run in this process."""
    import torch
    from trl_training import arguments, train

    torch.set_num_threads(1)
    given = arguments(one.configuration, one.steps, one.model)
    folder = RUNS / one.place / one.name
    return train(folder, EVERY_TASK[one.task], given, one.seed, device=device)


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
        train_all(lambda: [Job.of_file(file, task, seed, name)], workers, device)

    ladders = [Job.of(one) for task in tasks for one in advice_loop.ladder(task)]
    train_all(lambda: ladders, workers, device)
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
        jobs += [Job.of(one) for task in tasks for one in stage(task, tasks)]
        train_all(lambda now=tuple(jobs): now, workers, device)
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
    model = commands.add_parser("model", help="make the folders of models")
    model.add_argument("--model", nargs="+", choices=MODELS, default=["smollm2"])
    commands.add_parser("pack", help="pack the cache's runs into tables/")
    table = commands.add_parser("table", help="train the planned runs that are not there yet")
    table.add_argument("--workers", type=int, default=2)
    parts = (*PARTS, *LATER_PARTS, CELLS_PART)
    table.add_argument("--part", nargs="+", choices=parts, default=parts, help="of the plan")
    table.add_argument("--model", nargs="+", choices=MODELS, default=MODELS, help="of the cells")
    one = commands.add_parser("one", help="train one run")
    one.add_argument("--task", choices=EVERY_TASK, required=True)
    one.add_argument("--model", choices=MODELS, default="", help="[default: SmolLM2]")
    one.add_argument("--learning-rate", type=float, required=True)
    one.add_argument("--steps", type=int, default=STEPS)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--group", type=int, default=8)
    one.add_argument("--minibatches", type=int, default=1)
    one.add_argument("--epochs", type=int, default=1)
    one.add_argument("--kl", type=float, default=0.0)
    one.add_argument("--completions", type=int, default=32)
    one.add_argument("--lora", action="store_true")
    one.add_argument("--rank", type=int, default=16)
    one.add_argument("--clip", type=float, default=0.2)
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

        for key in asked.model:
            print(model_folder(MODELS[key]))
    elif asked.command == "pack":
        print(f"{pack()} runs packed")
    elif asked.command == "score":
        score(asked.task, asked.out)
    elif asked.command == "file":
        print(train_file(asked.config, asked.task, asked.seed, asked.name, asked.device))
    elif asked.command in ("table", "loop"):
        for place in (*ALL_TASKS, *dict.fromkeys(one.place for one in planned_cells())):
            unpack(place)
        _remove_what_was_killed()
        if asked.command == "table":
            runs = [one for one in planned() + planned_later() if one.part in asked.part]
            cells = [one for one in CELLS if one.model in asked.model and CELLS_PART in asked.part]

            def jobs() -> Iterable[Job]:
                return map(Job.of, [*runs, *(one for cell in cells for one in lacking(cell))])

            train_all(jobs, asked.workers, asked.device)
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
            asked.rank,
            asked.clip,
        )
        one = Planned(asked.task, own, asked.steps, asked.seed, "one", asked.model)
        print(train_one(one, asked.device))


if __name__ == "__main__":
    main()
