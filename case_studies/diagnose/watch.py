"""How soon `advisor watch` sees a failure put into a run half-way, and how often it cries wolf.

See README.md. ``python case_studies/diagnose/watch.py --logs FOLDER`` trains what FOLDER lacks,
looks at every run after every step, and writes ``watch.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from watch_failures import CAUSE, FAILURES, STEPS, config_of, train_one  # noqa: E402

from advisor import demo_folder  # noqa: E402
from advisor.forecast import fit  # noqa: E402
from advisor.model import Posterior  # noqa: E402
from advisor.monitoring import Watch, watch_report  # noqa: E402
from advisor.runs import PilotRun, read_runs  # noqa: E402

SEEDS = range(109, 119)
"""Far from those of the pilots; on 101 to 108 the threshold of a surprise was chosen."""

LEAST_ROWS = 3


def main() -> None:
    """Train, look, count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=Path, required=True, help="where runs are kept")
    parser.add_argument("--out", type=Path, default=HERE / "watch.json")
    given = parser.parse_args()
    jobs = [(name, seed) for name in FAILURES for seed in SEEDS]
    given.logs.mkdir(parents=True, exist_ok=True)
    missing = [job for job in jobs if not _log_of(given.logs, *job).exists()]
    posterior_file = given.logs / "posterior.nc"
    with Pool(2) as pool:
        for name, seed, text in pool.imap_unordered(train_one, missing):
            _log_of(given.logs, name, seed).write_text(text, encoding="utf-8")
        if not posterior_file.exists():
            fit(read_runs(demo_folder())).save(posterior_file)
        cases = [(given.logs, name, seed, False) for name, seed in jobs]
        cases += [(given.logs, name, seed, True) for name, seed in jobs if "rate x" in name]
        rows = pool.map(watched, cases, chunksize=1)
    told = summary(rows)
    given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told["table"], indent=1))


def watched(case: tuple[Path, str, int, bool]) -> dict[str, Any]:
    """Look at one run after each of its steps; what was seen, in the order of the steps."""
    folder, name, seed, is_hidden = case
    warnings.simplefilter("ignore")
    run = _read(folder, name, seed)
    if is_hidden:
        series = {key: value for key, value in run.series.items() if key != "learning_rate"}
        run = run.with_updates(series=series)
    watch = Watch(Posterior.load(folder / "posterior.nc"), planned_steps=STEPS)
    seen = []
    for rows in range(LEAST_ROWS, run.step.size + 1):
        found = watch_report(watch, run.before(rows))
        update = found.update
        seen.append(
            {
                "step": update.step,
                "rule": found.decision.rule,
                "alarm": found.decision.is_alarm,
                "covers": bool(update.final.low <= _end(run) <= update.final.high),
            }
        )
    return {"case": name + (", rate not logged" if is_hidden else ""), "seed": seed, "seen": seen}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count steps to the alarm and false alarms, per case."""
    table = {}
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row["seen"] for row in rows if row["case"] == case]
        is_healthy = case.startswith("healthy")
        until = STEPS if is_healthy else CAUSE
        quiet = [look for seen in own for look in seen if look["step"] <= until]
        entry: dict[str, Any] = {
            "runs": len(own),
            "healthy steps": len(quiet),
            "false alarms": sum(look["alarm"] for look in quiet),
        }
        if is_healthy:
            halves = [look for seen in own for look in seen if look["step"] in (40, 80, 120)]
            entry["80 % interval covers the end"] = round(
                float(np.mean([look["covers"] for look in halves])), 3
            )
        else:
            entry |= _delays(own)
        table[case] = entry
    return {"cause after step": CAUSE, "steps": STEPS, "table": table, "runs": condensed(rows)}


def condensed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is kept of each run: where an alarm began, ended and by which rule."""
    kept = []
    for row in rows:
        spells: list[list[Any]] = []
        for seen in row["seen"]:
            if seen["alarm"] and spells and spells[-1][1:] == [seen["step"] - 1, seen["rule"]]:
                spells[-1][1] = seen["step"]
            elif seen["alarm"]:
                spells.append([seen["step"], seen["step"], seen["rule"]])
        kept.append({"case": row["case"], "seed": row["seed"], "alarms from, to, by": spells})
    return kept


def _delays(own: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Steps from cause to the first alarm, and the rules that gave it."""
    delays, rules = [], []
    for seen in own:
        alarm = next((look for look in seen if look["step"] > CAUSE and look["alarm"]), None)
        delays.append(None if alarm is None else alarm["step"] - CAUSE)
        rules.append("none" if alarm is None else alarm["rule"])
    found = [delay for delay in delays if delay is not None]
    return {
        "alarms": len(found),
        "steps from cause to alarm": sorted(found),
        "median steps": float(np.median(found)) if found else None,
        "rules": {rule: rules.count(rule) for rule in dict.fromkeys(rules)},
    }


def _read(folder: Path, name: str, seed: int) -> PilotRun:
    """Read a run under the settings it began with: the log, cut short, must not tell its future."""
    config = config_of(name, seed)
    names = ("group_size", "prompts_per_step", "minibatches_per_refresh")
    settings = {key: getattr(config, key) for key in names}
    whose = {"task": "sort", "model": "tiny-s", "parameters": 26894}
    run = read_runs(_log_of(folder, name, seed), overrides={**settings, **whose})[0]
    began = run.hyperparameters.model_copy(
        update={
            "learning_rate": config.learning_rate,
            "schedule": "constant",
            "warmup_steps": 0,
            "planned_steps": STEPS,
        }
    )
    return run.with_updates(hyperparameters=began, warnings=())


def _end(run: PilotRun) -> float:
    return float(run.reward[-round(0.1 * run.reward.size) :].mean())


def _log_of(folder: Path, name: str, seed: int) -> Path:
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)
    return folder / f"{plain}_seed{seed}.json"


if __name__ == "__main__":
    main()
