"""``advisor demo``: the whole job on runs that come with the package, to what came of it."""

from __future__ import annotations

from pathlib import Path

from advisor.cli import flags
from advisor.common import DEFAULT_SEED

FULL_RUN = 600
"""Optimizer steps of the run that is advised, and of those that were trained."""


def demo(
    out: flags.StudyOut = Path("advisor-study-demo"),
    seed: flags.Seed = DEFAULT_SEED,
    quiet: flags.Quiet = False,
    details: flags.Details = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Advise on four short pilots of tiny transformers, and show what runs then came to.

    The pilots and the full runs come with the package; they were really trained.

    [bold]Example[/]: advisor demo --out my-first-study
    """
    from advisor.advice import Request
    from advisor.cli.advise import run_advise
    from advisor.model import Sampling
    from advisor.runs import demo_runs

    pilots, full_runs = demo_runs()
    run_advise(
        [pilots],
        out=out,
        sampling=Sampling(seed=seed),
        request=Request(steps=FULL_RUN),
        finished=full_runs,
        quiet=quiet,
        details=details,
        as_json=as_json,
    )
