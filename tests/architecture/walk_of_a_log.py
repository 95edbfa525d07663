"""How many rooms one log passes: modules and functions of `advisor` entered while it is read.

Run as ``python tests/architecture/walk_of_a_log.py [trainer_state.json]``; prints JSON. With
``--advise`` in place of a log it counts the same of one answer from a made-up posterior, with
``--page`` of the page of that answer.

Counting. The package is imported first; caches are as empty as in a fresh process. While
`advisor.read_runs` reads the file, `sys.setprofile` reports each call of a Python function. Of
these, the calls into a function (or comprehension, generator, property) of a file below
``advisor/`` count, in the order in which they begin; bodies of modules and classes do not. A
generator counts again each time it is resumed, as Python reports it.

* modules: distinct files entered;
* functions: distinct code objects entered;
* switches: calls whose module is not that of the counted call before.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import advisor

sys.path.append(str(Path(__file__).parents[1]))

PACKAGE = Path(advisor.__file__).parent
ROWS = 60


def write_state(path: Path) -> Path:
    """Write a TRL (0.20 to 0.26) trainer_state.json of 60 rows."""
    rng = np.random.default_rng(60)
    history = []
    for step in range(1, ROWS + 1):
        right = rng.binomial(64, 0.3 + 0.006 * step) / 64
        history.append(
            {
                "clip_ratio/region_mean": float(rng.uniform(0, 0.02)),
                "completions/clipped_ratio": float(rng.binomial(64, 0.05) / 64),
                "completions/mean_length": float(rng.normal(200, 10)),
                "entropy": float(rng.normal(0.5, 0.02)),
                "epoch": step / 100,
                "frac_reward_zero_std": float(rng.binomial(8, 0.3) / 8),
                "grad_norm": float(rng.lognormal(0, 0.3)),
                "kl": float(0.001 * step * rng.lognormal(0, 0.2)),
                "learning_rate": 1e-5 * (1 - (step - 1) / ROWS),
                "loss": float(rng.normal(0, 0.01)),
                "num_tokens": 12800.0 * step,
                "reward": right,
                "reward_std": float(rng.uniform(0.2, 0.4)),
                "rewards/correct/mean": right,
                "rewards/correct/std": float(np.sqrt(right * (1 - right) * 64 / 63)),
                "step": step,
                "step_time": float(rng.normal(9, 0.3)),
            }
        )
    closing = {"step": ROWS, "epoch": 0.6, "train_loss": 0.001, "train_runtime": 540.0}
    state = {
        "best_metric": None,
        "epoch": 0.6,
        "global_step": ROWS,
        "log_history": [*history, closing],
        "logging_steps": 1,
        "max_steps": ROWS,
        "num_train_epochs": 1,
        "save_steps": 500,
        "train_batch_size": 8,
    }
    path.write_text(json.dumps(state))
    return path


def walked(call: Callable[[], Any]) -> tuple[Any, dict[str, object]]:
    """Call a function and count what is entered on the way."""
    calls: list[tuple[str, str, int]] = []

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            calls.append((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    modules = [str(Path(file).relative_to(PACKAGE)) for file, _, _ in calls]
    switches = [pair for pair in itertools.pairwise(modules) if pair[0] != pair[1]]
    return result, {
        "modules": len(set(modules)),
        "functions": len(set(calls)),
        "calls": len(calls),
        "switches": len(switches),
        "calls_by_module": dict(Counter(modules).most_common()),
        "switches_by_pair": {f"{a} -> {b}": n for (a, b), n in Counter(switches).most_common()},
    }


def walk(path: Path) -> dict[str, object]:
    """Read a log and count what is entered on the way."""
    read_runs = advisor.read_runs
    runs, counts = walked(lambda: read_runs(path))
    return {"runs": len(runs), "rows": int(runs[0].step.size), **counts}


def walk_of_an_answer(*, page: bool = False) -> dict[str, object]:
    """Advise from a made-up posterior, or write the page, and count what is entered on the way."""
    from simulated_runs import made_up_posterior

    advise, report, posterior = advisor.advise, advisor.report, made_up_posterior()
    answer, counts = walked(lambda: advise(posterior))
    if not page:
        return {"kind": answer.kind, **counts}
    file = Path(tempfile.mkdtemp()) / "report.html"
    _, counts = walked(lambda: report(posterior, answer, file))
    return {"has_sliders": 'type="range"' in file.read_text(encoding="utf-8"), **counts}


if __name__ == "__main__":
    if {"--advise", "--page"} & set(sys.argv):
        found = walk_of_an_answer(page="--page" in sys.argv)
    elif len(sys.argv) > 1:
        found = walk(Path(sys.argv[1]))
    else:
        # Two folders of its own above it: scripts that lie there are read as well.
        folder = Path(tempfile.mkdtemp()) / "project" / "run"
        folder.mkdir(parents=True)
        found = walk(write_state(folder / "trainer_state.json"))
    print(json.dumps(found, indent=1))
