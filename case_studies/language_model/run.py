"""Train a language model with TRL: planned runs, the closed loop.

    python case_studies/language_model/run.py model              # weights, from the registry
    python case_studies/language_model/run.py table [--workers 2] [--seconds 3000] [--also FILE]
    python case_studies/language_model/run.py loop [--task NAME...] [--presets FOLDER] [--out FILE]
    python case_studies/language_model/run.py pack               # the runs of the cache, to commit

Needs `pip install -e '.[language-model]'` and the weights. Training that was killed is redone,
finished runs are kept: call it again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cell_plan import CELLS  # noqa: E402
from later_tasks import ALL_TASKS  # noqa: E402
from model_weights import MODELS  # noqa: E402
from run_store import pack, packed_places, unpack  # noqa: E402
from workers import ENVIRONMENT, start, train_file, train_one, work  # noqa: E402


def close_loops(tasks: list[str], presets: Path | None, out: Path, device: str) -> None:
    """Per task: the ladder, pilots and advice, the advised run; then every other method."""
    import advice_loop

    def train_from(file: Path, task: str, seed: int, name: str) -> None:
        train_file(file, task, seed, name, device)

    for task in tasks:
        for one in advice_loop.ladder(task):
            train_one(one, device)
    advice = {}
    for task in tasks:
        priors = presets / f"{task}.toml" if presets else None
        advice[task] = own = advice_loop.advised(task, train_from, priors)
        print(f"{task}: {own.answer['kind']}, {own.arguments}", flush=True)
        for seed in advice_loop.lacking(task, own):
            train_from(own.file, task, seed, own.name(seed))
    for stage in (advice_loop.recipes, advice_loop.trials, advice_loop.chosen):
        for task in tasks:
            for one in stage(task, tasks):
                train_one(one, device)
    pack()
    advice_loop.write([advice_loop.told(task, tasks, advice[task]) for task in tasks], out)
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
    table.add_argument("--workers", type=int, default=1, help="processes")
    table.add_argument("--seconds", type=float, default=1e6, help="no run begins after these")
    table.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS))
    table.add_argument("--also", type=Path, help="runs that come before the plan, one a line")
    loops = commands.add_parser("loop", help="pilots, advice, the full run as advised, and others")
    loops.add_argument("--presets", type=Path, help="of learn.py --without-task [or shipped]")
    loops.add_argument("--task", nargs="+", choices=ALL_TASKS, default=list(ALL_TASKS))
    loops.add_argument("--out", type=Path, default=HERE / "loop.json")
    for command in (table, loops):
        command.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    return parser


def main() -> None:
    """Do what the command says."""
    asked = _parser().parse_args()
    if asked.command in ("table", "loop") and not os.environ.keys() >= ENVIRONMENT.keys():
        for place in packed_places():
            unpack(place)
        sys.exit(start(sys.argv, asked.workers if asked.command == "table" else 1))
    if asked.command == "model":
        from model_folder import model_folder

        for key in asked.model:
            print(model_folder(MODELS[key]))
    elif asked.command == "pack":
        print(f"{pack()} runs packed")
    elif asked.command == "table":
        cells = [one for one in CELLS if one.model in asked.model]
        work(cells, asked.also, asked.device, time.time() + asked.seconds)
    else:
        close_loops(asked.task, asked.presets, asked.out, asked.device)


if __name__ == "__main__":
    main()
