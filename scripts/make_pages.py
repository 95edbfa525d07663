"""Make the pages that are to be looked at: one of each kind of answer, from real fits.

``python scripts/make_pages.py FOLDER [KIND ...]``, then
``python scripts/check_pages.py FOLDER/*/report.html --shots FOLDER/shots`` for the pictures.

The recommendation is that of ``advisor demo``; the pilots of the others are simulated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from advisor.advice import advise
from advisor.diagnosis import diagnose
from advisor.forecast.fitting import fit
from advisor.runs.logs import demo_folder, read_runs
from advisor.runs.pilot_run import PilotRun
from advisor.study.study import Study

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from simulated_runs import Plan, simulate_runs

RATES = (1e-4, 3e-4, 1e-3)

LARGE = Plan(1e-6, 8, model="Qwen/Qwen2.5-7B", parameters=7.6e9, task="gsm8k", steps=100)
"""Of three runs like this a recommendation has to come whose settings nobody varied."""


def demo() -> list[PilotRun]:
    """Pilots that ``advisor demo`` comes with."""
    pilots = demo_folder().with_name("demo") / "pilots"
    return read_runs(pilots)


def dead() -> list[PilotRun]:
    """Pilots of which none lived."""
    died = [Plan(rate, collapse=at) for rate, at in ((1e-3, 25), (3e-3, 12), (1e-2, 6))]
    return simulate_runs(died)


KINDS: dict[str, tuple[Callable[[], list[PilotRun]], dict[str, Any]]] = {
    "recommendation": (demo, {"steps": 600}),
    "next_pilot": (lambda: simulate_runs([Plan(rate) for rate in RATES[:2]]), {"steps": 600}),
    "all_dead": (dead, {"steps": 200}),
    "three_7b": (lambda: simulate_runs([LARGE] * 3), {"steps": 300}),
}
"""Pilots of each kind of page, and what is asked of them."""


def make(kind: str, folder: Path) -> Study:
    """Fit the pilots of a kind, ask, and save the study with its page."""
    pilots, asked = KINDS[kind]
    runs = pilots()
    posterior = fit(runs)
    judged = tuple(diagnose(run, siblings=runs) for run in runs)
    return Study(posterior, advise(posterior, **asked), judged).save(folder / kind)


def main() -> int:
    """Make the pages that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    asked = parser.parse_args()
    unknown = sorted(set(asked.kinds) - set(KINDS))
    if unknown:
        parser.error(f"no page is called {', '.join(unknown)}: choose among {', '.join(KINDS)}")
    for kind in asked.kinds or KINDS:
        made = make(kind, asked.folder)
        print(f"{made.path}/report.html: {made.recommendation.kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
