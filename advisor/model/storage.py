"""A posterior in ArviZ's schema, and as the bytes of a NetCDF file, loaded without ArviZ.

Written into memory: a disk that is full while HDF5 writes to it ends the process.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from advisor.errors import StudyError
from advisor.model import equations as eq
from advisor.model import parameters
from advisor.model.likelihood import (
    Expectation,
    FittedDraws,
    Observations,
    bin_log_densities,
    expected_by,
    one_step_ahead,
    summaries_of,
)
from advisor.model.priors import Priors
from advisor.theory import FloatArray

CHUNK = 250  # Draws that are evaluated at once: a thousand of 64 runs would take 100 MB a matrix


class Variable(NamedTuple):
    """Values with their dimensions, chain and draw first where there are draws."""

    dims: tuple[str, ...]
    values: Any


Group = dict[str, Variable]


def inference_groups(posterior: FittedDraws) -> dict[str, Group]:
    """Every group of ArviZ's schema that a posterior with its observations can fill.

    ``log_likelihood`` is that of each whole run, as ``az.loo`` needs it. Its parts stand in
    ``log_likelihood_parts``: ``train_reward`` is each bin given those before it in its run.
    """
    seen = posterior.observations
    if seen is None:
        raise ValueError("this posterior was made by hand: it has no observations")
    shape = next(iter(posterior.draws.values())).shape[:2]
    bins = seen.is_logged > 0
    dims = {
        "train_reward": ("train_bin",),
        "held_out_reward": ("evaluation",),
        "collapse_exposure": ("run",),
        "whole_run": ("run",),
    }
    likelihood, predicted = (
        {name: part.reshape(*shape, -1) for name, part in values.items() if part.shape[1]}
        for values in _by_draw(posterior, seen)
    )
    statistics = {
        name: values > 0 if name == "diverging" else values
        for name, values in posterior.statistics.items()
    }
    observed = {
        "train_reward": seen.train_reward[bins],
        "held_out_reward": seen.held_out_reward,
        "collapse_exposure": seen.exposure,
    }
    constant = {
        "run_of_train_bin": Variable(("train_bin",), np.nonzero(bins)[0]),
        "step_of_train_bin": Variable(("train_bin",), seen.constant["step"][bins]),
        "collapsed": Variable(("run",), seen.collapsed),
        "group_of_run": Variable(("run",), seen.group_of_run),
        "task_of_group": Variable(("group",), seen.task_of_group),
    }
    prior = prior_draws(posterior.meta.placed_priors, seen, np.random.default_rng(0), 1000)
    return {
        "posterior": posterior_group(posterior.draws),
        "sample_stats": _by_dimension(statistics, {}),
        "prior": posterior_group(prior | summaries_of(prior, seen)),
        "log_prior": _by_dimension(_log_prior(posterior), parameters.DIMS),
        "log_likelihood": _by_dimension({"whole_run": likelihood.pop("whole_run")}, dims),
        "log_likelihood_parts": _by_dimension(likelihood, dims),
        "posterior_predictive": _by_dimension(predicted, dims),
        "observed_data": {
            name: Variable(dims[name], values) for name, values in observed.items() if values.size
        },
        "constant_data": constant,
    }


def labels(seen: Observations) -> dict[str, list[str]]:
    """Coordinates by name: tasks, models, runs, bins and terms of the laws."""
    bins = [
        f"{seen.coords['run'][run]} [{index}]"
        for run, index in zip(*np.nonzero(seen.is_logged > 0), strict=True)
    ]
    named = {name: list(map(str, values)) for name, values in seen.coords.items()}
    return {**named, "train_bin": bins}


def prior_draws(
    priors: Priors, seen: Observations, rng: np.random.Generator, size: int
) -> dict[str, FloatArray]:
    """Draws of every parameter's prior by name, of shape (1, size, ...)."""
    sizes = {dim: len(seen.coords[dim]) for dim in ("task", "group", "run")}
    draws = {
        name: priors.drawn(
            name, rng, 1, size, *(sizes[dim] for dim in parameters.DIMS.get(name, ()))
        )
        for name in (*parameters.TASK_LEVELS, *parameters.POPULATION, *parameters.GROUP_LEVELS)
    }
    # Levels of loss and collapse are those at the reference, given how fast a task is learned.
    stiffness = eq.task_log_stiffness(draws["headroom_logit"], draws["log_slope"])
    draws = eq.at_reference(draws, stiffness)
    for names, dim in ((parameters.GROUP_EFFECTS, "group"), (parameters.RUN_EFFECTS, "run")):
        effects = rng.standard_normal((1, size, len(names), sizes[dim]))
        draws |= zip(names, np.moveaxis(effects, 2, 0), strict=True)
    return draws


def posterior_group(draws: Mapping[str, FloatArray]) -> Group:
    """Free variables and Deterministics of the PyMC model."""
    names = ("start", "plateau", "stiffness", "collapse_rate", "is_oscillator")
    kept = {name: draws[name] for name in names if name in draws}
    return _by_dimension(parameters.model_variables(draws) | kept, parameters.DIMS)


def one_by_one(group: Group) -> Group:
    """A group in which every parameter that all runs share is a variable of its own name."""
    names, _ = parameters.STACKED["shared"]
    shared = group["shared"]
    each = {
        name: Variable(shared.dims[:-1], shared.values[..., place])
        for place, name in enumerate(names)
    }
    return each | {name: own for name, own in group.items() if name != "shared"}


def _by_dimension(draws: Mapping[str, Any], dims: Mapping[str, tuple[str, ...]]) -> Group:
    """Draws with their dimensions besides chain and draw."""
    return {
        name: Variable(("chain", "draw", *dims.get(name, ())), values)
        for name, values in draws.items()
    }


def _by_draw(
    posterior: FittedDraws, seen: Observations
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Log likelihoods and predictions, each of shape (draws, ...), a chunk of draws at a time."""
    rng = np.random.default_rng(posterior.meta.provenance.seed)
    chunks = []
    for start in range(0, posterior.flat("is_oscillator").size, CHUNK):
        expected = expected_by(posterior, seen, slice(start, start + CHUNK))
        chunks.append((_log_likelihood(expected, seen), _predict(expected, seen, rng)))
    likelihood, predicted = (
        {name: np.concatenate([chunk[side][name] for chunk in chunks]) for name in chunks[0][side]}
        for side in (0, 1)
    )
    return likelihood, predicted


def _binned(expected: Expectation, seen: Observations) -> tuple[Any, Any, Any, Any, Any]:
    """Rewards of all bins as they were and as expected, both variances, and their correlation."""
    sampling = expected.sampling_variance + eq.LEAST_VARIANCE
    rewards = seen.train_reward, expected.train_reward
    return *rewards, sampling, expected.residual_variance, seen.constant["correlation"]


def _log_likelihood(expected: Expectation, seen: Observations) -> dict[str, FloatArray]:
    """Log densities of what was observed, and of all that each run showed."""
    from scipy.stats import t

    bins = bin_log_densities(*_binned(expected, seen), seen.is_logged)
    away = (seen.held_out_reward - expected.held_out_reward) / expected.held_out_scale
    tests = t.logpdf(away, eq.DEGREES) - np.log(expected.held_out_scale)
    collapse = seen.collapsed * np.log(expected.hazard) - expected.hazard * seen.exposure
    run = bins.sum(axis=-1) + collapse
    for at, own in enumerate(seen.run_of_evaluation):
        run[:, own] += tests[:, at]
    return {
        "whole_run": run,
        "train_reward": bins[:, seen.is_logged > 0],
        "held_out_reward": np.asarray(tests),
        "collapse_exposure": collapse,
    }


def _predict(
    expected: Expectation, seen: Observations, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """One prediction per draw of everything observed; bins one step ahead."""
    location, scale, degrees = one_step_ahead(*_binned(expected, seen))
    logged = seen.is_logged > 0
    bins = location + scale * rng.standard_t(degrees, location.shape)
    tests = expected.held_out_reward + expected.held_out_scale * rng.standard_t(
        eq.DEGREES, expected.held_out_reward.shape
    )
    lived = rng.exponential(1 / expected.hazard)
    ends = np.where(seen.collapsed > 0, np.inf, seen.exposure)
    return {
        "train_reward": bins[:, logged],
        "held_out_reward": tests,
        "collapse_exposure": np.minimum(lived, ends),
    }


def _log_prior(posterior: FittedDraws) -> dict[str, FloatArray]:
    """Log prior density of every variable of the model."""
    from scipy.stats import norm

    density = {}
    names, given = (*parameters.POPULATION, *parameters.LEVELS), posterior.draws
    stiffness = eq.task_log_stiffness(given["headroom_logit"], given["log_slope"])
    for name, prior in zip(names, posterior.meta.placed_priors.of(names), strict=True):
        mean = prior.mean
        if name in ("plateau_loss.level", "hazard.level"):
            mean = mean + eq.anchor_shift(name, given, stiffness)
        density[name] = norm.logpdf(given[name], mean, prior.sd)
    for name in (*parameters.GROUP_EFFECTS, *parameters.RUN_EFFECTS):
        density[name] = norm.logpdf(posterior.draws[name])
    return parameters.model_variables(density)


ARRAYS = {one.name: one.type for one in fields(Observations) if str(one.type).endswith("Array")}
"""Arrays of `Observations` besides its constants, and of which type each is."""

IN_UNITS = ("start", "plateau", "stiffness", "collapse_rate")
"""Draws that are no logarithms, log-odds or exponents."""

META = "advisor"  # Attribute of the file that holds everything but the draws, as JSON

SEAL = b"\ngrpo-advisor sha256 "
"""Follows the end of the file as HDF5 counts it, before a hash of all bytes ahead of it. Files of
older versions have no hash. Damaged files can lead HDF5 in circles, where no limit reaches it."""


def to_netcdf(posterior: FittedDraws) -> bytes:
    """Bytes of a posterior that ArviZ opens, and this package without ArviZ."""
    import h5py

    seen, coordinates = posterior.observations, {}
    groups = {"posterior": posterior_group(posterior.draws)}
    pilots = {name: Variable(("bin",), values) for name, values in posterior.pilots.items()}
    own: dict[str, Group] = {"pilots": pilots}
    if seen is not None:
        groups, coordinates = inference_groups(posterior), labels(seen)
        arrays = {name: getattr(seen, name) for name in ARRAYS}
        arrays |= {f"constant.{name}": values for name, values in seen.constant.items()}
        own["observations"] = {}
        for name, values in arrays.items():  # dimensions that nobody looks at by name
            numbered = (f"{name.removeprefix('constant.')}_{at}" for at in range(np.ndim(values)))
            own["observations"][name] = Variable(tuple(numbered), values)
    stream = io.BytesIO()
    with h5py.File(stream, "w", track_order=True) as file:  # without an order NetCDF opens none
        file.attrs[META] = posterior.meta.model_dump_json()
        for name, variables in (*groups.items(), *own.items()):
            group = file.create_group(name, track_order=True)
            for variable, (dims, values) in variables.items():
                named = {} if name in own else coordinates
                _write(group, variable, dims, np.asarray(values), named)
        if seen is not None:
            file["observations"].attrs[META] = json.dumps(
                {"coords": seen.coords, "dims": seen.dims, "bounds": [seen.floor, seen.ceiling]}
            )
    whole = stream.getvalue()
    return whole + SEAL + hashlib.sha256(whole).digest()


def _write(
    group: Any,
    name: str,
    dims: Sequence[str],
    values: FloatArray,
    coordinates: Mapping[str, Sequence[str]],
) -> None:
    """Write one variable, and the coordinates of dimensions that are new to the group."""
    import h5py

    kind = {"i": np.int64, "b": np.int8}.get(values.dtype.kind, np.float64)
    variable = group.create_dataset(name, data=values.astype(kind))
    for at, (dim, size) in enumerate(zip(dims, values.shape, strict=True)):
        if dim not in group:
            known = coordinates.get(dim)
            index = np.arange(size) if known is None else np.array(list(known), dtype=object)
            text = None if known is None else h5py.string_dtype()
            group.create_dataset(dim, data=index, dtype=text).make_scale(dim)
        variable.dims[at].attach_scale(group[dim])
    if values.dtype.kind == "b":
        variable.attrs["dtype"] = "bool"  # as xarray marks it: NetCDF has none


def from_netcdf(
    whole: bytes, path: Path, schema: int
) -> tuple[
    dict[str, FloatArray], dict[str, FloatArray], dict[str, FloatArray], Observations | None, str
]:
    """Read what :func:`to_netcdf` made."""
    import h5py

    try:
        with h5py.File(io.BytesIO(_unsealed(whole)), "r") as file:
            meta = _text(file)
            found = json.loads(meta)["provenance"]["schema_version"]
            if found != schema:
                problem = f"the posterior has schema {found!s:.20}, this version reads {schema}"
                raise StudyError(
                    problem, path=path, advice="Fit the pilots again with this version"
                )
            has = ["posterior", "pilots"]
            has += [name for name in ("sample_stats", "observations") if name in file]
            read = {
                name: {
                    key: np.asarray(values[...], dtype=float)
                    for key, values in file[name].items()
                    if "CLASS" not in values.attrs  # as a coordinate has
                }
                for name in has
            }
            known = _text(file["observations"]) if "observations" in has else ""
        draws, statistics = parameters.named_draws(read["posterior"]), read.get("sample_stats", {})
        _check_finite(draws)
        seen = _observations(known, read["observations"]) if known else None
    except StudyError:
        raise
    except Exception as error:  # HDF5's own are of a dozen kinds
        why, advice = str(error).strip(), "Give a posterior.nc written by 'advisor advise'"
        raise not_saved(f"{why.partition(chr(10))[0]:.200}", path, advice) from error
    return draws, statistics, read["pilots"], seen, meta


def not_saved(why: str, path: Path, advice: str = "Fit the pilots again") -> StudyError:
    """Error of a file that holds no whole posterior."""
    return StudyError(f"this is no saved posterior ({why})", path=path, advice=advice)


def _unsealed(whole: bytes) -> bytes:
    """File without its seal, which must fit where there is one."""
    held, seal, digest = whole.rpartition(SEAL)
    if seal and digest != hashlib.sha256(held).digest():
        raise ValueError("it was changed after it was written")
    return held or whole


def _text(place: Any) -> str:
    """Attribute of a group that holds JSON."""
    found = place.attrs[META]
    return found.decode("utf-8") if isinstance(found, bytes) else str(found)


def _check_finite(draws: Mapping[str, FloatArray]) -> None:
    """Refuse draws that no sampler makes."""
    for name, values in draws.items():
        if not np.isfinite(values).all():
            raise ValueError(f"'{name}' holds draws that are not finite")
        # Presets believe in no parameter above a tenth of this.
        if name not in IN_UNITS and np.abs(values).max(initial=0.0) > 200.0:
            raise ValueError(f"'{name}' holds draws that are out of any range")


def _observations(text: str, arrays: Mapping[str, FloatArray]) -> Observations:
    """Observations as they were written."""
    known, mark = json.loads(text), "constant."
    parts: dict[str, Any] = {
        name: arrays[name].astype(np.int64) if kind == "IntArray" else arrays[name]
        for name, kind in ARRAYS.items()
    }
    return Observations(
        coords=known["coords"],
        dims={name: tuple(dims) for name, dims in known["dims"].items()},
        floor=known["bounds"][0],
        ceiling=known["bounds"][1],
        constant={n.removeprefix(mark): a for n, a in arrays.items() if n.startswith(mark)},
        **parts,
    )
