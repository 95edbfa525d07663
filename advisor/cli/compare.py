"""``advisor compare``: two studies, two runs, or a study and what came, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import flags
from advisor.cli.echo import echo

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
    """Show what differs between two studies or two runs, or what came of a study's forecasts.

    Studies: pilots, priors, versions, what was asked, every number of the posterior, the advice.
    Runs: settings, lengths, first and last reward, verdicts. A study and finished runs: for every
    run the forecast for exactly its settings, and what it came to.

    [bold]Examples[/]: advisor compare study-may study-june / advisor compare a.jsonl b.jsonl --all
    / advisor compare study full-run.log
    """
    from advisor.cli.terminal import noted, output
    from advisor.study import compare as compare_paths

    with noted(quiet=quiet):
        found = compare_paths(one, other, **stated.keywords)
    if as_json:
        echo(found.to_json())
    else:
        for head, path in zip(found.heads, found.paths, strict=False):
            output().say(f"{head}: {path}")
        show(found, output(), everything=everything or found.kind == "study and runs")


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
        rows = [
            [
                Text(cell, style="bold" if everything and line.differs else "")
                for cell in (line.name, *line.shown, line.note)[: 1 + width]
            ]
            for line in lines
        ]
        console.print(table(("", *found.heads[:width]), rows))
        for note in section.notes:
            console.say(note, style="dim")
    if same:
        console.say(f"\nThe same: {', '.join(same)}. With --all they are shown.")
