"""Connect to an engine, and disconnect in the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from advisor.engine import dask_cluster, ray_cluster
from advisor.engine.backend import Backend
from advisor.engine.engine import Engine


def connected(engine: Engine, tell: Callable[[str], object]) -> AbstractContextManager[Backend]:
    """Backend of an engine, for as long as it is needed.

    Parameters
    ----------
    engine : Engine
    tell : callable
        Takes what is waited for.

    Raises
    ------
    InputError
        Nothing answers there, its client is not installed, or a worker has another version of the
        package.
    """
    if engine.scheme == "dask":
        return dask_cluster.opened(engine.address, tell)
    if engine.scheme == "ray":
        return ray_cluster.opened(engine.address)
    return nullcontext(Backend("loky", engine.jobs, streams=True))
