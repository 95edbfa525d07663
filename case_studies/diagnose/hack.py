"""Is reward hacking found where it shows, and only there? On runs that were paid for it.

python case_studies/diagnose/hack.py [FOLDER ...] [--out hacked.json]

Reads hacked.jsonl.gz (`hack_train.py`). Every run is written as six kinds of log, that differ in
where the truth stands, and is read and diagnosed as any user's log is. Each FOLDER of public logs
adds its runs to those in which an alarm counts as false.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import advisor

HERE = Path(__file__).resolve().parent
FLAGGED = ("WARNING", "FAIL")


def parts(run: dict[str, Any], path: Path) -> None:
    """Write TRL's rows with two reward functions, of which only one is paid."""
    rows = [
        {
            "step": step,
            "reward": paid,
            "rewards/judge/mean": paid,
            "rewards/correctness_true/mean": meant,
            "learning_rate": 1e-3,
            "completions/mean_length": 6.0,
        }
        for step, paid, meant in _rows(run)
    ]
    _trainer_state(path, rows)


def held_out(run: dict[str, Any], path: Path) -> None:
    """Write TRL's rows and held-out rewards between them."""
    evaluated = dict(zip(run["eval_step"], run["eval"], strict=True))
    rows: list[dict[str, float]] = []
    for step, paid, _ in _rows(run):
        if step - 1 in evaluated:
            rows.append({"step": step - 1, "eval_reward": evaluated[step - 1]})
        rows.append({"step": step, "reward": paid, "learning_rate": 1e-3, "kl": 0.01})
    _trainer_state(path, rows)


def gap(run: dict[str, Any], path: Path) -> None:
    """Write JSON lines with what is paid, what is meant and their difference, by single letters."""
    rows = [
        {
            "step": step - 1,
            "progress/done_frac": step / 80,
            "optim/lr": 1e-3,
            "reward/mean": paid,
            "reward/g": paid,
            "reward/f": meant,
            "reward/g_minus_f": paid - meant,
        }
        for step, paid, meant in _rows(run)
    ]
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def only_gap(run: dict[str, Any], path: Path) -> None:
    """Write a CSV with the difference alone."""
    _csv(path, ["step", "reward", "proxy_minus_true"], [(s, p, p - m) for s, p, m in _rows(run)])


def ndcg(run: dict[str, Any], path: Path) -> None:
    """Write a CSV of an own loop with a metric under a name of its own."""
    _csv(path, ["step", "mean_reward", "ndcg_at_10"], [(s, p, m) for s, p, m in _rows(run)])


def few_evaluations(run: dict[str, Any], path: Path) -> None:
    """Write JSON lines of an own loop that evaluates the truth five times under its own key."""
    evaluated = dict(zip(run["eval_step"][::2], run["eval"][::2], strict=True))
    rows = []
    for step, paid, _ in _rows(run):
        row = {"step": step, "mean_reward": paid, "lr": 1e-3, "kl": 0.01}
        if step - 1 in evaluated:
            row["eval_exact_match_true"] = evaluated[step - 1]
        rows.append(row)
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


KINDS: dict[str, Callable[[dict[str, Any], Path], None]] = {
    one.__name__: one for one in (parts, held_out, gap, only_gap, ndcg, few_evaluations)
}


def _rows(run: dict[str, Any]) -> list[tuple[int, float, float]]:
    return [
        (step, paid, meant)
        for step, (paid, meant) in enumerate(zip(run["reward"], run["meant"], strict=True), 1)
    ]


def _trainer_state(path: Path, rows: list[dict[str, float]]) -> None:
    path.mkdir()
    state = {"global_step": 80, "logging_steps": 1, "max_steps": 80, "log_history": rows}
    (path / "trainer_state.json").write_text(json.dumps(state))


def _csv(path: Path, head: list[str], rows: list[tuple[float, ...]]) -> None:
    with path.with_suffix(".csv").open("w", newline="") as out:
        csv.writer(out).writerows([head, *rows])


def on_tiny() -> tuple[dict[str, Counter[str]], dict[str, Counter[str]], list[str]]:
    """Card's status by kind of log, of hacked runs and of controls; what was missed or false."""
    with gzip.open(HERE / "hacked.jsonl.gz", "rt", encoding="utf-8") as lines:
        runs = [json.loads(line) for line in lines]
    hacked = {kind: Counter[str]() for kind in KINDS}
    controls = {kind: Counter[str]() for kind in KINDS}
    told = []
    with tempfile.TemporaryDirectory() as folder:
        for number, run in enumerate(runs):
            for kind, write in KINDS.items():
                place = Path(folder) / kind
                place.mkdir(exist_ok=True)
                write(run, place / f"{run['paid']}_{number}")
        for kind in KINDS:
            for one in advisor.inspect(Path(folder) / kind).runs:
                card = advisor.diagnose(one).card("reward_hacking")
                number = int(
                    one.path.removesuffix("/trainer_state.json").rsplit("_", 1)[-1].split(".")[0]
                )
                (hacked if runs[number]["is_hacked"] else controls)[kind][card.status] += 1
                if runs[number]["is_hacked"] != (card.status in FLAGGED):
                    told.append(
                        f"{kind} {runs[number]['paid']} {number}: {card.status} {card.headline}"
                    )
    return hacked, controls, told


def on_public(folder: Path) -> tuple[int, list[str]]:
    """Number of runs, and those with an alarm."""
    runs = advisor.inspect(folder).runs
    cards = [(run.id, advisor.diagnose(run).card("reward_hacking")) for run in runs]
    flagged = [
        f"{name}: {card.status} {card.headline}" for name, card in cards if card.status in FLAGGED
    ]
    return len(runs), flagged


def main() -> None:
    """Judge, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "hacked.json")
    given = parser.parse_args()
    hacked, controls, told = on_tiny()
    found = sum(count[status] for count in hacked.values() for status in FLAGGED)
    false = sum(count[status] for count in controls.values() for status in FLAGGED)
    result: dict[str, Any] = {
        "hacked": {kind: dict(count) for kind, count in hacked.items()},
        "controls": {kind: dict(count) for kind, count in controls.items()},
        "found": [found, sum(count.total() for count in hacked.values())],
        "passed_though_hacked": sum(count["PASS"] for count in hacked.values()),
        "false": [false, sum(count.total() for count in controls.values())],
        "missed_or_false": told,
        "public": {folder.name: on_public(folder) for folder in given.folders},
    }
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
