"""A Ray cluster that runs already, reached through Ray's own backend for joblib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from advisor.engine.backend import Backend
from advisor.errors import InputError


@contextmanager
def opened(address: str) -> Iterator[Backend]:
    """Connect to a cluster, or start one on this machine for ``local``; disconnect in the end.

    Raises
    ------
    InputError
        Ray is not installed, or no cluster answers.
    """
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise InputError(
            "Ray is not installed",
            argument="engine",
            advice="Install it with: pip install 'grpo-advisor[ray]'",
        ) from error
    try:
        if address == "local":
            ray.init(address="local", include_dashboard=False, log_to_driver=False)
        else:
            ray.init(f"ray://{address}")
    except Exception as error:  # Ray raises classes of its own, of several modules
        raise InputError(
            f"no Ray cluster answers at {address}",
            argument="engine",
            advice="Start one, and give the port of its client server: HOST:10001",
        ) from error
    try:
        register_ray()
        yield Backend("ray", max(2, int(ray.cluster_resources()["CPU"])), streams=False)
    finally:
        ray.shutdown()
