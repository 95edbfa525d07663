"""Where items are done: processes of this machine, or a cluster that runs already."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from advisor.common import counted
from advisor.errors import InputError

SCHEMES = ("dask", "ray")


@dataclass(frozen=True)
class Engine:
    """Processes of this machine, or a cluster.

    Attributes
    ----------
    jobs : int
        Processes; 1 is this process itself. Of a cluster its own workers decide.
    scheme : {"dask", "ray"} or None
        None for processes.
    address : str
        ``HOST:PORT`` of a cluster.
    """

    jobs: int = 1
    scheme: str | None = None
    address: str = ""

    def __str__(self) -> str:
        """As a user writes it."""
        return f"{self.scheme}://{self.address}" if self.scheme else counted(self.jobs, "process")


def engine_of(text: str | None = None, jobs: int | None = None, *, cores: int = 1) -> Engine:
    """Engine as a user asks for it.

    Parameters
    ----------
    text : str, optional
        ``dask://HOST:PORT`` or ``ray://HOST:PORT``; None for processes of this machine.
    jobs : int, optional
        Processes [default: cores of this machine over ``cores``].
    cores : int
        That one item keeps busy by itself.

    Returns
    -------
    engine : Engine

    Raises
    ------
    InputError
        There is no such engine, or a number of processes was asked of a cluster.
    """
    if text is None:
        return Engine(jobs or max(1, usable_cores() // cores))
    found = re.fullmatch(r"(\w+)://([^/\s]+:\d+|local)", text.strip())
    if found is None or found[1] not in SCHEMES or text == "dask://local":
        raise InputError(
            f"'{text}' is no engine",
            argument="engine",
            advice="Write dask://HOST:PORT or ray://HOST:PORT, or leave it out for processes here",
        )
    if jobs is not None:
        raise InputError(
            "a cluster decides itself how much it does at once",
            argument="jobs",
            advice="Leave it out, or leave `engine` out",
        )
    return Engine(1, found[1], found[2])


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
