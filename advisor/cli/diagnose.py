"""``advisor diagnose``: what is wrong with runs, if anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from advisor.cli import flags
from advisor.cli.echo import echo

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.runs import Diagnosis, PilotRun

FAILED = 5
"""Exit code where a run fails a check, for continuous integration."""

COLOURS = {"FAIL": "red", "WARNING": "yellow", "INFO": "cyan", "PASS": "green"}


def diagnose(
    logs: flags.Logs,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    figures: flags.DiagnosisFigures = None,
    posterior: flags.MarginPosterior = None,
    markdown: flags.Markdown = False,
    as_json: flags.Json = False,
    quiet: flags.Quiet = False,
    debug: flags.Debug = False,
) -> None:
    """Tell reward hacking, degenerate advantages, lost entropy, instability and collapse apart.

    Ends with code 5 where a run fails. Needs no fit. With --quiet only the table is shown.

    [bold]Examples[/]: advisor diagnose runs/ / advisor diagnose run.log --figures figures
    """
    from advisor.cli.inspect import require_runs
    from advisor.cli.terminal import output
    from advisor.runs import as_markdown, diagnosis_json, inspect

    found = inspect(logs, **flags.stated(sidecar, settings, column))
    require_runs(
        found, logs, "; ".join(f"{path.name}: {reason}" for path, reason in found.unread[:3])
    )
    judged = _judge(found.runs, posterior, quiet=quiet)
    if figures is not None:
        _draw(found.runs, judged, figures)
    if as_json:
        echo(diagnosis_json(judged))
    elif markdown:
        echo(as_markdown(judged), nl=False)
    else:
        show(judged, output(), with_cards=not quiet)
    for path, reason in found.unread:
        if reason != "not a log that any reader knows" and not reason.startswith("settings"):
            echo(f"Not read: {path}: {reason}", err=True)
    if any(one.verdict == "FAIL" for one in judged):
        raise typer.Exit(FAILED)


def _judge(runs: Sequence[PilotRun], posterior: Path | None, *, quiet: bool) -> list[Diagnosis]:
    """Diagnose runs, with their distance from the refresh limit where a posterior is given."""
    from advisor.runs import diagnose as judge

    if posterior is None:
        return [judge(run, siblings=runs) for run in runs]
    from advisor.cli.terminal import noted
    from advisor.forecast import refresh_margin
    from advisor.monitoring import load_posterior

    with noted(quiet=quiet):
        known, _ = load_posterior(posterior)
    draws = [refresh_margin(known, run) or (None, None) for run in runs]
    return [
        judge(run, margin, damping, siblings=runs)
        for run, (margin, damping) in zip(runs, draws, strict=True)
    ]


def show(found: Sequence[Diagnosis], console: Console, *, with_cards: bool) -> None:
    """Print a table of runs and, below it, the cards: all of a single run, else the bad ones."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    from advisor.runs import SEVERITY, card_lines, printable, worst

    table = Table(header_style="bold", box=SIMPLE)
    for name in ("run", "verdict", "collapse at step", "says"):
        table.add_column(name, overflow="fold", justify="right" if "step" in name else "left")
    for one in found:
        step = "" if one.collapse_step is None else f"{one.collapse_step:.0f}"
        verdict = Text(one.verdict, style=COLOURS.get(one.verdict, ""))
        table.add_row(Text(printable(one.id)), verdict, step, Text(worst(one)))
    console.print(table)
    if not with_cards:
        return
    least = SEVERITY["PASS"] if len(found) == 1 else SEVERITY["FAIL"]
    for one in found:
        shown = [card for card in one.cards if SEVERITY[card.status] >= least]
        if shown and len(found) > 1:
            console.print(Text(f"\n{printable(one.id)}", style="bold"))
        for card in shown:
            head, *rest = card_lines(card)
            console.print(Text(head, style=COLOURS.get(card.status, "")), soft_wrap=True)
            for line in rest:
                console.print(Text(line, style="dim"), soft_wrap=True)
    if len(found) == 1:
        missing = [c.title for c in found[0].cards if c.status == "NOT APPLICABLE"]
        for card in found[0].cards:
            if card.status == "NOT APPLICABLE":
                console.print(Text("\n".join(card_lines(card))), soft_wrap=True)
        if missing:
            console.print()
    else:
        console.print(
            Text("Warnings and all numbers: give one run alone, --markdown or --json."),
            soft_wrap=True,
        )


def _draw(runs: Sequence[PilotRun], judged: Sequence[Diagnosis], folder: Path) -> None:
    """Write a figure per failure mode and run."""
    from advisor.common import write_whole
    from advisor.errors import InputError, unwritable
    from advisor.reporting import draw_symptom, render, symptom_info

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, (run, diagnosis) in enumerate(zip(runs, judged, strict=True), 1):
            prefix = f"{number:03d}-" if len(runs) > 1 else ""
            for card in diagnosis.cards:
                if card.status == "NOT APPLICABLE":
                    continue
                try:
                    info = symptom_info(run, diagnosis, card.mode)
                except InputError:  # judged without a series of its own
                    continue
                image = render(draw_symptom(info), "png", card.mode)
                write_whole(folder / f"{prefix}{card.mode}.png", image)
    except OSError as error:
        raise unwritable("figures", error, folder, "--figures") from error
