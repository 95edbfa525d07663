"""``advisor backtest``: forecasts of finished runs, held against what became of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import typer

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.common import DEFAULT_SEED
from advisor.errors import CannotTellError, InputError, NotConvergedError


def backtest(
    logs: list[str],
    *,
    seen: list[float] | None = None,
    to_other_models: bool = False,
    least_steps: int = 0,
    stated: flags.Stated,
    priors: str | None = None,
    predictions: Path | None = None,
    figure: Path | None = None,
    cohorts: flags.Cohorts,
    seed: int = DEFAULT_SEED,
    quiet: bool = False,
    as_json: bool = False,
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
        runs = read_runs(logs, **stated.keywords)
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
            on=cohorts.keywords,
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
