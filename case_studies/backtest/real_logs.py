"""Settings of public logs that their index tells and they do not, as a sidecar for the advisor.

    python case_studies/backtest/real_logs.py FOLDER > pilots.toml
    advisor backtest FOLDER --sidecar pilots.toml --least-steps 100

FOLDER holds logs and an INDEX.tsv with one row per run: local_file, model, params_B, task,
group_size, notes. Only what is stated there plainly is taken over: a task (what stands before the
first bracket, within its repository), a whole group size, a number of parameters, an adapter, and
prompts per step where the notes count completions or prompts per step.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from pathlib import Path


def settings(row: dict[str, str]) -> dict[str, object]:
    """Settings of one run."""
    found: dict[str, object] = {}
    task = re.split(r"[(\[]", row["task"])[0].strip()
    if task:
        found["task"] = f"{row['repo'].split('/')[0]}/{task}"
    if re.fullmatch(r"\d+(\.\d+)?", row["params_B"]):
        found["parameters"] = float(row["params_B"]) * 1e9
        found["model"] = re.split(r" \(", row["model"])[0]
    if row["group_size"].isdigit():
        found["group_size"] = int(row["group_size"])
        counted = re.search(r"(\d+) (completions|prompts)(?:/| per )step", row["notes"])
        if counted:
            share = found["group_size"] if counted[2] == "completions" else 1
            prompts = int(counted[1]) / int(str(share))
            if prompts == int(prompts):
                found["prompts_per_step"] = int(prompts)
    if re.search(r"\bLoRA\b", f"{row['model']} {row['task']} {row['notes']}"):
        found["adapter"] = "lora"
    return found


def main(folder: Path) -> None:
    """Print a [[run]] table for every file that holds one run."""
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    files = Counter(row["local_file"].split(":")[0] for row in rows)
    for row in rows:
        if files[row["local_file"]] != 1 or not (folder / row["local_file"]).is_file():
            continue
        print(f"[[run]]\npath = {json.dumps(row['local_file'])}")
        for name, value in settings(row).items():
            print(f"{name} = {json.dumps(value)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
