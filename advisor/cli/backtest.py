"""``advisor backtest``: forecasts of finished runs, held against what became of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import typer

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.common import DEFAULT_SEED
from advisor.errors import CannotTellError, InputError, NotConvergedError


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
    from advisor.cli.terminal import Reporter, figure_format, output, write_figure
    from advisor.common import check_output, write_or_keep
    from advisor.model import Sampling
    from advisor.runs import read_runs

    shares = seen or [0.25]
    if to_other_models and len(shares) > 1:
        raise InputError(
            "--transfer asks for one share of the pilots",
            key="--seen",
            advice="Give --seen once, or ask again for another share",
        )
    if predictions is not None:
        check_output(predictions, "the predictions", "--predictions")
    if figure is not None:
        figure_format(figure)
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(logs, **flags.stated(sidecar, settings, column))
        ask: Any = (
            partial(transfer, seen=shares[0])
            if to_other_models
            else partial(run_backtest, seen=shares)
        )
        found = ask(
            runs,
            priors=priors,
            least_steps=least_steps,
            sampling=Sampling(seed=seed),
            progress=progress,
            on=flags.on(engine, jobs, keep),
        )
    if predictions is not None:
        write_or_keep(predictions, found.lines(), "the predictions", "--predictions")
    if figure is not None and found.predictions:
        write_figure(figure, draw_backtest(found))
    if as_json:
        echo(found.to_json())
    else:
        show(found, output())
    if not found.predictions:
        is_failed = found.failed or found.broken
        raise typer.Exit((NotConvergedError if is_failed else CannotTellError).exit_code)
