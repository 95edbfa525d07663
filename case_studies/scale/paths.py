"""What the fast path is worth: the PyMC definition through nutpie against the numba kernel.

    python case_studies/scale/paths.py [--python python3.13] [--sizes 12x60 64x200] [--out FILE]

Every fit runs in a process of its own: the first with empty caches of machine code (cold), the
second of another cohort of the same shape with what the first left (warm). The definition gets
what a cache can use: its data as shared variables, PyTensor's cache of numba code, and nutpie's
wrappers compiled with ``cache=True``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PRESET = "small_models"
LIMIT_S = 720
"""Processor seconds of a fit, after which it is ended."""
COLD_SEED, WARM_SEED = 0, 1


class Stages:
    """Wall-clock and processor seconds of what was done, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, dict[str, float]] = {}
        self._last = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), sum(os.times()[:4])

    def end(self, name: str) -> None:
        """Close a stage, which began where the last one ended."""
        now = self._now()
        wall, processor = (round(b - a, 1) for a, b in zip(self._last, now, strict=True))
        self.seconds[name] = {"wall_s": wall, "processor_s": processor}
        print(name, self.seconds[name], file=sys.stderr, flush=True)
        self._last = self._now()


def with_shared_data(model: Any) -> Any:
    """Model whose data and priors are shared variables, so that its code does not hold them."""
    import pytensor
    from pymc.model.fgraph import fgraph_from_model, model_from_fgraph
    from pytensor.tensor.elemwise import DimShuffle
    from pytensor.tensor.random.op import RandomVariable
    from pytensor.tensor.variable import TensorConstant

    graph, _ = fgraph_from_model(model)
    constants: dict[Any, None] = {}
    for node in graph.toposort():
        # Means and deviations move with the cohort's reference.
        is_prior = isinstance(node.op, RandomVariable)
        for given in node.inputs:
            is_spread = is_prior and given.owner and isinstance(given.owner.op, DimShuffle)
            one = given.owner.inputs[0] if is_spread else given
            if isinstance(one, TensorConstant) and (
                one.data.size > 1 or (is_prior and "float" in one.dtype)
            ):
                constants[one] = None
    replaced = [
        (one, pytensor.shared(one.data.copy(), name=f"constant_{index}", shape=one.data.shape))
        for index, one in enumerate(constants)
    ]
    graph.replace_all(replaced, import_missing=True)
    return model_from_fgraph(graph)


def by_definition(cohort: Any, stages: Stages) -> dict[str, Any]:
    """Fit of the PyMC model through nutpie."""
    import numpy as np
    import nutpie

    import advisor
    from advisor.model import Sampling, convergence

    model = with_shared_data(advisor.build_model(cohort, PRESET))
    stages.end("build")
    compiled = nutpie.compile_pymc_model(model, backend="numba", cache=True)
    stages.end("compile")
    ours = Sampling()
    trace = nutpie.sample(
        compiled,
        draws=ours.draws,
        tune=ours.tune,
        chains=ours.chains,
        seed=ours.seed,
        target_accept=ours.target_accept,
        progress_bar=False,
    )
    stages.end("sample")
    draws = {one.name: np.asarray(trace["posterior"][one.name].values) for one in model.free_RVs}
    ess = min(float(np.min(pair[1])) for pair in convergence(draws).values())
    stages.end("check")
    statistics = trace["sample_stats"]
    return {
        "ess": round(ess),
        "divergences": int(statistics["diverging"].values.sum()),
        "steps_per_draw": round(float(statistics["n_steps"].values.mean()), 1),
    }


def by_kernel(cohort: Any, stages: Stages) -> dict[str, Any]:
    """One attempt of the product's own fit."""
    import numpy as np

    from advisor.common import silent
    from advisor.model import SPECTRUM, Sampling, load_priors, sampled
    from advisor.model.fast import data_of, shape_of, shapes_of
    from advisor.model.fast.density import density_of, draw_of, pack

    priors = load_priors(PRESET)
    shape = shape_of(cohort)
    block = pack(data_of(cohort, priors.at(cohort.reference)), shape)
    stages.end("build")
    point = np.zeros(sum(int(np.prod(size)) for size in shapes_of(shape).values()))
    density_of(block)(point)
    draw_of(block, shape)(point)
    stages.end("compile")
    found = sampled(cohort, priors, SPECTRUM, Sampling(), silent).convergence
    stages.end("sample")
    return {
        "ess": round(found.ess),
        "divergences": round(found.divergent_share * found.draws),
        "steps_per_draw": round(found.steps_per_draw, 1),
    }


PATHS: dict[str, Callable[[Any, Stages], dict[str, Any]]] = {
    "kernel": by_kernel,
    "definition": by_definition,
}


def one_fit(path: str, size: str, seed: int) -> None:
    """Fit one cohort in this process, and print what it took."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    warnings.simplefilter("ignore")
    stages = Stages()
    sys.path.insert(0, str(ROOT))
    import advisor
    from case_studies.scale.fits import synthetic

    runs, steps = map(int, size.split("x"))
    cohort = advisor.cohort_of(synthetic(runs, steps, seed))
    stages.end("import and read")
    found = PATHS[path](cohort, stages)
    print(json.dumps({"stages": stages.seconds, **found}))


def measured(path: str, size: str, seed: int, python: str, cache: Path) -> dict[str, Any]:
    """Seconds of one fit in a process of its own, whose caches lie in a folder."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "PYTENSOR_FLAGS": f"base_compiledir={cache / 'pytensor'}",
    }
    command = [python, __file__, "--fit", path, "--sizes", size, "--seed", str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        reached = done.stderr.strip().splitlines()
        is_long = done.returncode == -signal.SIGXCPU
        why = f"ended after {LIMIT_S} processor seconds" if is_long else reached[-1]
        return {"failed": why, "reached": reached[-4:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure both paths at every size, cold and warm."""
    parser = argparse.ArgumentParser(description="The PyMC definition against the kernel")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sizes", nargs="+", default=["12x60", "64x200"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "paths.json")
    parser.add_argument("--fit", choices=PATHS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=COLD_SEED, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        one_fit(given.fit, given.sizes[0], given.seed)
        return
    version = subprocess.run([given.python, "--version"], capture_output=True, text=True)
    python = version.stdout.strip()
    document = json.loads(given.out.read_text()) if given.out.exists() else {}
    for size in given.sizes:
        for path in PATHS:
            with tempfile.TemporaryDirectory() as cache:
                for state, seed in (("cold", COLD_SEED), ("warm", WARM_SEED)):
                    found = measured(path, size, seed, given.python, Path(cache))
                    document[f"{python}, {size}, {path}, {state}"] = found
                    print(python, size, path, state, found, flush=True)
                    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
