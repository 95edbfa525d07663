"""The one place that knows which PyMC, ArviZ and nutpie are installed.

Python 3.11 resolves to PyMC 5 and ArviZ 0.23, later Pythons to PyMC 6 and ArviZ 1.x, whose results
are DataTrees. Interval probabilities are never left to a default:
the defaults moved between the two.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from advisor.common import SAMPLING, Progress, silent
from advisor.theory import FloatArray

REPORT_SECONDS = 1.5
"""Between reports of progress: counting the draws takes a tenth of a second of one core."""

STATISTICS = {
    "diverging": "diverging",
    "n_steps": "n_steps",
    "energy": "energy",
    "logp": "lp",
    "mean_tree_accept": "acceptance_rate",
    "step_size": "step_size",
    "depth": "tree_depth",
}
"""Statistics of a draw: nutpie's names, and ArviZ's."""

TRUSTED_K = 0.7  # Pareto k up to which importance weights are trusted (arXiv:1507.02646)


def use_caches() -> None:
    """Point ArviZ and matplotlib at a temporary folder where theirs cannot be written.

    ArviZ 0.23, which PyMC 5 imports, makes a cache on import and fails where it cannot.
    """
    places = {"XDG_CACHE_HOME": "~/.cache", "MPLCONFIGDIR": "~/.config"}
    given = {name: os.environ.get(name) for name in places}
    given["MPLCONFIGDIR"] = given["MPLCONFIGDIR"] or os.environ.get("XDG_CONFIG_HOME")
    lost = [at for at, place in places.items() if not _is_usable(given[at] or place)]
    if lost:
        folder = tempfile.mkdtemp(prefix="advisor-cache-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ.update(dict.fromkeys(lost, folder))


def _is_usable(place: str) -> bool:
    """Whether a file can be written in a folder, which is made where it is not there."""
    folder = os.path.expanduser(place)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError:
        return False
    return True


with contextlib.suppress(OSError):  # nor is there a temporary folder: who needs one will say so
    use_caches()


def import_arviz() -> Any:
    """Import ArviZ without its once-a-day announcement of the 1.0 split."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


Draws = dict[str, FloatArray]


def sample_density(
    log_density: Callable[[FloatArray], tuple[float, FloatArray]],
    expand: Callable[[FloatArray], dict[str, FloatArray]],
    shapes: Mapping[str, tuple[int, ...]],
    start: Callable[[int], FloatArray],
    *,
    draws: int,
    tune: int,
    chains: int,
    seed: int,
    target_accept: float,
    progress: Progress,
    most: int | None = None,
    is_enough: Callable[[Draws, Draws], bool] | None = None,
) -> tuple[Draws, Draws]:
    """Run NUTS on a log density that Python can call: draws and statistics.

    From ``draws`` a chain on, and at each half as many more, ``is_enough`` is asked of all so far,
    up to ``most``: what a seed gives does not turn on how fast a machine is.

    Many parameters because: it is all that a sampler has to be told.
    """
    checks = range(draws, (most or draws) + 1, max(1, draws // 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nutpie
        from nutpie.compiled_pyfunc import from_pyfunc

        model = from_pyfunc(
            sum(math.prod(shape) for shape in shapes.values()),
            lambda: log_density,
            lambda *seeds: expand,
            [np.dtype(np.float64)] * len(shapes),
            list(shapes.values()),
            list(shapes),
            make_initial_point_fn=start,
        )
        sampler: Any = nutpie.sample(
            model,
            draws=checks[-1],
            tune=tune,
            chains=chains,
            seed=seed,
            target_accept=target_accept,
            # Levels of plateau, loss and speed go together: along them a diagonal matrix creeps.
            low_rank_modified_mass_matrix=True,
            progress_bar=False,
            save_warmup=True,
            blocking=False,
        )
        return _until_enough(sampler, checks, is_enough, shapes, chains * (draws + tune), progress)


def _until_enough(
    sampler: Any,
    checks: Sequence[int],
    is_enough: Callable[[Draws, Draws], bool] | None,
    shapes: Mapping[str, tuple[int, ...]],
    planned: int,
    progress: Progress,
) -> tuple[Draws, Draws]:
    """Let a sampler go on until its first draws are enough, and report how many it has."""
    waiting = [] if is_enough is None else list(checks[:-1])
    looked = time.monotonic()
    while True:
        with contextlib.suppress(TimeoutError):  # nutpie's answer while chains start
            if sampler.is_finished:
                break
        time.sleep(0.02)
        is_due = time.monotonic() - looked >= REPORT_SECONDS
        if not is_due or (progress is silent and not waiting):
            continue
        trace, counts = _so_far(sampler)
        looked = time.monotonic()
        done = sum(counts)
        of = (
            f"of {planned} draws over all chains" if done <= planned else "draws until chains agree"
        )
        progress(SAMPLING, min(done, planned) / planned, f"{done} {of}")
        while waiting and min(_counts(trace, "sample_stats"), default=0) >= waiting[0]:
            found = _first_draws(trace, waiting.pop(0), shapes)
            if is_enough is not None and is_enough(*found):
                sampler.cancel()
                return found
    trace = sampler.wait()
    for check in waiting:
        found = _first_draws(trace, check, shapes)
        if is_enough is not None and is_enough(*found):
            return found
    return _first_draws(trace, checks[-1], shapes)


def _first_draws(
    trace: Any, count: int, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Draws, Draws]:
    """Draws and statistics of a trace, so many a chain."""
    posterior, statistics = trace["posterior"], trace["sample_stats"]
    return (
        {name: np.asarray(posterior[name].values[:, :count], dtype=float) for name in shapes},
        {
            ours: np.asarray(statistics[theirs].values[:, :count], dtype=float)
            for theirs, ours in STATISTICS.items()
        },
    )


def _counts(trace: Any, group: str) -> list[int]:
    """Draws of each chain in a group of a trace."""
    try:
        values = np.asarray(trace[group]["depth"].values, dtype=float)
    except (KeyError, TypeError):
        return []
    # Chains that lag behind are padded with NaN or zeros.
    return [int(np.count_nonzero(np.nan_to_num(chain))) for chain in values]


def _so_far(sampler: Any) -> tuple[Any, list[int]]:
    """Trace of all chains and their draws, warm-up included; none while a chain stored none."""
    try:
        trace = sampler.inspect()
    except (TimeoutError, RuntimeError, ValueError, KeyError, IndexError):
        return None, []
    return trace, [n for of in ("warmup_sample_stats", "sample_stats") for n in _counts(trace, of)]


def convergence(draws: Mapping[str, FloatArray]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Rank-normalised split R-hat and bulk effective sample size."""
    arviz = import_arviz()
    out = {}
    for name, values in draws.items():
        flat = values.reshape(*values.shape[:2], -1)
        rhat = np.array([float(arviz.rhat(flat[:, :, i])) for i in range(flat.shape[2])])
        ess = np.array([float(arviz.ess(flat[:, :, i])) for i in range(flat.shape[2])])
        shape = values.shape[2:]
        out[name] = (rhat.reshape(shape), ess.reshape(shape))
    return out


def density(values: FloatArray, points: int = 256) -> tuple[FloatArray, FloatArray]:
    """Kernel density by ArviZ's own estimator: grid and density, each of shape (points,)."""
    arviz = import_arviz()
    if hasattr(arviz, "kde"):
        grid, heights = arviz.kde(values, grid_len=points)[:2]
    else:
        from arviz_stats.base import array_stats

        grid, heights = array_stats.kde(values, grid_len=points)[:2]
    return np.asarray(grid, dtype=float), np.asarray(heights, dtype=float)


def as_inference_data(
    groups: Mapping[str, Mapping[str, tuple[tuple[str, ...], FloatArray]]],
    coordinates: Mapping[str, Sequence[str]],
) -> Any:
    """Groups as the installed ArviZ has them."""
    arviz = import_arviz()
    import xarray

    datasets = {}
    for name, variables in groups.items():
        dims = dict.fromkeys(dim for own, _ in variables.values() for dim in own)
        labels = {dim: list(coordinates[dim]) for dim in dims if dim in coordinates}
        sizes = {dim: n for of, v in variables.values() for dim, n in zip(of, v.shape, strict=True)}
        numbered = {dim: np.arange(sizes[dim]) for dim in dims if dim not in coordinates}
        datasets[name] = xarray.Dataset(dict(variables), coords={**labels, **numbered})
    if hasattr(arviz, "plot_posterior"):
        return arviz.InferenceData(**datasets)
    return xarray.DataTree.from_dict(datasets)


def smoothed_weights(log_ratios: FloatArray) -> tuple[FloatArray, float]:
    """Pareto-smoothed importance weights (Vehtari et al., arXiv:1507.02646)."""
    if np.ptp(log_ratios) < 1e-9:
        return np.full(log_ratios.size, 1 / log_ratios.size), 0.0  # no tail to fit
    if log_ratios.size < 25:  # a tail of fewer than five is too few to fit
        plain = np.exp(log_ratios - np.max(log_ratios))
        return plain / plain.sum(), math.inf
    arviz = import_arviz()
    if hasattr(arviz, "psislw"):
        logs, k = arviz.psislw(np.array(log_ratios))
    else:
        from arviz_stats.base import array_stats

        # Since 1.0 it takes the log likelihood that is left out: the ratio with its sign changed.
        logs, k = array_stats.psislw(-np.asarray(log_ratios))
    weights = np.exp(np.asarray(logs, dtype=float) - np.max(logs))
    # A tail that ArviZ cannot fit is one that cannot be trusted.
    return weights / weights.sum(), math.inf if math.isnan(k) else float(k)


def versions() -> dict[str, str]:
    """Versions of what decides a posterior's numbers."""
    from importlib.metadata import version

    names = ("pymc", "pytensor", "arviz", "nutpie", "numpy", "optuna")
    return {name: version(name) for name in names}
