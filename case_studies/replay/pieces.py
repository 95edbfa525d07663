"""Pieces of a replay: which job on which tables, and what its answer turns on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tables import World

from advisor.common import Item, digest_of

NOT_IN_RESULTS = {"jobs", "engine", "keep", "shard", "json", "predictions"}
"""Flags on which no answer turns."""


def pieces(worlds: list[World], given: argparse.Namespace, jobs: Sequence[Any]) -> list[Item]:
    """An item for each job: all tables, the flags and the job."""
    told = {k: str(v) for k, v in sorted(vars(given).items()) if k not in NOT_IN_RESULTS}
    data = digest_of([[run.digest for run in world.runs] for world in worlds])
    return [Item(str(job), (worlds, given, job), (data, digest_of(told))) for job in jobs]
