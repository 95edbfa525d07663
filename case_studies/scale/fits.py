"""How long a fit takes: first process, later ones, refits.

Usage: python case_studies/scale/fits.py [--out fits.json]

Every time is wall-clock, on a machine that should do nothing else; the parts that start a process
start the installed command line.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from advisor.forecast import fit
from advisor.model.compat import versions
from advisor.runs import PartialSettings, PilotRun

HERE = Path(__file__).parent
PRESET = "small_models"
RUNS, STEPS = 12, 200


def synthetic(runs: int, steps: int, seed: int = 0) -> list[PilotRun]:
    """Noisy exponential curves whose stiffness follows the learning rate and the group size."""
    rng = np.random.default_rng(seed)
    out = []
    for index in range(runs):
        rate = float(10 ** rng.uniform(-4, -3))
        group = int(rng.choice([4, 8, 16, 32]))
        stiffness = 0.03 * (rate / 3e-4) * (group / 8) ** 0.25 * np.exp(0.2 * rng.normal())
        time_ = np.arange(1.0, steps + 1)
        curve = 0.9 - 0.75 * np.exp(-stiffness * (time_ - 1))
        reward = np.clip(curve + rng.normal(0, 0.03, steps), 0, 1)
        out.append(
            PilotRun(
                id=f"run{index}",
                path="synthetic",
                model=f"m{index % 3}",
                task="t0",
                parameters=[3e4, 1e5, 3e5][index % 3],
                hyperparameters=PartialSettings(
                    learning_rate=rate, group_size=group, prompts_per_step=16, momentum=0.9
                ),
                step=time_,
                series={"reward": reward},
            )
        )
    return out


def as_files(runs: list[PilotRun], folder: Path) -> Path:
    """One JSON-lines file that the command line reads."""
    lines = [
        json.dumps(
            {
                "id": run.id,
                "task": run.task,
                "model": run.model,
                "params": run.parameters,
                "lr": run.hyperparameters.learning_rate,
                "G": run.hyperparameters.group_size,
                "K": 1,
                "prompts": 16,
                "beta1": 0.9,
                "reward": run.reward.tolist(),
            }
        )
        for run in runs
    ]
    path = folder / "runs.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def processes() -> dict[str, float]:
    """First command ever (empty cache of machine code), then later ones."""
    with tempfile.TemporaryDirectory() as folder:
        logs = as_files(synthetic(RUNS, STEPS), Path(folder))
        cache = Path(folder) / "cache"
        command = [sys.executable, "-m", "advisor", "fit", str(logs), "--priors", PRESET]
        command += ["--quiet", "--out", str(Path(folder) / "posterior.nc")]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
        times = []
        for _ in range(4):
            started = time.perf_counter()
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - started)
        shutil.rmtree(cache)
    return {"first_s": times[0], "later_s": float(np.median(times[1:]))}


def refits() -> dict[str, Any]:
    """Eight different cohorts in one process, after a first."""
    fit(synthetic(RUNS, STEPS, 99), priors=PRESET)
    times = []
    for seed in range(8):
        started = time.perf_counter()
        fit(synthetic(RUNS, STEPS, seed), priors=PRESET)
        times.append(time.perf_counter() - started)
    return {"median_s": float(np.median(times)), "each_s": times}


def main() -> None:
    """Measure and write as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "fits.json")
    out = parser.parse_args().out
    found = {"python": platform.python_version(), "cores": os.cpu_count(), "versions": versions()}
    found |= {"processes": processes(), "refits": refits()}
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
