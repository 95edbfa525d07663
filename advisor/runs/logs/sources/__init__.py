"""Runs that a tracker's own client hands out: ``wandb:``, ``mlflow:`` and ``trackio:``."""

from __future__ import annotations

from collections.abc import Callable

from advisor.errors import SourceError
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logs.sources import mlflow_runs, trackio_project, wandb_runs

SOURCES: dict[str, Callable[[str], list[LogCandidate]]] = {
    "wandb": wandb_runs.candidates,
    "mlflow": mlflow_runs.candidates,
    "trackio": trackio_project.candidates,
}
"""What stands before the colon, and what finds the runs of the rest."""


def candidates(place: str) -> list[LogCandidate]:
    """Runs that a place such as ``wandb:ENTITY/PROJECT`` names, each read when it is asked for."""
    name, _, rest = place.partition(":")
    found = SOURCES[name](rest)
    if not found:
        raise SourceError(
            "there is no run in it",
            path=place,
            advice="Check the name; runs show here once they have logged something",
        )
    return found
