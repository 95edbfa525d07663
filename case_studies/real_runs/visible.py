"""Folders of real runs with an INDEX.tsv: which are found, how many rows, which settings are right.

Usage: ``python case_studies/real_runs/visible.py FOLDER ... [--verbose]``. The index was written by
hand. A run counts as found where one of the file's runs has the rewards that the index's own way of
reading gives; a setting is right or wrong where both the reader and the index tell it, and missing
where only the index does. The command ends with 1 where a run is not found or a setting is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import advisor
from advisor.runs import PilotRun
from advisor.theory import FloatArray

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from index import IndexedRun, read_index  # noqa: E402
from pilots import told_settings  # noqa: E402

SAME = 2e-5
"""Difference up to which two rewards are the same number."""

LEAST_SHARE = 0.9
"""Share of a run's rewards that the index must hold: rows may be left out with a reason."""

RATE = 0.011
"""Share by which learning rates may differ: an index rounds to two digits."""


class Compared(NamedTuple):
    """One run of the index and the reader's."""

    indexed: IndexedRun
    run: PilotRun | None
    rows: int
    settings: Mapping[str, tuple[str, Any, Any]]


def compare(folder: Path) -> tuple[list[Compared], list[str], float]:
    """Read a folder and hold every run against its index; also how long the reading took."""
    indexed, unread = read_index(folder)
    start = time.perf_counter()
    runs = advisor.inspect(folder).runs
    seconds = time.perf_counter() - start
    by_path: dict[str, list[PilotRun]] = {}
    for run in runs:
        by_path.setdefault(run.path, []).append(run)
    compared = []
    for entry in indexed:
        file = entry.row["local_file"]
        whole = folder / file
        path = whole if whole.is_file() else folder / file.partition(":")[0]
        run = _match(entry, by_path.get(str(path), []))
        rows = 0 if run is None else _curve(run).size
        settings = {} if run is None else settings_of(entry.row, run)
        compared.append(Compared(entry, run, rows, settings))
    return compared, unread, seconds


def _curve(run: PilotRun) -> FloatArray:
    curve = run.eval_reward if run.is_eval_only else run.reward
    return curve[np.isfinite(curve)]


def _match(entry: IndexedRun, here: Sequence[PilotRun]) -> PilotRun | None:
    """Run of the file with most rewards of the index, at least nine tenths of its own."""
    scored = [(_share(_curve(run), entry.reward), run) for run in here]
    best = max(scored, key=lambda item: item[0], default=(0.0, None))
    return best[1] if best[0] >= LEAST_SHARE else None


def _share(rewards: FloatArray, index: FloatArray) -> float:
    """Share of the rewards that stand, in this order, among those of the index, and the reverse."""
    shorter, longer = sorted((np.round(rewards, 5), np.round(index, 5)), key=len)
    at = hits = 0
    for value in shorter:
        there = np.flatnonzero(np.abs(longer[at:] - value) <= SAME)
        if there.size:
            at, hits = at + int(there[0]) + 1, hits + 1
    return hits / max(shorter.size, 1)


def settings_of(row: Mapping[str, str], run: PilotRun) -> dict[str, tuple[str, Any, Any]]:
    """Verdict, the reader's value and the index's, for every setting that one of them tells."""
    told = {key: value for key, value in told_settings(row).items() if key != "adapter"}
    if "?" in row["group_size"]:
        told.pop("group_size", None)
    size = re.match(r"[\d.]+", row["params_B"])
    if size:
        told["parameters"] = 1e9 * float(size[0])
    if row["model"] and not row["model"].startswith("unknown"):
        told["model"] = row["model"]
    text = f"{row['model']} {row['task']} {row['notes']}"
    if re.search(r"LoRA", text) and "full fine-tun" not in text:
        told["adapter"] = "lora"
    elif "full fine-tun" in text:
        told["adapter"] = "full"
    if "epochs_per_refresh" in told:
        told["refresh_interval"] = told.pop("minibatches_per_refresh") * told.pop(
            "epochs_per_refresh"
        )
    told |= BEYOND_THE_INDEX.get(row["id"], {})
    found = {
        name: getattr(run.hyperparameters, name, None)
        for name in ("learning_rate", "group_size", "prompts_per_step", "kl_coefficient")
    }
    found["schedule"], found["adapter"] = run.hyperparameters.schedule, run.hyperparameters.adapter
    found["refresh_interval"] = run.hyperparameters.refresh_interval
    if (
        not run.is_eval_only
        and re.fullmatch(r"\d+", row["log_every"])
        and row["framework"].lower().startswith("trl")
    ):
        told["logging_steps"] = int(row["log_every"])
        found["logging_steps"] = run.logging_steps
    found["model"], found["parameters"], found["task"] = run.model, run.parameters, run.task
    verdicts: dict[str, tuple[str, Any, Any]] = {}
    for name in {**found, **told}:
        said, known = found.get(name), told.get(name)
        if said is None and known is None:
            continue
        if said is None:
            verdicts[name] = ("missing", said, known)
        elif known is None:
            verdicts[name] = ("not in the index", said, known)
        else:
            verdicts[name] = ("right" if _agrees(name, said, known) else "wrong", said, known)
    return verdicts


def _agrees(name: str, said: Any, known: Any) -> bool:
    if name == "learning_rate":
        return bool(np.isclose(said, known, rtol=RATE, atol=0.0))
    if name == "kl_coefficient":
        return bool(np.isclose(said, known, rtol=0.25, atol=1e-9))
    if name == "parameters":
        return bool(np.isclose(said, known, rtol=0.2))
    if name == "model":
        sizes = PilotRun.parameters_in(str(said)), PilotRun.parameters_in(str(known))
        plain = [
            re.sub(r"[^a-z0-9]", "", str(value).split("/")[-1].lower()) for value in (said, known)
        ]
        return plain[0] in plain[1] or plain[1] in plain[0] or (sizes[0] == sizes[1] is not None)
    return bool(said == known)


BEYOND_THE_INDEX = {
    # Its notes tell the base of a sweep; the value of the run stands in its id and its notes.
    "arv_w6_batch_sweep_1_0": {"prompts_per_step": 1},
    "arv_w6_batch_sweep_4_2": {"prompts_per_step": 4},
    "arv_w6_batch_sweep_8_3": {"prompts_per_step": 8},
    # The column learning_rate falls by 7.58e-9 a step, from 1.8e-5 at step 10 to 7.6e-9.
    "th3_run5": {"schedule": "linear"},
}
"""What the index says otherwise, from the files themselves."""


def main() -> int:
    """Print the table of every folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--verbose", action="store_true", help="a line for every run")
    given = parser.parse_args()
    is_bad = False
    for folder in given.folders:
        compared, unread, seconds = compare(folder)
        print(f"\n{folder.name}: read in {seconds:.1f} s; the index itself misses {len(unread)}")
        for line in unread:
            print(f"  index: {line}")
        counts: Counter[tuple[str, str]] = Counter()
        lost, short = [], []
        for indexed, run, rows, settings in compared:
            name = indexed.id
            if run is None:
                lost.append(f"{name} ({indexed.row['local_file']})")
                continue
            if rows != indexed.reward.size:
                short.append(f"{name}: {rows} rows, the index {indexed.reward.size} [{run.id}]")
            for setting, (verdict, said, known) in settings.items():
                counts[setting, verdict] += 1
                if verdict == "wrong":
                    print(f"  WRONG {name}: {setting} {said!r}, the index says {known!r}")
            if given.verbose:
                told = ", ".join(f"{k}={s!r}" for k, (_, s, _) in settings.items() if s is not None)
                print(f"  {name}: {rows} rows as {run.id}; {told}")
        found = len(compared) - len(lost)
        print(f"  found {found} of {len(compared)}")
        for line in lost:
            print(f"  NOT FOUND {line}")
        for line in short:
            print(f"  ROWS {line}")
        verdicts = ("right", "wrong", "missing", "not in the index")
        print("  " + f"{'setting':<18}" + "".join(f"{v:>18}" for v in verdicts))
        for setting in sorted({setting for setting, _ in counts}):
            cells = "".join(f"{counts[setting, v]:>18}" for v in verdicts)
            print(f"  {setting:<18}{cells}")
        is_bad |= bool(lost) or any(v == "wrong" for _, v in counts)
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
