"""Flags of a study for where its pieces are done, and their results in order."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from advisor.common import EngineSettings, Item, Mapped, mapped, progress_of, usable_jobs
from advisor.errors import AdvisorError


def add_engine_flags(parser: argparse.ArgumentParser) -> None:
    """Offer the flags; without them a study uses all cores of this machine."""
    parser.add_argument("--jobs", type=int, help="processes [default: all cores]")
    parser.add_argument("--keep", type=Path, help="folder of what is done, to go on with")


def on_engine(given: argparse.Namespace) -> EngineSettings:
    """Where the pieces are done, as the flags say."""
    return {"jobs": given.jobs or usable_jobs(), "keep": given.keep}


def results(
    function: Callable[[Any], Any],
    items: Sequence[Item],
    task: str,
    where: EngineSettings,
    tell: Callable[[Any], object] | None = None,
) -> list[Any]:
    """Results in the order of the items.

    Raises
    ------
    SystemExit
        The engine is not there or an item failed: a study is whole or none. What is done is kept
        where ``--keep`` is given.
    """
    try:
        found: Mapped = mapped(
            function, items, task=task, progress=progress_of(True), tell=tell, **where
        )
    except AdvisorError as error:
        raise SystemExit(str(error)) from error
    for one in found.failed:
        print(f"{one.kind}: {one.text}", file=sys.stderr)
    if found.failed:
        raise SystemExit(f"{task}: {len(found.failed)} of {len(found.outcomes)} failed")
    return [one.result for one in found.outcomes]
