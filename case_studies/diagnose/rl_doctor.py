"""What rl-doctor says about logs that were labelled by eye: verdicts only, no log contents.

    python -m venv DIR && DIR/bin/pip install rldoctor==0.2.0
    python case_studies/diagnose/rl_doctor.py FOLDER DIR/bin/python
    python case_studies/diagnose/rl_doctor.py --jsonl RUNS.jsonl DIR/bin/python --out OTHER.json

FOLDER holds logs and an INDEX.tsv with one row per run: id, local_file, filter, group_size. Every
run is diagnosed in three ways, to give rl-doctor its best chance:

- raw: the file as it is; rl-doctor opens .jsonl, .json with a list of rows and .csv;
- converted: rows in TRL's key names, written from what the advisor's reader found in the log;
- converted_with_settings: the same after a line of settings (group size, lengths, KL weight, ...),
  with which rl-doctor estimates the share of silent groups where that was not logged.

RUNS.jsonl holds one run per line with the keys id, label, step, series (by the names of
`advisor.PilotRun.SERIES`) and parts; eval_step, eval_reward, missing and hyperparameters are
used where given. Absent cells are null or NaN; a series is written with its NaNs, which rl-doctor
takes for a numerical failure, only where missing says "not finite".

"opened" says that rl-doctor raised no error, "judged" that at least one check could run, "curve"
that it found a reward or a held-out score. A verdict is the worst severity of all checks: CRITICAL,
WARNING, INFO, OK or SKIPPED (nothing could be checked).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs import PilotRun, read_runs

HERE = Path(__file__).resolve().parent
COLUMNS = ("raw", "converted", "converted_with_settings")
ALARMS = ("CRITICAL", "WARNING")
SHOWN = (*ALARMS, "INFO")

TRL_KEYS = {
    "reward": "reward",
    "reward_std_within_group": "reward_std",
    "silent_group_share": "frac_reward_zero_std",
    "entropy": "entropy",
    "gradient_norm": "grad_norm",
    "clip_share": "clip_ratio/region_mean",
    "learning_rate": "learning_rate",
    "kl": "kl",
    "completion_length": "completions/mean_length",
    "truncated_share": "completions/clipped_ratio",
    "step_time_seconds": "step_time",
    "loss": "loss",
    "tokens": "num_tokens",
}
"""Name of a series -> TRL's key; what TRL logs no key for is left out."""

TRL_SETTINGS = {
    "learning_rate": "learning_rate",
    "group_size": "num_generations",
    "kl_coefficient": "beta",
    "clip_low": "epsilon",
    "clip_high": "epsilon_high",
    "max_completion_length": "max_completion_length",
    "planned_steps": "max_steps",
}
"""Hyperparameter -> TRL's name of it."""

CHILD = """
import json, sys, warnings
warnings.simplefilter("ignore")
import rl_doctor
def judge(path):
    try:
        run = rl_doctor.load_run(path)
    except Exception as error:
        return {"opened": False, "why": type(error).__name__}
    found = rl_doctor.diagnose(run)
    return {
        "opened": True,
        "judged": any(f.severity > rl_doctor.Severity.SKIPPED for f in found.findings),
        "curve": run.has("reward_mean") or run.has("eval_score"),
        "worst": found.worst.name,
        "findings": {f.detector: f.severity.name for f in found.problems},
    }
paths = json.load(sys.stdin)
print(json.dumps({"version": rl_doctor.__version__, "verdicts": [judge(p) for p in paths]}))
"""


def diagnose(python: str, paths: Sequence[Path]) -> tuple[str, list[dict[str, Any]]]:
    """rl-doctor's version and its verdict on each path, from one process of its own."""
    done = subprocess.run(
        [python, "-c", CHILD],
        input=json.dumps([str(path) for path in paths]),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    return answer["version"], answer["verdicts"]


def as_mapping(run: PilotRun) -> dict[str, Any]:
    """A run as a line of RUNS.jsonl holds it."""
    return {
        "step": run.step.tolist(),
        "series": {name: values.tolist() for name, values in run.series.items()},
        "parts": {name: values.tolist() for name, values in run.parts.items()},
        "eval_step": run.eval_step.tolist(),
        "eval_reward": run.eval_reward.tolist(),
        "missing": dict(run.missing),
        "hyperparameters": run.hyperparameters.model_dump(exclude_none=True),
    }


def trl_rows(run: Mapping[str, Any]) -> list[dict[str, float]]:
    """Rows in TRL's key names, sorted by step."""
    columns = {
        TRL_KEYS[name]: (values, run.get("missing", {}).get(name) == "not finite")
        for name, values in run["series"].items()
        if name in TRL_KEYS
    }
    for name, values in run.get("parts", {}).items():
        columns[f"rewards/{name.replace('/', '_')}/mean"] = (values, False)
    rows: dict[float, dict[str, float]] = {}
    for place, step in enumerate(run["step"]):
        row = rows.setdefault(step, {"step": step})
        for key, (values, keeps_nan) in columns.items():
            value = math.nan if values[place] is None else float(values[place])
            if math.isfinite(value) or keeps_nan:
                row[key] = value
    for step, reward in zip(run.get("eval_step", ()), run.get("eval_reward", ()), strict=True):
        rows.setdefault(step, {"step": step})["eval_reward"] = reward
    return [rows[step] for step in sorted(rows)]


def trl_settings(run: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in TRL's names."""
    known = run.get("hyperparameters") or {}
    named = {TRL_SETTINGS[name]: known[name] for name in TRL_SETTINGS if known.get(name)}
    return {"algorithm": "grpo", **named}


def write_run(path: Path, run: Mapping[str, Any], settings: Mapping[str, Any] | None) -> Path:
    """Write a run as rl-doctor reads it, the settings (if any) in the first line."""
    lines: list[Mapping[str, Any]] = [] if settings is None else [{"config": settings}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, *trl_rows(run)]))
    return path


def run_of(row: Mapping[str, str], folder: Path) -> PilotRun | None:
    """The run that an index row describes; of a file with several the one of its place or tag."""
    path = folder / row["local_file"].split(":")[0]
    try:
        runs = read_runs(path)
    except InputError:
        return None
    if len(runs) == 1:
        return runs[0]
    place = row["filter"].rpartition(".")[0]
    node = json.loads(path.read_text(encoding="utf-8"))
    for part in place.split("."):
        node = node[int(part) if part.isdigit() else part]
    by_id = {run.id: run for run in runs}
    return by_id.get(f"{node['tag']} ({place})", by_id.get(node["tag"]))


def from_folder(folder: Path) -> Iterable[tuple[str, Path | None, dict[str, Any] | None]]:
    """Id, raw file and run of each row of the index."""
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            run = run_of(row, folder)
            read = None if run is None else as_mapping(run)
            if read is not None and row["group_size"].isdigit():
                read["hyperparameters"].setdefault("group_size", int(row["group_size"]))
            yield row["id"], folder / row["local_file"].split(":")[0], read


def from_jsonl(path: Path) -> Iterable[tuple[str, None, dict[str, Any]]]:
    """Id and run of each line."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                run = json.loads(line)
                yield str(run["id"]), None, run


def judge_all(
    python: str, cases: Iterable[tuple[str, Path | None, dict[str, Any] | None]]
) -> tuple[str, dict[str, dict[str, Any]]]:
    """rl-doctor's version; run -> column -> verdict."""
    verdicts: dict[str, dict[str, Any]] = {}
    asked: list[tuple[str, str, Path]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for place, (name, raw, run) in enumerate(cases):
            verdicts[name] = {}
            if raw is not None:
                asked.append((name, "raw", raw))
            if run is None:
                verdicts[name] |= {
                    column: {"opened": False, "why": "not read by the advisor"}
                    for column in COLUMNS[1:]
                }
                continue
            for column, settings in zip(COLUMNS[1:], (None, trl_settings(run)), strict=True):
                path = Path(scratch) / f"{place}_{column}.jsonl"
                asked.append((name, column, write_run(path, run, settings)))
        version, answers = diagnose(python, [path for _, _, path in asked])
    for (name, column, _), answer in zip(asked, answers, strict=True):
        verdicts[name][column] = answer
    return version, verdicts


def summary(verdicts: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]) -> dict[str, Any]:
    """Column -> runs opened, label x worst severity, label x check x severity."""
    found: dict[str, Any] = {}
    for column in COLUMNS:
        worst: dict[str, Counter[str]] = defaultdict(Counter)
        checks: dict[str, Counter[str]] = defaultdict(Counter)
        counted: Counter[str] = Counter()
        for name, by_column in verdicts.items():
            if column not in by_column:
                continue
            verdict = by_column[column]
            label = labels.get(name, "unlabelled")
            counted.update(key for key in ("opened", "judged", "curve") if verdict.get(key))
            worst[label][verdict.get("worst", "not opened")] += 1
            for check, severity in verdict.get("findings", {}).items():
                checks[label][f"{check} {severity}"] += 1
        if worst:
            found[column] = {
                "runs": sum(sum(counts.values()) for counts in worst.values()),
                **counted,
                "worst_by_label": {label: dict(worst[label]) for label in sorted(worst)},
                "checks_by_label": {
                    label: dict(sorted(checks[label].items())) for label in sorted(checks)
                },
            }
    return found


def print_summary(found: Mapping[str, Any]) -> None:
    """One table per column: how many runs of each label got which severity."""
    heads = (*SHOWN, "OK", "SKIPPED", "not opened")
    for column, counts in found.items():
        print(f"{column}: {counts.get('opened', 0)} of {counts['runs']} opened")
        print(f"  {'label':12}" + "".join(f"{head:>12}" for head in heads))
        for label, severities in counts["worst_by_label"].items():
            cells = "".join(f"{severities.get(head, 0):12}" for head in heads)
            print(f"  {label:12}{cells}")


def read_labels(path: Path) -> dict[str, str]:
    """Run -> label by eye."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["id"]: row["verdict"] for row in csv.DictReader(lines)}


def main() -> None:
    """Diagnose, print the tables and write the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="folder with logs and an INDEX.tsv")
    parser.add_argument("python", help="python that has rldoctor")
    parser.add_argument("--jsonl", type=Path, help="runs in JSONL instead of a folder")
    parser.add_argument("--labels", type=Path, default=HERE / "labels.csv", help="labels by eye")
    parser.add_argument("--out", type=Path, help="default: rl_doctor.json here, of a folder")
    options = parser.parse_args()
    if (options.folder is None) == (options.jsonl is None):
        parser.error("give a folder or --jsonl FILE")
    if options.jsonl is not None:
        if options.out is None:
            parser.error("--jsonl needs --out, the result of the logs is not overwritten")
        cases: list[Any] = list(from_jsonl(options.jsonl))
        labels = {name: str(run.get("label", "unlabelled")) for name, _, run in cases}
    else:
        cases = list(from_folder(options.folder))
        labels = read_labels(options.labels) if options.labels.is_file() else {}
    version, verdicts = judge_all(options.python, cases)
    found = summary(verdicts, labels)
    print_summary(found)
    runs = [{"id": name, "label": labels.get(name), **verdicts[name]} for name in verdicts]
    lines = ",\n".join(json.dumps(run) for run in runs)
    head = json.dumps({"rldoctor": version, "summary": found}, indent=1).removesuffix("\n}")
    out = options.out or HERE / "rl_doctor.json"
    out.write_text(f'{head},\n"runs": [\n{lines}\n]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
