"""What the fast path is worth: the PyMC definition through nutpie against the numba kernel.

    python case_studies/scale/paths.py [--earlier FOLDER] [--python python3.13] [--out paths.json]

Every fit runs in a process of its own, first with empty caches of machine code (cold), then with
those that it left (warm); on a machine that does nothing else. ``--earlier`` is a checkout of a
commit whose sampler was bound through nutpie's private classes (5415653).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SIZES = ((12, 60), (64, 200))
LIMIT_S = 300

COMMON = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
started = time.perf_counter()
import advisor
runs = list(advisor.read_runs(sys.argv[1]))
"""

FIT = """
stages = {}
def tell(stage, *_):
    stages.setdefault(stage, time.perf_counter())
found = advisor.fit(runs, priors="small_models", progress=tell)
before, after = stages["Loading the sampler"], stages["Checking convergence"]
gate = getattr(found, "convergence", None)
print(json.dumps({"fit_s": after - before, "total_s": time.perf_counter() - started,
    "attempts": 1 + ("Sampling again" in stages), "ess": getattr(gate, "ess", None)}))
"""

DEFINITION = """
import nutpie
before = time.perf_counter()
model = advisor.build_model(advisor.cohort_of(runs), "small_models")
compiled = nutpie.compile_pymc_model(model, backend="numba")
trace = nutpie.sample(compiled, draws=1000, tune=500, chains=4, seed=1, target_accept=0.9,
    progress_bar=False)
done = time.perf_counter()
print(json.dumps({"fit_s": done - before, "total_s": done - started, "attempts": 1,
    "divergences": int(trace["sample_stats"]["diverging"].values.sum())}))
"""


def measured(code: str, tree: Path, python: str, logs: Path, cache: Path) -> dict[str, Any]:
    """Times of one fit in one process."""
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        "PYTENSOR_FLAGS": f"base_compiledir={cache / 'pytensor'}",
    }
    command = [python, "-c", COMMON + code, str(logs)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer in {LIMIT_S} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure every path at every size, cold and warm."""
    sys.path.insert(0, str(ROOT))
    from case_studies.scale.fits import as_files, synthetic

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--earlier", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "paths.json")
    given = parser.parse_args()
    paths = {"kernel": (FIT, ROOT), "definition": (DEFINITION, ROOT)}
    if given.earlier:
        paths["kernel, private classes"] = (FIT, given.earlier)
    found: dict[str, Any] = {}
    for runs, steps in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            logs = as_files(synthetic(runs, steps), Path(folder))
            for name, (code, tree) in paths.items():
                cache = Path(folder) / name
                for state in ("cold", "warm"):
                    key = f"{runs} x {steps}, {name}, {state}"
                    found[key] = measured(code, tree, given.python, logs, cache)
                    print(key, found[key], flush=True)
    version = subprocess.run([given.python, "--version"], capture_output=True, text=True)
    document = {"python": version.stdout.strip(), "cores": os.cpu_count(), "times": found}
    given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
