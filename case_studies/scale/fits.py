"""How long a fit takes: first process, later ones, refits, large cohorts, and other samplers.

Usage: python case_studies/scale/fits.py [--only PART ...] [--out fits.json]

Every time is wall-clock, on a machine that should do nothing else; the parts that start a process
start the installed command line.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from advisor.common import silent
from advisor.forecast import fit
from advisor.model import Sampling, cohort_of, convergence, load_priors
from advisor.model import cohort as cohorts
from advisor.model.compat import import_arviz, sample_density, versions
from advisor.model.fast import sampler_coordinates as mode
from advisor.model.fast import shape_of, shapes_of
from advisor.model.fast.density import density_of, draw_of
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
                task=f"t{index % 50 if runs > 100 else 0}",
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


def large() -> dict[str, float]:
    """Cost by the number of runs; peak memory of the process."""
    out = {}
    for runs in (10, 100, 1000):
        logs = synthetic(runs, STEPS)
        started = time.perf_counter()
        found = fit(logs, priors=PRESET)
        out[f"{runs}_runs_s"] = time.perf_counter() - started
        out[f"{runs}_runs_ess"] = found.convergence.ess
    out["peak_memory_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return out


def samplers() -> dict[str, Any]:
    """Effective draws per second: ours, the plain model, and PyMC's own NUTS on our graph."""
    runs = synthetic(RUNS, STEPS)
    settings = Sampling()
    return {
        "ours": _ess_per_second(lambda: _ours(runs, settings)),
        "plain": _ess_per_second(lambda: _plain(runs, settings)),
        "pymc": _ess_per_second(lambda: _pymc(runs)),
    }


def _ess_per_second(sample: Callable[[], tuple[dict[str, Any], float]]) -> dict[str, float]:
    draws, seconds = sample()
    found = convergence(draws)
    ess = min(float(np.min(pair[1])) for pair in found.values())
    rhat = max(float(np.max(pair[0])) for pair in found.values())
    return {"seconds": seconds, "ess": ess, "rhat": rhat, "ess_per_s": ess / seconds}


def _ours(runs: list[PilotRun], settings: Sampling) -> tuple[dict[str, Any], float]:
    started = time.perf_counter()
    cohort = cohort_of(runs)
    placement = mode.place(cohort, load_priors(PRESET))
    return _sample(cohort, placement.block, placement.start, settings, started)


def _plain(runs: list[PilotRun], settings: Sampling) -> tuple[dict[str, Any], float]:
    """Every row a bin, every run by its values, started at the prior mean as PyMC would."""
    bins, cohorts.MAX_BINS = cohorts.MAX_BINS, 10**6
    started = time.perf_counter()
    try:
        cohort = cohort_of(runs)
        placement = mode.place(cohort, load_priors(PRESET))
    finally:
        cohorts.MAX_BINS = bins
    data = dict(placement.data)
    table = np.array(data["run_table"])
    centre = np.concatenate(
        [
            np.broadcast_to(value, shape).ravel()
            for value, shape in zip(
                _prior_means(data), shapes_of(shape_of(cohort)).values(), strict=True
            )
        ]
    )
    for kind in range(3):
        at = mode.columns.RUN_PLACES + 3 * kind
        table[:, at + 2] = 1.0
    data["run_table"] = table
    block = mode.pack(data, shape_of(cohort))
    centre = mode.sampled(centre, block)

    def start(seed: int) -> Any:
        return centre + np.random.default_rng(seed).uniform(-1, 1, centre.size)

    return _sample(cohort, block, start, settings, started)


def _prior_means(data: dict[str, Any]) -> list[Any]:
    level = data["level_mean"]
    return [data["prior_mean"], level[:3, None], level[3], level[4:, None], 0.0, 0.0]


def _sample(
    cohort: Any, block: Any, start: Any, settings: Sampling, started: float
) -> tuple[dict[str, Any], float]:
    draws, _ = sample_density(
        density_of(block),
        draw_of(block, shape_of(cohort)),
        shapes_of(shape_of(cohort)),
        start,
        **settings.model_dump(),
        progress=silent,
    )
    return draws, time.perf_counter() - started


def _pymc(runs: list[PilotRun]) -> tuple[dict[str, Any], float]:
    import_arviz()
    import pymc as pm

    from advisor import build_model

    cohort = cohort_of(runs)
    placement = mode.place(cohort, load_priors(PRESET))
    model = build_model(shape_of(cohort), placement.data)
    with warnings.catch_warnings(), model:
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        trace = pm.sample(
            500,
            tune=500,
            chains=4,
            cores=2,
            random_seed=1,
            target_accept=0.9,
            progressbar=False,
            nuts_sampler="pymc",
        )
        seconds = time.perf_counter() - started
    posterior = trace["posterior"]
    return {name: np.asarray(posterior[name].values) for name in placement_names()}, seconds


def placement_names() -> list[str]:
    """Names of the sampled variables."""
    from advisor.model.fast import Shape

    return list(shapes_of(Shape(1, 1, 1)))


PARTS: dict[str, Callable[[], Any]] = {
    "processes": processes,
    "refits": refits,
    "samplers": samplers,
    "large": large,
}


def main() -> None:
    """Measure the parts asked for and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--out", type=Path, default=HERE / "fits.json")
    chosen = parser.parse_args()
    found: dict[str, Any] = {}
    if chosen.out.is_file():
        found = json.loads(chosen.out.read_text(encoding="utf-8"))
    found["python"], found["cores"] = platform.python_version(), os.cpu_count()
    found["versions"] = versions()
    for part in chosen.only:
        found[part] = PARTS[part]()
        print(part, json.dumps(found[part]))
        chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
