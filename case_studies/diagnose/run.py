"""Compare the diagnoses of labelled real runs with what an eye sees.

python case_studies/diagnose/run.py FOLDER [--out diagnose.json]

FOLDER holds logs and an INDEX.tsv (id, repo, local_file, filter, what_happened); labels.csv
beside this file says what an eye sees in each.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from advisor.diagnosis import Diagnosis, diagnose, find_collapse
from advisor.diagnosis.collapse import find_final_fall, floor_of, judged_series
from advisor.diagnosis.levels import SURE
from advisor.runs import PilotRun, read_runs

HERE = Path(__file__).parent
ONSET_WITHIN = 10.0
SIGNS = {
    "alternation": "refreshes alternate",
    "slowing": "rise together",
    "drift along the refresh": "depends on the position",
}
"""What a card only tells, without a verdict -> words by which its witness is known."""


def wilson(count: int, total: int) -> list[float]:
    """Share with its 95 % interval."""
    if not total:
        return [float("nan")] * 3
    z, share = 1.96, count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) / (1 + z**2 / total)
    return [round(float(v), 3) for v in (share, middle - half, middle + half)]


def labelled(folder: Path) -> list[dict[str, Any]]:
    """Runs of the index with their labels."""
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        index = list(csv.DictReader(lines, delimiter="\t"))
    with (HERE / "labels.csv").open(encoding="utf-8", newline="") as lines:
        labels = {row["id"]: row for row in csv.DictReader(lines)}
    read: dict[str, list[PilotRun]] = {}
    found = []
    for row in index:
        file = row["local_file"].split(":")[0]
        if file not in read:
            read[file] = read_runs(folder / file)
        found.append({**row, **labels[row["id"]], "run": _match(read[file], row, folder / file)})
    return found


def _match(runs: list[PilotRun], row: dict[str, str], path: Path) -> PilotRun:
    if len(runs) == 1:
        return runs[0]
    node = json.loads(path.read_text(encoding="utf-8"))
    for part in row["filter"].split("."):
        node = node[int(part) if part.isdigit() else part]
    wanted = np.array([one["reward"] if isinstance(one, dict) else one for one in node], float)
    return next(
        run
        for run in runs
        if run.reward.size == wanted.size and np.allclose(run.reward, wanted, equal_nan=True)
    )


def signs_of(found: Diagnosis) -> list[str]:
    """Signs that the cards tell."""
    said = [line for card in found.cards for line in card.witnesses]
    return [name for name, words in SIGNS.items() if any(words in line for line in said)]


def strength(run: PilotRun) -> float | None:
    """Standard errors of a fall that the definition alone sees; None where it sees none."""
    step, reward = judged_series(run)
    if not reward.size or not find_collapse(step, reward, floor_of(run)).unstable:
        return None
    fall = find_final_fall(step, reward, floor_of(run))[1]
    return None if fall is None else fall.z


def on_real(folder: Path) -> dict[str, Any]:
    """Verdicts by label, recall and onset of collapses; recall leaving each source out."""
    rows = labelled(folder)
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    collapses = []
    signs: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        found = diagnose(row["run"])
        verdicts[row["verdict"]][found.verdict] += 1
        signs[row["verdict"]].update(signs_of(found))
        row["fail"] = found.verdict == "FAIL"
        row["z"] = strength(row["run"])
        if row["what_happened"].startswith("collapse") or row["verdict"] == "collapse":
            eye = float(row["onset_step"]) if row["onset_step"] else None
            collapses.append(
                {
                    "id": row["id"],
                    "label": row["verdict"],
                    "in_index": row["what_happened"].startswith("collapse"),
                    "onset_by_eye": eye,
                    "onset_found": found.collapse_step,
                }
            )
    visible = [one for one in collapses if one["in_index"]]
    hits = [one for one in visible if one["onset_found"] is not None]
    close = [
        one
        for one in hits
        if one["onset_by_eye"] is not None
        and abs(one["onset_found"] - one["onset_by_eye"]) <= ONSET_WITHIN
    ]
    healthy = [row for row in rows if row["verdict"] == "healthy"]
    return {
        "runs": len(rows),
        "verdicts": {label: dict(count) for label, count in sorted(verdicts.items())},
        "signs": {label: dict(count) for label, count in sorted(signs.items())},
        "collapses": collapses,
        "recall": [len(hits), len(visible), *wilson(len(hits), len(visible))],
        "onset_within_10": [len(close), len(visible)],
        "healthy_failed": [
            sum(row["fail"] for row in healthy),
            len(healthy),
            *wilson(sum(row["fail"] for row in healthy), len(healthy)),
        ],
        "leave_one_repository_out": left_out(rows),
    }


def left_out(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Recall and false alarms of collapse with the threshold set on the other repositories.

    The threshold lies half-way between the weakest fall of a labelled collapse and the strongest
    one of a healthy or flat run, among the runs of the other repositories.
    """

    def is_sick(row: dict[str, Any]) -> bool:
        return bool(row["what_happened"].startswith("collapse"))

    def is_well(row: dict[str, Any]) -> bool:
        return row["verdict"] in ("healthy", "flat") and not is_sick(row)

    out: dict[str, Any] = {"repositories": {}, "in_use": SURE}
    caught = false = sick = well = 0
    for repo in sorted({row["repo"] for row in rows}):
        others = [row for row in rows if row["repo"] != repo and row["z"] is not None]
        low = min((row["z"] for row in others if is_sick(row)), default=SURE)
        high = max((row["z"] for row in others if is_well(row)), default=SURE)
        limit = (low + high) / 2
        own = [row for row in rows if row["repo"] == repo]
        called = [row for row in own if row["z"] is not None and row["z"] >= limit]
        counts = [
            sum(map(is_sick, called)),
            sum(map(is_sick, own)),
            sum(map(is_well, called)),
            sum(map(is_well, own)),
        ]
        out["repositories"][repo] = {
            "threshold": round(float(limit), 2),
            "recall": counts[:2],
            "false": counts[2:],
        }
        caught, sick = caught + counts[0], sick + counts[1]
        false, well = false + counts[2], well + counts[3]
    out["recall"] = [caught, sick, *wilson(caught, sick)]
    out["false"] = [false, well, *wilson(false, well)]
    return out


def main() -> None:
    """Judge every run, print a summary, write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "diagnose.json")
    asked = parser.parse_args()
    real = on_real(asked.folder)
    asked.out.write_text(json.dumps({"real": real}, indent=1) + "\n", encoding="utf-8")
    for name in ("recall", "onset_within_10", "healthy_failed", "verdicts"):
        print(name, real[name])
    print("leave one repository out", real["leave_one_repository_out"])


if __name__ == "__main__":
    main()
