"""``advisor fit``: the posterior alone."""

from __future__ import annotations

from pathlib import Path

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.common import DEFAULT_SEED


def fit(
    logs: flags.Logs,
    out: flags.PosteriorOut = Path("posterior.nc"),
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    priors: flags.Preset = None,
    fast: flags.Fast = False,
    seed: flags.Seed = DEFAULT_SEED,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Fit pilots and say what they tell: plateau, timescale, exponents, and what they leave open.

    [bold]Example[/]: advisor fit runs/ --out posterior.nc
    """
    from advisor.cli.terminal import Reporter, noted
    from advisor.common import check_output, write_or_keep
    from advisor.findings import describe
    from advisor.forecast import fit as fit_runs
    from advisor.model import FIRST_LOOK, Sampling
    from advisor.runs import read_runs

    check_output(out, "the posterior", "--out")
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        with noted(quiet=quiet):
            posterior = fit_runs(
                read_runs(logs, **flags.stated(sidecar, settings, column)),
                priors=priors,
                sampling=Sampling.first_look(seed) if fast else Sampling(seed=seed),
                progress=progress,
            )
        write_or_keep(out, posterior.to_bytes(), "the posterior", "--out")
    if as_json:
        echo(posterior.to_json())
        return
    notes = "\n".join(f"  {line}" for line in posterior.meta.notes)
    if fast:
        echo(f"This is {FIRST_LOOK}.\n")
    echo(f"{describe(posterior)}\n\nAssumed:\n{notes}\n\nPosterior in {out}")
