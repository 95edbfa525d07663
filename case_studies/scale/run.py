"""What a team's history is worth: learn a preset from it, forecast its other cohorts.

    python case_studies/scale/run.py --keep FOLDER   # an hour of two cores; resumes

Writes history.json beside this file, or into --out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.path.append(str(HERE.parents[1] / "tests"))

from engine_flags import add_engine_flags, on_engine  # noqa: E402
from history import history  # noqa: E402
from manifest import manifest  # noqa: E402


def main() -> None:
    """Learn, forecast, write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cohorts", type=int, default=64)
    parser.add_argument("--strangers", type=int, default=16)
    parser.add_argument("--held-out", type=int, default=14, help="of the team's cohorts")
    parser.add_argument("--out", type=Path, default=HERE)
    add_engine_flags(parser)
    given = parser.parse_args()
    keep = given.keep or Path(tempfile.mkdtemp())
    told = history(given.cohorts, given.strangers, given.held_out, keep, on_engine(given))
    told["machine"] = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    )
    told["manifest"] = manifest(HERE / "run.py", seeds="the number of each cohort", checks={})
    text = json.dumps(told, indent=1)
    (given.out / "history.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
