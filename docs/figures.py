"""Draw the pictures of the README and of docs/ from the study of ``advisor demo``.

    python docs/figures.py [STUDY]

Without a study the demo is run first (half a minute).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from advisor.reporting import drawings
from advisor.study.study import Study

HERE = Path(__file__).parent


def main(study: Path) -> None:
    """Write one SVG per figure beside this file."""
    study = Study.load(study)
    posterior, advice = study.posterior, study.recommendation
    for one in drawings(posterior, advice):
        path = HERE / f"{one.name}.svg"
        path.write_bytes(one.rendered("svg"))
        print(f"{path} {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "study"
            demo = [sys.executable, "-m", "advisor", "demo", "--quiet", "--out", str(made)]
            subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
            main(made)
