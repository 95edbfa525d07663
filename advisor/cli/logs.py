"""``advisor inspect`` and ``advisor diagnose``: what logs hold, and what is wrong with runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.errors import CannotTellError

if TYPE_CHECKING:
    from advisor.cli.terminal import HarmlessConsole
    from advisor.runs import Diagnosis, Inspection, PilotRun

FAILED = 5
"""Exit code where a run fails a check, for continuous integration."""

COLOURS = {"FAIL": "red", "WARNING": "yellow", "INFO": "cyan", "PASS": "green"}


def inspect(
    logs: list[str],
    *,
    stated: flags.Stated,
    explained: bool = False,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Show which runs a folder holds, what was understood, and what to add before a fit.

    With --quiet only the runs are shown.

    [bold]Example[/]: advisor inspect runs/ --explain
    """
    from advisor.cli.terminal import output
    from advisor.runs import as_json as to_json
    from advisor.runs import explain, show
    from advisor.runs import inspect as inspect_logs

    found = inspect_logs(logs, **stated.keywords)
    if as_json:
        echo(to_json(found))
    else:
        console = output()
        show(found, console, quiet=quiet)
        if found.runs and not quiet:
            echo("advisor advise counts GPU-hours of one GPU, unless --gpus says how many.")
        if explained:
            explain(found, console)
    require_runs(found, logs)
    if found.is_flat:
        raise typer.Exit(CannotTellError.exit_code)


def require_runs(found: Inspection, logs: Sequence[str | Path], why: str = "") -> None:
    """Raise an ``InputError`` where no run was found."""
    from advisor.errors import InputError
    from advisor.runs import known_formats

    if not found.runs:
        raise InputError(
            "no run was found" + (f" ({why})" if why else ""),
            path=", ".join(str(path) for path in logs[:3]),
            advice=f"Give a folder or file that holds one of: {known_formats()}",
        )


def diagnose(
    logs: list[str],
    *,
    stated: flags.Stated,
    figures: Path | None = None,
    posterior: Path | None = None,
    markdown: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Tell reward hacking, degenerate advantages, lost entropy, instability and collapse apart.

    Ends with code 5 where a run fails. Needs no fit. With --quiet only the table is shown.

    [bold]Examples[/]: advisor diagnose runs/ / advisor diagnose run.log --figures figures
    """
    from advisor.cli.terminal import output
    from advisor.runs import as_markdown, diagnosis_json
    from advisor.runs import inspect as inspect_logs

    found = inspect_logs(logs, **stated.keywords)
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
        _show(judged, output(), with_cards=not quiet)
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


def _show(found: Sequence[Diagnosis], console: HarmlessConsole, *, with_cards: bool) -> None:
    """Print a table of runs and, below it, the cards: all of a single run, else the bad ones."""
    from rich.text import Text

    from advisor.cli.terminal import table
    from advisor.runs import SEVERITY, card_lines, printable, worst

    rows = [
        (
            printable(one.id),
            Text(one.verdict, style=COLOURS.get(one.verdict, "")),
            "" if one.collapse_step is None else f"{one.collapse_step:.0f}",
            worst(one),
        )
        for one in found
    ]
    names = ("run", "verdict", "collapse at step", "says")
    console.print(table(names, rows, right=("collapse at step",)))
    if not with_cards:
        return
    is_alone = len(found) == 1
    least = SEVERITY["PASS" if is_alone else "FAIL"]
    for one in found:
        shown = [card for card in one.cards if SEVERITY[card.status] >= least]
        if shown and not is_alone:
            console.say(f"\n{printable(one.id)}", style="bold")
        for card in shown:
            head, *rest = card_lines(card)
            console.say(head, style=COLOURS.get(card.status, ""))
            for line in rest:
                console.say(line, style="dim")
    if not is_alone:
        console.say("Warnings and all numbers: give one run alone, --markdown or --json.")
        return
    missing = [card for card in found[0].cards if card.status == "NOT APPLICABLE"]
    for card in missing:
        console.say("\n".join(card_lines(card)))
    if missing:
        console.say()


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
