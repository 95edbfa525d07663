"""``advisor compare``: two studies or two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from advisor.cli import flags

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.study.compared_lines import Comparison


def compare(
    one: flags.First,
    other: flags.Second,
    everything: flags.Everything = False,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Show what differs between two studies, or between two runs.

    Studies: pilots, priors, versions, what was asked, every number of the posterior, the advice.
    Runs: settings, lengths, first and last reward, verdicts.

    [bold]Examples[/]: advisor compare study-may study-june / advisor compare a.jsonl b.jsonl --all
    """
    from advisor.cli.terminal import noted, output
    from advisor.study.comparison import compare as compare_paths

    with noted(quiet=quiet):
        found = compare_paths(one, other, **flags.stated(sidecar, settings, column))
    if as_json:
        typer.echo(found.to_json())
    else:
        show(found, output(), everything=everything)


def show(found: Comparison, console: Console, *, everything: bool) -> None:
    """Print a table per section, of what differs or of everything."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"A: {found.paths[0]}"), soft_wrap=True)
    console.print(Text(f"B: {found.paths[1]}"), soft_wrap=True)
    same = []
    for section in found.sections:
        lines = [line for line in section.lines if everything or line.differs]
        if not lines:
            same.append(section.title.lower())
            continue
        console.print(Text(f"\n{section.title}", style="bold"))
        has_notes = any(line.note for line in lines)
        table = Table(box=SIMPLE, header_style="bold")
        for name in ("", "A", "B", *(["B - A"] if has_notes else [])):
            table.add_column(name, overflow="fold")
        for line in lines:
            style = "bold" if everything and line.differs else ""
            cells = [line.name, *line.shown, *([line.note] if has_notes else [])]
            table.add_row(*(Text(cell, style=style) for cell in cells))
        console.print(table)
        for note in section.notes:
            console.print(Text(note, style="dim"), soft_wrap=True)
    if same:
        console.print(Text(f"\nThe same: {', '.join(same)}. With --all they are shown."))
