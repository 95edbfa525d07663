"""``advisor demo``: the whole job on pilots that come with the package."""

from __future__ import annotations

from pathlib import Path

from advisor.cli import flags
from advisor.run.seed import DEFAULT_SEED


def demo(
    out: flags.StudyOut = Path("advisor-study-demo"),
    seed: flags.Seed = DEFAULT_SEED,
    quiet: flags.Quiet = False,
    details: flags.Details = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Advise on twelve real pilots of tiny transformers that come with the package.

    [bold]Example[/]: advisor demo --out my-first-study
    """
    from advisor.cli.advise import run_advise
    from advisor.logs import demo_folder
    from advisor.model.sampling import Sampling

    run_advise(
        [demo_folder()],
        out=out,
        sampling=Sampling(seed=seed),
        quiet=quiet,
        details=details,
        as_json=as_json,
    )
