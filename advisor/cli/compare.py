"""``advisor compare`` and ``backtest``: answers or runs side by side, forecasts and outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from advisor.cli import flags
from advisor.cli.flags import echo
from advisor.common import DEFAULT_SEED
from advisor.errors import CannotTellError, NotConvergedError

if TYPE_CHECKING:
    from advisor.cli.terminal import HarmlessConsole
    from advisor.study import Comparison


def compare(
    one: str,
    other: str,
    *,
    everything: bool = False,
    stated: flags.Stated,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Compare two studies, two runs, or the forecasts of a study with finished runs."""
    from advisor.cli.terminal import noted, output
    from advisor.study import compare as compare_paths

    with noted(quiet=quiet):
        found = compare_paths(one, other, **stated.keywords)
    if as_json:
        echo(found.to_json())
    else:
        for head, path in zip(found.heads, found.paths, strict=False):
            output().say(f"{head}: {path}")
        show(found, output(), everything=everything or found.is_whole)


def show(found: Comparison, console: HarmlessConsole, *, everything: bool) -> None:
    """Print a table per section, of what differs or of everything."""
    from rich.text import Text

    from advisor.cli.terminal import table

    same = []
    for section in found.sections:
        lines = [line for line in section.lines if everything or line.differs]
        if not lines:
            same.append(section.title.lower())
            continue
        console.say(f"\n{section.title}", style="bold")
        width = 3 if any(line.note for line in lines) else 2
        rows = []
        for line in lines:
            cells = (line.name, *line.shown, line.note)[: 1 + width]
            is_bold = everything and line.differs
            rows.append([Text(cell, "bold") if is_bold else cell for cell in cells])
        console.print(table(("", *found.heads[:width]), rows))
        for note in section.notes:
            console.say(note, style="dim")
    if same:
        console.say(f"\nThe same: {', '.join(same)}. With --all they are shown.")


# Forecasts of finished runs -----------------------------------------------------------------------


def backtest(
    logs: list[str],
    *,
    seen: list[float] | None = None,
    least_steps: int = 0,
    stated: flags.Stated,
    priors: str | None = None,
    predictions: Path | None = None,
    jobs: int | None = None,
    keep: Path | None = None,
    seed: int = DEFAULT_SEED,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Score forecasts on your own finished runs."""
    from advisor.backtesting import backtest as run_backtest
    from advisor.backtesting import show
    from advisor.cli.terminal import Reporter, output
    from advisor.common import check_output, or_keep, usable_jobs, write_whole
    from advisor.model import Sampling
    from advisor.runs import read_runs

    if predictions is not None:
        check_output(predictions, "the predictions", "--predictions")
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(logs, **stated.keywords)
        found = run_backtest(
            runs,
            seen=seen or [0.25],
            priors=priors,
            least_steps=least_steps,
            sampling=Sampling(seed=seed),
            progress=progress,
            on={"jobs": jobs or usable_jobs(4), "keep": keep},  # a fit samples four chains
        )
    if predictions is not None:
        lines = found.lines()
        or_keep(
            lambda place: write_whole(place, lines), predictions, "the predictions", "--predictions"
        )
    if as_json:
        echo(found.to_json())
    else:
        show(found, output())
    if not found.predictions:
        is_failed = found.failed or found.broken
        raise typer.Exit((NotConvergedError if is_failed else CannotTellError).exit_code)
