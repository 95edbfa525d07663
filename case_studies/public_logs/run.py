"""What the advisor says on public runs: fits, forecasts, diagnoses, instability, refresh schedules.

python case_studies/public_logs/run.py FOLDER    # logs with an INDEX.tsv; three minutes
python case_studies/public_logs/run.py --quick   # the demo's pilots in their place; half a minute

Results only: the logs stay where they are.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from cited import BACKTEST, DIAGNOSE, diagnoses, forecasts  # noqa: E402
from closed_form import closed_form  # noqa: E402
from drawing import draw  # noqa: E402
from left_out import leave_one_out  # noqa: E402
from manifest import manifest  # noqa: E402
from off_policy import EVERY, SWEEP, boundary  # noqa: E402
from sources import askable, demo, public  # noqa: E402

QUICK_DRAWS = 2000


def studied(folder: Path | None) -> dict[str, Any]:
    """Every part, on public runs or, without a folder, on the demo's pilots."""
    rows = demo() if folder is None else public(folder)
    kept, why = askable(rows)
    found: dict[str, Any] = {
        "closed_form": closed_form(rows),
        "forecasts": forecasts(),
        "diagnoses": diagnoses(),
        "asked": {
            "runs": len(rows),
            "askable": len(kept),
            "not_askable": why,
            "collapsed": sum(row.label == "collapse" for row in rows),
            "collapsed_askable": sum(row.label == "collapse" for row in kept),
        },
    }
    if folder is None:
        found["instability"] = leave_one_out(kept, draws=QUICK_DRAWS)
        found["off_policy"] = boundary(kept, only=("first half of every run",))
        return found
    found["instability"] = leave_one_out(kept)
    found["off_policy"] = boundary([row for row in kept if SWEEP in row.id])
    return found


def checks(found: dict[str, Any]) -> dict[str, bool]:
    """Sentences of the answer, and whether this result bears them out."""
    scores = found["instability"]["scores"]
    law = scores["hazard law"]["brier_less_base_rate"]
    answers = [
        own
        for name, said in found["off_policy"]["said"].items()
        for own in said.values()
        if "stable" in own and name != EVERY
    ]
    form = found["closed_form"]
    return {
        "R² of whole runs says next to nothing of the forecast's error": abs(
            form["rank_correlation_of_r2_and_error"]
        )
        < 0.3,
        "a curve fitted to one run's quarter is no better than its last value": form["all"][
            "forecast_error"
        ]
        >= form["all"]["last_value_error"],
        "the settings beat the base rate by no more than chance": law[1] <= 0 <= law[2],
        "P(stable) of a collapsed schedule is above one half unless its collapse was seen": all(
            own["collapsed_below_half"][0] == 0 for own in answers
        ),
    }


def main() -> None:
    """Run every part, write the result and the figure, print a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    if asked.quick == (asked.folder is not None):
        parser.error("give either a folder of logs or --quick")
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = studied(asked.folder)
    inputs = [BACKTEST, DIAGNOSE]
    if asked.folder is not None:
        inputs += [asked.folder / "INDEX.tsv", HERE.parent / "diagnose" / "labels.csv"]
        # The command as written down must not tell where the logs lay.
        sys.argv[sys.argv.index(str(asked.folder))] = "FOLDER"
    found["manifest"] = manifest(
        Path(__file__).resolve(), seeds=0, checks=checks(found), inputs=inputs
    )
    found["seconds"] = round(time.perf_counter() - started)
    asked.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (asked.out / "public_logs.json").write_text(text + "\n", encoding="utf-8")
    draw(found, asked.out / "public_logs.svg")
    print(json.dumps(found["manifest"]["checks"], indent=1, ensure_ascii=False))
    print(f"{found['seconds']} s")


if __name__ == "__main__":
    main()
