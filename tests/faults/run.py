"""What machines do to files: damage, kills of whole commands.

    python tests/faults/run.py                     # all of it: half an hour on two cores
    python tests/faults/run.py damage --jobs 2     # one part; the others' results are kept
    python tests/faults/run.py damage --seed 121   # other damage than was mended against
    python tests/faults/run.py again --findings F  # what made a finding, after it is mended
    python tests/faults/run.py --quick             # seconds; nothing is written

Ends with 1 where anything was lost, hung, crashed or printed a traceback; files that made a finding
are kept under --findings.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(one) for one in (HERE, HERE.parent, ROOT, ROOT / "case_studies")]

import damage  # noqa: E402
import single  # noqa: E402
from manifest import manifest  # noqa: E402

RESULT = HERE / "faults.json"
SEED = 21

NUMBERS = {"damage": 110_000, "single": 200}
QUICK = {"damage": 1200, "single": 4}
"""How many of each."""

NOTHING = {
    "damage": ("findings",),
    "again": ("findings",),
    "single": ("studies, logs or plans lost", "tracebacks, or no work after a kill"),
}
"""Counts that must be zero."""


def run(
    part: str, number: int, *, seed: int = SEED, jobs: int = 1, findings: Path
) -> dict[str, Any]:
    """Run one part."""
    if part == "again":
        return damage.again(findings)
    if part == "damage":
        return _damage(number, seed, jobs, findings)
    return single.run(number, seed) | {"seed": seed}


def failures(part: str, found: dict[str, Any]) -> list[str]:
    """Counts of a part that should be zero and are not."""
    return [f"{part}: {found[name]} {name}" for name in NOTHING[part] if found.get(name)]


def _damage(number: int, seed: int, jobs: int, findings: Path) -> dict[str, Any]:
    """Share the damaged files among processes."""
    if jobs == 1:
        return damage.run(number, seed, findings)
    share = -(-number // jobs)
    with ProcessPoolExecutor(jobs) as pool:
        parts = list(
            pool.map(damage.run, [share] * jobs, range(seed, seed + jobs), [findings] * jobs)
        )
    whole = dict(parts[0])
    for name in ("files", "findings"):
        whole[name] = sum(part[name] for part in parts)
    for name in ("seconds", "slowest_seconds", "largest_megabytes"):
        whole[name] = max(part[name] for part in parts)
    for name in ("formats", "outcomes"):
        total: Counter[str] = Counter()
        for part in parts:
            total.update(part[name])
        whole[name] = dict(sorted(total.items()))
    whole["seed"] = list(range(seed, seed + jobs))
    whole["examples_of_findings"] = sorted({e for p in parts for e in p["examples_of_findings"]})
    return whole


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[[], *NUMBERS, "again"], metavar="PART")
    parser.add_argument("--number", type=int, help="of files or kills")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--findings", type=Path, default=Path("fault-findings"))
    given = parser.parse_args()
    numbers = QUICK if given.quick else NUMBERS
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    wrong: list[str] = []
    for part in given.parts or list(NUMBERS):
        number = given.number or numbers.get(part, 0)
        found = run(part, number, seed=given.seed, jobs=given.jobs, findings=given.findings)
        wrong += failures(part, found)
        print(json.dumps({part: found}, indent=1), flush=True)
        if not given.quick:
            kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
            kept[part] = found
            checks = {
                f"{name}: no {count}": not kept[name].get(count)
                for name in NOTHING
                if name in kept
                for count in NOTHING[name]
            }
            seeds = {name: kept[name].get("seed") for name in NOTHING if name in kept}
            kept["manifest"] = manifest(Path(__file__), seeds=seeds, checks=checks)
            RESULT.write_text(json.dumps(kept, indent=1) + "\n")
    for one in wrong:
        print(one, file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
