"""NetCDF in and out, with h5netcdf alone: no PyMC, ArviZ or xarray to load a posterior."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import StudyError
from advisor.model.inference_data import Group
from advisor.model.observations import Observations
from advisor.model.variables import named_draws
from advisor.theory.arrays import FloatArray

OBSERVED = (
    "train_reward",
    "held_out_reward",
    "exposure",
    "collapsed",
    "task_of_group",
    "group_of_run",
    "run_of_evaluation",
    "group_log_parameters",
)
"""Arrays of `Observations` besides its constants."""

INDICES = ("task_of_group", "group_of_run", "run_of_evaluation")
"""Those that hold places."""

META = "advisor"
"""Attribute of the file that holds everything but the draws, as JSON."""


def write_netcdf(
    path: Path,
    groups: Mapping[str, Group],
    coordinates: Mapping[str, Sequence[str]],
    pilots: Mapping[str, FloatArray],
    seen: Observations | None,
    meta: str,
) -> None:
    """Write a posterior so that ArviZ opens it, and this package without ArviZ.

    Parameters
    ----------
    path : Path
        Replaced where it exists.
    groups : mapping of str to Group
        From `model.inference_data`.
    coordinates : mapping of str to sequence of str
        Labels of dimensions by name; others are numbered.
    pilots : mapping of str to ndarray of shape (bins,)
    seen : Observations or None
        Kept as group ``observations``.
    meta : str
        JSON.
    """
    import h5netcdf

    with h5netcdf.File(path, "w") as file:
        file.attrs[META] = meta
        for name, variables in groups.items():
            group = file.create_group(name)
            for variable, (dims, values) in variables.items():
                _write(group, variable, dims, np.asarray(values), coordinates)
        pilot_group = file.create_group("pilots")
        for name, values in pilots.items():
            _write(pilot_group, name, ("bin",), values, {})
        if seen is not None:
            group = file.create_group("observations")
            group.attrs[META] = json.dumps(
                {"coords": seen.coords, "dims": seen.dims, "bounds": [seen.floor, seen.ceiling]}
            )
            for name in OBSERVED:
                _write(group, name, _numbered(name, getattr(seen, name)), getattr(seen, name), {})
            for name, values in seen.constant.items():
                _write(group, f"constant.{name}", _numbered(name, values), values, {})


def _numbered(name: str, values: FloatArray) -> tuple[str, ...]:
    """Dimensions of an array that nobody looks at by name."""
    return tuple(f"{name}_{axis}" for axis in range(np.ndim(values)))


def _write(
    group: Any,
    name: str,
    dims: Sequence[str],
    values: FloatArray,
    coordinates: Mapping[str, Sequence[str]],
) -> None:
    """Write one variable, and the coordinates of dimensions that are new to the group."""
    import h5py

    for dim, size in zip(dims, values.shape, strict=True):
        if dim in group.dimensions:
            continue
        group.dimensions[dim] = size
        known = coordinates.get(dim)
        kind = np.int64 if known is None else h5py.string_dtype()
        index = group.create_variable(dim, (dim,), kind)
        index[...] = np.arange(size) if known is None else np.array(list(known), dtype=object)
    kind = {"i": np.int64, "b": np.int8}.get(values.dtype.kind, np.float64)
    variable = group.create_variable(name, tuple(dims), kind)
    variable[...] = values
    if values.dtype.kind == "b":
        variable.attrs["dtype"] = "bool"  # as xarray marks it: NetCDF has none


def read_netcdf(
    path: Path, schema: int
) -> tuple[
    dict[str, FloatArray], dict[str, FloatArray], dict[str, FloatArray], Observations | None, str
]:
    """Read what :func:`write_netcdf` wrote.

    Parameters
    ----------
    path : Path
    schema : int
        The schema version this package reads.

    Returns
    -------
    draws, statistics, pilots, observations, meta

    Raises
    ------
    StudyError
        The file is missing, damaged, none of ours, or of another schema.
    """
    import h5netcdf

    if not path.is_file():
        raise StudyError(
            "there is no such file", path=path, advice="Give a posterior.nc that was saved"
        )
    try:
        with h5netcdf.File(path, "r") as file:
            meta = str(file.attrs[META])
            found = json.loads(meta)["provenance"]["schema_version"]
            if found != schema:
                raise StudyError(
                    f"the posterior has schema {found}, this version reads {schema}",
                    path=path,
                    advice="Fit the pilots again with this version",
                )
            draws = named_draws(_arrays(file.groups["posterior"]))
            pilots = _arrays(file.groups["pilots"])
            has = file.groups
            statistics = _arrays(has["sample_stats"]) if "sample_stats" in has else {}
            seen = _observations(has["observations"]) if "observations" in has else None
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise StudyError(
            f"this is no saved posterior ({error})",
            path=path,
            advice="Give a posterior.nc written by 'advisor advise'",
        ) from error
    return draws, statistics, pilots, seen, meta


def _arrays(group: Any) -> dict[str, FloatArray]:
    """Variables of a group that are no coordinates."""
    return {
        name: np.asarray(variable[...], dtype=float)
        for name, variable in group.variables.items()
        if name not in group.dimensions
    }


def _observations(group: Any) -> Observations:
    """Observations as they were written."""
    known, arrays = json.loads(group.attrs[META]), _arrays(group)
    parts: dict[str, Any] = {
        name: arrays[name].astype(np.int64) if name in INDICES else arrays[name]
        for name in OBSERVED
    }
    return Observations(
        coords=known["coords"],
        dims={name: tuple(dims) for name, dims in known["dims"].items()},
        floor=known["bounds"][0],
        ceiling=known["bounds"][1],
        constant={
            name.removeprefix("constant."): values
            for name, values in arrays.items()
            if name.startswith("constant.")
        },
        **parts,
    )
