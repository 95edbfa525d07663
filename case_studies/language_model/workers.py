"""Train planned runs in long-lived processes: starting one for each run costs up to half of it.

    python case_studies/language_model/workers.py [--workers 14] [--device cuda] [--seconds 1500]
        [--model gemma qwen] [--also runs.jsonl]

Each process takes the first planned run that nobody has begun, trains it, and asks again: ladders
in the order of the plan, second seeds as soon as a ladder is whole. ``--also`` names a file that is
read anew each time, of runs that come before the plan: one line a run, with the fields of a cell,
``rate`` and ``seed``. Runs that are there are left as they are.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cell_plan import CELLS, Cell  # noqa: E402
from model_weights import CACHE, MODELS  # noqa: E402
from run import ENVIRONMENT, lacking, train_one  # noqa: E402
from run_plan import Planned  # noqa: E402
from run_store import RUNS  # noqa: E402

CLAIMS = RUNS.parent / "claims"
ATTEMPTS = 2
WAITING = 5.0
"""Seconds until a process without a run asks again."""


def claimed(one: Planned) -> bool:
    """Whether this process may train a run: nobody else was asked to, or too often without end."""
    claim = CLAIMS / f"{one.place}/{one.name}".replace("/", "_")
    for attempt in range(ATTEMPTS):
        try:
            claim.with_name(f"{claim.name}.{attempt}").mkdir()
        except FileExistsError:
            if not claim.with_name(f"{claim.name}.{attempt}.failed").exists():
                return False
        else:
            return True
    return False


def failed(one: Planned) -> None:
    """Leave a run to another attempt."""
    claim = CLAIMS / f"{one.place}/{one.name}".replace("/", "_")
    last = max(n for n in range(ATTEMPTS) if claim.with_name(f"{claim.name}.{n}").exists())
    claim.with_name(f"{claim.name}.{last}.failed").touch()


def also(file: Path | None) -> Iterator[Planned]:
    """Runs of a file that come before the plan."""
    if file is not None and file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            own = json.loads(line)
            rate, seed = own.pop("rate"), own.pop("seed")
            yield Cell(**own).run(rate, seed)


def lacked(cells: Iterable[Cell], file: Path | None) -> Iterator[Planned]:
    """Runs that are not there, in the order in which they are to be trained.

    Of models whose folder is made: `run.py model` may go on beside this.
    """
    wanted = itertools.chain(also(file), (one for cell in cells for one in lacking(cell)))
    for one in wanted:
        is_made = (CACHE / MODELS[one.model].name).is_dir()
        if is_made and not (RUNS / one.place / one.name).is_dir():
            yield one


def work(cells: Iterable[Cell], file: Path | None, device: str, end: float) -> None:
    """Train run after run until the time is over."""
    import torch

    kept = list(cells)
    while time.time() < end:
        one = next(filter(claimed, lacked(kept, file)), None)
        if one is None:
            time.sleep(WAITING)
            continue
        # An adapter is drawn before the trainer sets its seed.
        torch.manual_seed(one.seed)
        started = time.monotonic()
        try:
            train_one(one, device)
            word = "done"
        except Exception:  # the next run is another: one that fails is tried once more
            traceback.print_exc()
            failed(one)
            word = "FAILED"
            time.sleep(WAITING)
        print(f"{word} {one.place}/{one.name} {time.monotonic() - started:.0f} s", flush=True)
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()


def main() -> None:
    """Start the processes, or be one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=0, help="processes [default: this one]")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--seconds", type=float, default=1500.0, help="no run begins after these")
    parser.add_argument("--end", type=float, default=0.0, help="the same, as seconds since 1970")
    parser.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--also", type=Path, help="runs that come before the plan")
    given = parser.parse_args()
    end = given.end or time.time() + given.seconds
    CLAIMS.mkdir(parents=True, exist_ok=True)
    if not given.workers:
        cells = [cell for cell in CELLS if cell.model in given.model]
        work(cells, given.also, given.device, end)
        return
    words: list[Any] = [sys.executable, __file__, "--device", given.device, "--end", end]
    words += ["--model", *given.model, *(["--also", given.also] if given.also else [])]
    going = [
        subprocess.Popen(list(map(str, words)), env=os.environ | ENVIRONMENT)
        for _ in range(given.workers)
    ]
    for process in going:
        process.wait()


if __name__ == "__main__":
    main()
