"""Past one machine: the same cohorts on every engine, a team's history, joint fits.

    python case_studies/scale/run.py history --keep FOLDER   # half an hour of one core; resumes
    python case_studies/scale/run.py second_stage --cohorts 1000   # the second stage alone
    python case_studies/scale/run.py engines [--ray]         # processes, Dask, a worker killed
    python case_studies/scale/run.py joint --keep FOLDER     # a joint fit beside two stages
    python case_studies/scale/run.py table                   # seconds and memory of both, by runs

Each writes its result beside this file, or into --out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.path.append(str(HERE.parents[1] / "tests"))

from engine_flags import add_engine_flags, on_engine  # noqa: E402
from manifest import manifest  # noqa: E402

SEEDS_OF_A_WORLD = 4

SEEDS = {
    "history": "the number of each cohort",
    "second_stage": "the number of cohorts",
    "engines": "the number of each cohort",
    "joint": "of each case",
    "table": 0,
}
"""What chance follows from."""


def main() -> None:
    """Run one study, write its result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=tuple(SEEDS))
    parser.add_argument("--cohorts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="of all engines, in turns")
    parser.add_argument("--strangers", type=int, default=16)
    parser.add_argument("--held-out", type=int, default=14, help="of the team's cohorts")
    parser.add_argument("--cases", nargs="*", help='e.g. "one law, seed 0" [default: all]')
    parser.add_argument("--runs", type=int, nargs="*", help="rows of the table [default: all]")
    parser.add_argument("--no-joint", action="store_true", help="two stages only")
    parser.add_argument("--strict", action="store_true", help="also the price of R-hat below 1.01")
    parser.add_argument("--ray", action="store_true", help="also Ray, on this machine")
    parser.add_argument("--out", type=Path, default=HERE)
    add_engine_flags(parser)
    given = parser.parse_args()
    if given.what == "history":
        from history import history

        keep = given.keep or Path(tempfile.mkdtemp())
        told = history(given.cohorts, given.strangers, given.held_out, keep, on_engine(given))
    elif given.what == "second_stage":
        from second_stage import second_stage

        told = second_stage(given.cohorts, on_engine(given))
    elif given.what == "engines":
        from engines import engines

        told = engines(
            given.cohorts,
            given.rounds,
            with_ray=given.ray,
            tell=lambda told: write(told, given),
        )
    elif given.what == "joint":
        from groups import WORLDS
        from joint import agreement

        every = [f"{world}, seed {seed}" for world in WORLDS for seed in range(SEEDS_OF_A_WORLD)]
        told = agreement(given.cases or every, on_engine(given))
    else:
        from table import LAYOUT, with_rows

        result = given.out / "table.json"
        kept = json.loads(result.read_text("utf-8"))["rows"] if result.exists() else []
        how = {"with_joint": not given.no_joint, "strict": given.strict, "keep": given.keep}
        for rows in with_rows(given.runs or list(LAYOUT), kept, **how):
            told = {"rows": rows}
            write(told, given)
        return
    write(told, given)


def write(told: dict[str, Any], given: argparse.Namespace) -> None:
    """Write a result beside this file, or where it is wanted."""
    told["machine"] = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    )
    told["manifest"] = manifest(HERE / "run.py", seeds=SEEDS[given.what], checks={})
    text = json.dumps(told, indent=1)
    (given.out / f"{given.what}.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
