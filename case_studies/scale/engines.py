"""The same cohorts on every engine: equal results, what the engine itself costs, nothing lost."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from cohorts import made_cohort

from advisor.backtesting.backtests import CURVES
from advisor.backtesting.cases import make_cases
from advisor.backtesting.scores import crps
from advisor.common import Item, mapped
from advisor.errors import AdvisorError
from advisor.forecast import curve_fit

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "tests" / "engine"))
# Workers of a cluster import this file by its name.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(HERE), str(HERE.parents[1]), os.environ.get("PYTHONPATH")])
)

WORKERS = 2
SEEN = 0.25
CURVE = "exponential"
BARE = "bare pool of processes"
WARM = 1_000_000
"""Number of the first of the cohorts by which workers are started before time is taken."""


RAY_LIMIT_SECONDS = 900
"""After which Ray is stopped, which is said: what it holds together may never end."""

Work = Callable[[Iterable[int]], list[Any]]
"""From numbers of cohorts to what they score."""

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def scored(number: int) -> list[float]:
    """CRPS of a curve fitted to the first quarter of every run of a cohort."""
    cohorts, _ = make_cases(made_cohort(number), SEEN)
    told = []
    for cohort in cohorts:
        for case in cohort.cases:
            rng = np.random.default_rng(number)
            draws = curve_fit(case.seen, case.steps, CURVES[CURVE], cohort.bounds, rng)[0]
            told.append(float(crps(draws, case.target)))
    return told


def engines(
    count: int, rounds: int, *, with_ray: bool, tell: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Every engine on the same cohorts, in turns; what is known so far is told after each."""
    from clusters import cluster

    told: dict[str, Any] = {"cohorts": count, "workers": WORKERS, "rounds": rounds, "engines": {}}
    expected: list[Any] = []

    def ask(name: str, work: Work, *, is_own: bool = True) -> None:
        found, spent = timed(work, count)
        if not expected:
            expected.extend(found)
        if not is_own:  # not all of its processes can be asked in the end
            del spent["cpu_seconds"]
        one = told["engines"].setdefault(name, {"equal": True, "lost": 0})
        one["equal"] &= found == expected
        one["lost"] += sum(each is None for each in found)
        for what, value in spent.items():
            one.setdefault(what, []).append(value)
        bare = told["engines"][BARE]
        for kind in ("wall", "cpu"):
            if f"{kind}_seconds" in spent:
                one[f"{kind}_over_bare_pool"] = over(
                    one[f"{kind}_seconds"], bare[f"{kind}_seconds"]
                )
        print(name, one, file=sys.stderr, flush=True)
        tell(told)

    for _ in range(rounds):
        with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
            ask(BARE, partial(in_pool, pool))
        ask("processes", lambda numbers: on(WORKERS, numbers))
        with cluster(WORKERS) as own:
            ask("dask", partial(on_dask, own.address))
        if with_ray:
            told["ray_failed"] = why_not_in_time(lambda: ask("ray", on_ray, is_own=False))
    with cluster(WORKERS) as own:
        third = min(told["engines"]["dask"]["wall_seconds"]) / 3

        def work(numbers: Iterable[int]) -> list[Any]:
            if 0 in numbers:  # not while it warms up
                threading.Timer(third, own.workers[0].kill).start()
            return on_dask(own.address, numbers)

        ask("dask, a worker killed", work, is_own=False)
        told["worker_was_killed"] = own.workers[0].poll() == -9
    return told


def timed(work: Work, count: int) -> tuple[list[Any], dict[str, float]]:
    """Results of all cohorts, and what they took after workers had been started and warm."""
    before = time.perf_counter()
    work(range(WARM, WARM + 2 * WORKERS))
    start = time.perf_counter() - before
    before, cpu = time.perf_counter(), processor_seconds()
    found = work(range(count))
    return found, {
        "wall_seconds": round(time.perf_counter() - before, 1),
        "cpu_seconds": round(processor_seconds() - cpu, 1),
        "load_average": round(os.getloadavg()[0], 1),
        "seconds_to_start": round(start, 1),
    }


def over(seconds: list[float], bare: list[float]) -> float:
    """Median over rounds of what an engine took over what the bare pool took in the same round."""
    return round(median(one / of for one, of in zip(seconds, bare, strict=False)), 3)


def why_not_in_time(work: Callable[[], None]) -> str | None:
    """Why it did not end before the limit, at which it is given up; None where it did."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {RAY_LIMIT_SECONDS} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(RAY_LIMIT_SECONDS)
    try:
        work()
    except (TimeoutError, AdvisorError) as error:  # on a busy machine Ray may not even start
        return str(error)
    finally:
        signal.alarm(0)
    return None


def processor_seconds() -> float:
    """Of this process and all that it started, with those that have ended: wall turns on others."""
    parents, spent = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = sum(map(int, fields[11:15])) / CLOCK_TICKS
    own = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(spent[one] for one in own)


def in_pool(pool: ProcessPoolExecutor, numbers: Iterable[int]) -> list[Any]:
    """Results of a bare pool, which keeps no lines."""
    return list(pool.map(scored, numbers))


def items_of(numbers: Iterable[int]) -> list[Item]:
    """An item for each cohort; nothing turns on more than its number."""
    return [Item(f"cohort {number}", number, (str(number),)) for number in numbers]


def on(jobs: int, numbers: Iterable[int]) -> list[Any]:
    """Results of so many processes, with every line kept on disk."""
    items = items_of(numbers)
    with tempfile.TemporaryDirectory() as folder:
        found = mapped(scored, items, task="Scoring curves", jobs=jobs, keep=Path(folder))
        lines = (Path(folder) / "items.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(items)
    return [None if one is None else one.result for one in found.outcomes]


def on_dask(address: str, numbers: Iterable[int]) -> list[Any]:
    """Results in joblib's context of a Dask cluster."""
    from distributed import Client
    from joblib import parallel_config

    with Client(f"tcp://{address}"), parallel_config("dask"):
        return on(1, numbers)


def on_ray(numbers: Iterable[int]) -> list[Any]:
    """Results in joblib's context of a Ray cluster of this machine."""
    import ray
    from joblib import parallel_config
    from ray.util.joblib import register_ray

    ray.init("local", log_to_driver=False)
    register_ray()
    try:
        with parallel_config("ray", n_jobs=-1):
            return on(1, numbers)
    finally:
        ray.shutdown()
