"""A Dask cluster that runs already, reached through joblib's own backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from advisor.common import VERSION
from advisor.engine.backend import Backend
from advisor.engine.outcome import LOST, Outcome
from advisor.errors import InputError

TIMEOUT_SECONDS = 10
WORKER_SECONDS = 3600
"""Until the first worker is there: that of a batch system stands in a queue."""

LEAST_SENT = 32
"""Workers for which items are sent ahead, however few there are: a cluster that grows on demand
grows by what waits."""


@contextmanager
def opened(address: str, tell: Callable[[str], object]) -> Iterator[Backend]:
    """Connect to a scheduler, and disconnect in the end.

    Parameters
    ----------
    address : str
        Host and port.
    tell : callable
        Takes what is waited for.

    Raises
    ------
    InputError
        Dask is not installed, no scheduler answers, it has no worker, or one of another version.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "Dask is not installed",
            argument="engine",
            advice="Install it with: pip install 'grpo-advisor[dask]'",
        ) from error
    try:
        client = Client(f"tcp://{address}", timeout=TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address}",
            argument="engine",
            advice="Start one with: dask scheduler",
        ) from error
    try:
        if not client.nthreads():
            tell(f"{address} has none yet and was asked for one")
            wait_for_a_worker(client, address)
        refuse_other_versions(client)
        yield Backend(_backend_class()(client=client), -1, streams=True)
    finally:
        client.close()


def wait_for_a_worker(client: Any, address: str) -> None:
    """Ask for a worker and wait for it: a cluster that grows on demand grows by what waits."""
    try:
        client.submit(int, pure=False).result(timeout=WORKER_SECONDS)
    except TimeoutError as error:
        raise InputError(
            f"no worker came to the Dask cluster at {address} in {WORKER_SECONDS:,} seconds",
            argument="engine",
            advice=f"Start one with: dask worker tcp://{address}",
        ) from error


def refuse_other_versions(client: Any) -> None:
    """Refuse workers with another version of the package, or without it, by their addresses.

    Those that come later refuse items themselves.
    """
    # A function of the standard library: it exists on a worker whatever is installed there.
    said = client.run(version, "grpo-advisor", on_error="return")
    for worker, found in sorted(said.items()):
        if found != VERSION and not (isinstance(found, ImportError) and VERSION == "0+unknown"):
            has = "no" if isinstance(found, Exception) else f"version {found} of"
            raise InputError(
                f"worker {worker} has {has} grpo-advisor, and this is {VERSION}",
                argument="engine",
                advice="Install the same version on every worker",
            )


def _backend_class() -> type[Any]:
    """Joblib's backend, except that an item whose workers die is an outcome.

    Joblib 1.6 never hears of a task that Dask gives up, and would wait for it for ever.
    """
    from joblib._dask import DaskDistributedBackend

    class Dask(DaskDistributedBackend):  # type: ignore[misc]  # joblib has no types
        def effective_n_jobs(self, n_jobs: int) -> int:
            # Of one core joblib would make none, and do everything in this process.
            return max(LEAST_SENT, int(super().effective_n_jobs(n_jobs)))

        def submit(self, func: Any, callback: Callable[[Any], Any] | None = None) -> Any:
            future = super().submit(func, callback)
            ((_, (call,), _),) = func.items

            def tell(done: Any) -> None:
                error = done.exception()
                if error is not None and callback is not None:
                    lost = Outcome(call.name, None, LOST, f"its workers died ({error})", False)
                    callback(_Lost((call.place, lost)))

            future.add_done_callback(tell)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            return [out.value] if isinstance(out, _Lost) else super().retrieve_result_callback(out)

    return Dask


class _Lost:
    """What stands for the result of an item that Dask gave up."""

    def __init__(self, value: tuple[int, Outcome]) -> None:
        self.value = value
