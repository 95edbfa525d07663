"""NetCDF to and from bytes: no PyMC, ArviZ or xarray to load a posterior.

Written with h5netcdf, into memory: a disk that is full while HDF5 writes to it ends the process.
Read with h5py: of a damaged file h5netcdf raises what it likes, and prints it once more at the end.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import StudyError
from advisor.model.inference_data import Group
from advisor.model.observations import Observations
from advisor.model.parameters import named_draws
from advisor.theory import FloatArray

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

IN_UNITS = ("start", "plateau", "stiffness", "collapse_rate")
"""Draws that are no logarithms, log-odds or exponents."""

INDICES = ("task_of_group", "group_of_run", "run_of_evaluation")
"""Those that hold places."""

META = "advisor"
"""Attribute of the file that holds everything but the draws, as JSON."""

SEAL = b"\ngrpo-advisor sha256 "
"""Stands after the end of the file as HDF5 counts it, before a hash of all that lies ahead: files
of older versions have none. Damaged files can lead HDF5 in circles, where no limit reaches it."""


def to_netcdf(
    groups: Mapping[str, Group],
    coordinates: Mapping[str, Sequence[str]],
    pilots: Mapping[str, FloatArray],
    seen: Observations | None,
    meta: str,
) -> bytes:
    """Bytes of a posterior that ArviZ opens, and this package without ArviZ."""
    import h5netcdf

    stream = io.BytesIO()
    with h5netcdf.File(stream, "w") as file:
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
    whole = stream.getvalue()
    return whole + SEAL + hashlib.sha256(whole).digest()


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
                raise StudyError(
                    f"the posterior has schema {found!s:.20}, this version reads {schema}",
                    path=path,
                    advice="Fit the pilots again with this version",
                )
            has = ["posterior", "pilots"]
            has += [name for name in ("sample_stats", "observations") if name in file]
            read = {name: _arrays(file[name]) for name in has}
            known = _text(file["observations"]) if "observations" in has else ""
        draws, statistics = named_draws(read["posterior"]), read.get("sample_stats", {})
        _check_finite(draws)
        seen = _observations(known, read["observations"]) if known else None
    except StudyError:
        raise
    except Exception as error:  # HDF5's own are of a dozen kinds
        raise StudyError(
            f"this is no saved posterior ({str(error).strip().partition(chr(10))[0]:.200})",
            path=path,
            advice="Give a posterior.nc written by 'advisor advise'",
        ) from error
    return draws, statistics, read["pilots"], seen, meta


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


def _arrays(group: Any) -> dict[str, FloatArray]:
    """Variables of a group that are no coordinates."""
    return {
        name: np.asarray(variable[...], dtype=float)
        for name, variable in group.items()
        if "CLASS" not in variable.attrs  # as a coordinate has
    }


def _observations(text: str, arrays: Mapping[str, FloatArray]) -> Observations:
    """Observations as they were written."""
    known = json.loads(text)
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
