"""Which planned runs lack, and long-lived processes that train them: starting one takes long.

Each process takes the first run that nobody has begun, trains it, and asks again: ladders in the
order of the plan, second seeds as soon as a ladder is whole, runs at the edge last.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cell_plan import EDGES, Cell
from later_tasks import EVERY_TASK
from model_weights import CACHE, MODELS
from run_plan import Planned
from run_store import RUNS

CLAIMS = RUNS.parent / "claims"
ENVIRONMENT = {
    # Blocks of tens of megabytes come and go each step: asked for anew, they cost half of it.
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "100000000",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def lacking(cell: Cell) -> list[Planned]:
    """Runs of a cell, its ladder first, then second seeds where the ladder ended highest."""
    from trained_runs import Trained

    ladder = cell.ladder()
    folders = {one.configuration.rate: RUNS / one.place / one.name for one in ladder}
    there = {rate: Trained(folder).final for rate, folder in folders.items() if folder.is_dir()}
    return ladder + cell.repeats(there)


def also(file: Path | None) -> Iterator[Planned]:
    """Runs of a file that come before the plan: one a line, a cell's fields, ``rate``, ``seed``."""
    if file is not None and file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            own = json.loads(line)
            rate, seed = own.pop("rate"), own.pop("seed")
            yield Cell(**own).run(rate, seed)


def lacked(cells: Sequence[Cell], file: Path | None) -> Iterator[Planned]:
    """Runs that are not there, in the order in which they are to be trained.

    Of models whose folder is made: `run.py model` may go on beside this.
    """
    models = {cell.model for cell in cells}
    edges = (
        cell.run(rate, seed)
        for cell, rates, seeds in EDGES
        if cell.model in models
        for seed in seeds
        for rate in rates
    )
    planned = (one for cell in cells for one in lacking(cell))
    for one in itertools.chain(also(file), planned, edges):
        is_made = (CACHE / MODELS[one.model].name).is_dir()
        if is_made and not (RUNS / one.place / one.name).is_dir():
            yield one


def claimed(one: Planned) -> bool:
    """Whether this process may train a run: no process that lives has begun it."""
    claim = CLAIMS / f"{one.place}/{one.name}".replace("/", "_")
    CLAIMS.mkdir(parents=True, exist_ok=True)
    if claim.is_file() and Path("/proc", claim.read_text(encoding="utf-8")).exists():
        return False
    try:
        if claim.is_file():
            # Of two that find the claim of a killed one, a single one can move it away.
            dead = claim.with_name(f"{claim.name}.{os.getpid()}")
            claim.rename(dead)
            dead.unlink()
        with claim.open("x", encoding="utf-8") as taken:
            taken.write(str(os.getpid()))
    except (FileExistsError, FileNotFoundError):
        return False
    # Of one that was killed nothing is left: it is done again from its first step.
    for left in (RUNS / one.place).glob(f"{one.name}.*.part"):
        shutil.rmtree(left)
    return True


def train_one(one: Planned, device: str) -> Path:
    """Train a single run in this process."""
    from trl_training import arguments, train

    given = arguments(one.configuration, one.steps, one.model)
    return train(RUNS / one.place / one.name, EVERY_TASK[one.task], given, one.seed, device=device)


def train_file(config: Path, task: str, seed: int, name: str, device: str) -> Path:
    """Train from a file of TRL's arguments as it is."""
    import yaml
    from trl_training import train

    given = yaml.safe_load(config.read_text(encoding="utf-8"))
    return train(RUNS / task / name, EVERY_TASK[task], given, seed, device=device)


def work(cells: Sequence[Cell], file: Path | None, device: str, end: float) -> None:
    """Train run after run until the time is over, or nothing is left to begin."""
    while time.time() < end and (one := next(filter(claimed, lacked(cells, file)), None)):
        started = time.monotonic()
        try:
            train_one(one, device)
            word = "done"
        except Exception:  # the next run is another: this one is begun again by another process
            traceback.print_exc()
            word = "FAILED"
        print(f"{word} {one.place}/{one.name} {time.monotonic() - started:.0f} s", flush=True)
        gc.collect()
        if device == "cuda":
            import torch

            torch.cuda.empty_cache()


def start(words: Iterable[str], count: int) -> int:
    """Start so many processes of a command, and wait for them; the highest exit status."""
    command = [sys.executable, *words]
    going = [subprocess.Popen(command, env=os.environ | ENVIRONMENT) for _ in range(count)]
    return max(process.wait() for process in going)
