"""Draw the pictures of the README and of docs/ from the pilots of case_studies/tiny_transformer.

    python docs/figures.py [STUDY]

Without a study they are fitted first (a minute). What came of the advised setting is drawn in.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from advisor import read_runs
from advisor.study import Study

HERE = Path(__file__).parent
CASE = HERE.parent / "case_studies" / "tiny_transformer"


def main(study: Path) -> None:
    """Write one SVG per figure beside this file."""
    finished = read_runs(CASE / "advised")
    for path in replace(Study.load(study), finished=tuple(finished)).plot(
        "all", HERE, formats=("svg",)
    ):
        print(f"{path} {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "study"
            asked = ["advise", str(CASE / "pilots"), "--quiet", "--out", str(made)]
            command = [sys.executable, "-m", "advisor", *asked]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            main(made)
