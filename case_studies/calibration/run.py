"""Command line of the calibration studies.

    python case_studies/calibration/run.py ranks               # resumes; an hour on two cores
    python case_studies/calibration/run.py ranks --study oscillator --simulations 100
    python case_studies/calibration/run.py predicted           # an hour of one core
    python case_studies/calibration/run.py misspecified        # an hour
    python case_studies/calibration/run.py ranks --quick       # 20 simulations, into --out

Simulations that are done are kept as lines in `simulations/`, so a command can be interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

# Before numpy is loaded: two processes share the cores, and idle BLAS threads would spin on them.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from engine_flags import add_engine_flags, on_engine  # noqa: E402
from manifest import manifest  # noqa: E402

SIMULATIONS = 300
CONTROLS = 100
QUICK = 20
PREDICTED = 200
MISSPECIFIED = 40


def ranks(arguments: argparse.Namespace, out: Path) -> None:
    """Study 1."""
    from one_simulation import STUDIES
    from rank_study import draw_ranks, run_simulations, summary

    chosen = arguments.study or (["spectrum"] if arguments.quick else list(STUDIES))
    for study in chosen:
        planned = CONTROLS if study.startswith("control") else SIMULATIONS
        wanted = arguments.simulations or (QUICK if arguments.quick else planned)
        run_simulations(study, wanted, out / "simulations", on_engine(arguments))
    files = [out / "simulations" / f"{study}.jsonl" for study in STUDIES]
    told = {path.stem: summary(path) for path in files if path.exists()}
    (out / "ranks.json").write_text(json.dumps(told, indent=1) + "\n")
    draw_ranks([path for path in files if path.exists()], told, out / "ranks.svg")
    for study, result in told.items():
        outside = f"{result['outside_band_of_all']} of {result['quantities_tested']} outside"
        print(f"{study}: {'passes' if result['passes'] else 'FAILS'}; {outside}")


def predicted(arguments: argparse.Namespace, out: Path) -> None:
    """Study 2: what `posterior.predict` says."""
    from predicted import DESIGNS, rows, run_predicted

    wanted = arguments.simulations or (2 if arguments.quick else PREDICTED)
    folder = out / "simulations" / "predicted"
    told = run_predicted(arguments.study or tuple(DESIGNS), wanted, folder, on=on_engine(arguments))
    document = told | {"manifest": manifest(HERE / "run.py", seeds=wanted, checks={})}
    (out / "predicted.json").write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(rows(told)))


def misspecified(arguments: argparse.Namespace, out: Path) -> None:
    """Study 3."""
    from misspecified import rows, run_misspecified
    from worlds import WORLDS

    wanted = arguments.simulations or (2 if arguments.quick else MISSPECIFIED)
    folder = out / "simulations" / "misspecified"
    told = run_misspecified(arguments.study or WORLDS, wanted, folder, on=on_engine(arguments))
    (out / "misspecified.json").write_text(json.dumps(told, indent=1) + "\n")
    print("\n".join(rows(told)))


COMMANDS = {"ranks": ranks, "predicted": predicted, "misspecified": misspecified}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=tuple(COMMANDS))
    parser.add_argument("--study", action="append", help="one of those of the command")
    parser.add_argument("--simulations", type=int, help="of each study")
    add_engine_flags(parser)
    parser.add_argument("--quick", action="store_true", help="a few, into --out or a new folder")
    parser.add_argument("--out", type=Path, help="folder of the results (default: this one)")
    arguments = parser.parse_args()
    out = arguments.out or (Path(tempfile.mkdtemp()) if arguments.quick else HERE)
    out.mkdir(parents=True, exist_ok=True)
    COMMANDS[arguments.what](arguments, out)
    print(f"Results in {out}")


if __name__ == "__main__":
    main()
