"""NetCDF in and out, with h5netcdf alone: no PyMC, ArviZ or xarray to load a posterior."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from advisor.errors import StudyError
from advisor.theory.arrays import FloatArray

META = "advisor"
"""Attribute of the file that holds everything but the draws, as JSON."""


def write_netcdf(
    path: Path,
    draws: Mapping[str, FloatArray],
    pilots: Mapping[str, FloatArray],
    meta: str,
    dims: Mapping[str, tuple[str, ...]],
) -> None:
    """Write groups ``posterior`` and ``observed_data`` as ArviZ lays them out.

    Parameters
    ----------
    path : Path
        Replaced where it exists.
    draws : mapping of str to ndarray of shape (chains, draws, ...)
    pilots : mapping of str to ndarray of shape (bins,)
    meta : str
        JSON.
    dims : mapping of str to tuple of str
        Extra dimensions by variable.
    """
    import h5netcdf

    with h5netcdf.File(path, "w") as file:
        file.attrs[META] = meta
        posterior = file.create_group("posterior")
        for name, values in draws.items():
            names = ("chain", "draw", *dims.get(name, ()))
            for dim, size in zip(names, values.shape, strict=True):
                if dim not in posterior.dimensions:
                    posterior.dimensions[dim] = size
                    index = posterior.create_variable(dim, (dim,), np.int64)
                    index[:] = np.arange(size)
            posterior.create_variable(name, names, np.float64)[...] = values
        observed = file.create_group("observed_data")
        observed.dimensions["bin"] = len(pilots["run"])
        for name, values in pilots.items():
            observed.create_variable(name, ("bin",), np.float64)[...] = values


def read_netcdf(
    path: Path, schema: int
) -> tuple[dict[str, FloatArray], dict[str, FloatArray], str]:
    """Read what :func:`write_netcdf` wrote.

    Parameters
    ----------
    path : Path
    schema : int
        The schema version this package reads.

    Returns
    -------
    draws, pilots, meta

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
            groups = [
                {
                    name: np.asarray(variable[...], dtype=float)
                    for name, variable in file.groups[group].variables.items()
                    if name not in file.groups[group].dimensions
                }
                for group in ("posterior", "observed_data")
            ]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise StudyError(
            f"this is no saved posterior ({error})",
            path=path,
            advice="Give a posterior.nc written by 'advisor advise'",
        ) from error
    return groups[0], groups[1], meta
