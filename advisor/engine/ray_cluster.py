"""A Ray cluster that runs already, reached through Ray's own backend for joblib."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from advisor.engine.backend import Backend
from advisor.errors import InputError

TIMEOUT_SECONDS = 10


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
        raise _not_installed() from error
    try:
        if address == "local":
            ray.init(address="local", include_dashboard=False, log_to_driver=False)
        else:
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), TIMEOUT_SECONDS).close()
            ray.init(f"ray://{address}")
    except Exception as error:  # Ray raises classes of its own, of several modules
        if "ray[client]" in str(error):
            raise _not_installed() from error
        raise InputError(
            f"no Ray cluster answers at {address}",
            argument="engine",
            advice="Start one, and give the port of its client server: HOST:10001",
        ) from error
    try:
        register_ray()
        yield Backend("ray", max(2, int(ray.cluster_resources().get("CPU", 0))), streams=False)
    finally:
        ray.shutdown()


def _not_installed() -> InputError:
    return InputError(
        "Ray and its client are not installed",
        argument="engine",
        advice="Install them with: pip install 'grpo-advisor[ray]'",
    )
