"""``advisor backtest``: forecasts of finished runs, held against what became of them."""

from __future__ import annotations

from typing import Any

import typer

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.common import DEFAULT_SEED

CANNOT_TELL = 3
"""Exit code where no run could be asked."""

NOT_CONVERGED = 4
"""Exit code where no fit converged."""


def backtest(
    logs: flags.Logs,
    seen: flags.Seen = None,
    to_other_models: flags.Transfer = False,
    least_steps: flags.LeastSteps = 0,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    priors: flags.UnseenPreset = None,
    predictions: flags.Predictions = None,
    figure: flags.BacktestFigure = None,
    jobs: flags.Jobs = None,
    engine: flags.EngineAddress = None,
    keep: flags.Keep = None,
    seed: flags.Seed = DEFAULT_SEED,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Ask how well forecasts would have done on your own finished runs.

    Each run is forecast from its first part, together with others of its task and model, and judged
    by the mean reward of its last tenth; curve fits to single runs stand beside it. With several
    --seen the same cohorts are asked at each share. With --keep a command that was stopped goes on
    where it was; --engine is for clusters (docs: Scale).

    [bold]Example[/]: advisor backtest old-runs/ --seen 0.1 --seen 0.25 --figure backtest.svg
    """
    from advisor.backtesting import backtest as run_backtest
    from advisor.backtesting import draw_backtest, show, transfer
    from advisor.cli.terminal import Reporter, output
    from advisor.common import check_output, write_or_keep
    from advisor.errors import InputError
    from advisor.model import Sampling
    from advisor.reporting import check_format, render
    from advisor.runs import read_runs

    shares = seen or [0.25]
    if to_other_models and len(shares) > 1:
        raise InputError(
            "--transfer asks for one share of the pilots",
            key="--seen",
            advice="Give --seen once, or ask again for another share",
        )
    where = flags.on(engine, jobs, keep)
    for path, what, flag in (
        (predictions, "the predictions", "--predictions"),
        (figure, "the figure", "--figure"),
    ):
        if path is not None:
            check_output(path, what, flag)
    if figure is not None:
        check_format(figure.suffix.removeprefix(".").lower(), "--figure")
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(logs, **flags.stated(sidecar, settings, column))
        asked: dict[str, Any] = {
            "priors": priors,
            "least_steps": least_steps,
            "sampling": Sampling(seed=seed),
            "progress": progress,
            "on": where,
        }
        if to_other_models:
            found = transfer(runs, seen=shares[0], **asked)
        else:
            found = run_backtest(runs, seen=shares, **asked)
    if predictions is not None:
        write_or_keep(predictions, found.lines(), "the predictions", "--predictions")
    if figure is not None and found.predictions:
        kind = figure.suffix.removeprefix(".").lower()
        write_or_keep(figure, render(draw_backtest(found), kind), "the figure", "--figure")
    if as_json:
        echo(found.to_json())
    else:
        show(found, output())
    if not found.predictions:
        raise typer.Exit(NOT_CONVERGED if found.failed or found.broken else CANNOT_TELL)
