"""What the terminal shows: progress, the pilots, the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from advisor.advice import Recommendation
from advisor.advice.recommendation import TITLES
from advisor.diagnosis import Diagnosis
from advisor.diagnosis.diagnose import AFTER
from advisor.model.posterior import Posterior
from advisor.run.pilot_run import PilotRun

PLAIN_EVERY_SECONDS = 5.0
"""How often a stage repeats itself where there is no terminal to redraw."""

COLOURS = {"recommendation": "green", "next_pilot": "yellow", "infeasible": "red"}


class Reporter:
    """Progress on standard error: a live bar on a terminal, a line per stage elsewhere.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        self._live: Progress | None = None
        self._stage = ""
        self._said = 0.0
        self._started = time.monotonic()
        if self.console.is_terminal and not quiet:
            self._live = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[detail]}", style="dim"),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self._task = self._live.add_task("", total=None, detail="")

    def __enter__(self) -> Reporter:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, stage: str, share: float | None, detail: str) -> None:
        """Show what is happening; see ``advisor.model.compat.Progress``."""
        if self._live is not None:
            if stage != self._stage:
                self._live.reset(self._task)
            self._live.update(
                self._task,
                description=stage,
                detail=detail,
                total=None if share is None else 1.0,
                completed=share or 0.0,
            )
        elif stage != self._stage or time.monotonic() - self._said > PLAIN_EVERY_SECONDS:
            self._said = time.monotonic()
            line = f"[{self._said - self._started:5.1f} s] {stage}" + (detail and f": {detail}")
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._stage = stage


def print_runs(runs: Sequence[PilotRun], console: Console) -> None:
    """Print one line per pilot."""
    table = Table(title=f"{len(runs)} pilots", title_justify="left", header_style="bold")
    for name, justify in (
        ("run", "left"),
        ("model", "left"),
        ("learning rate", "right"),
        ("G", "right"),
        ("K", "right"),
        ("steps", "right"),
        ("reward", "right"),
    ):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for run in runs:
        settings = run.hyperparameters
        reward = run.reward[np.isfinite(run.reward)]
        ends = f"{reward[:5].mean():.2f} -> {reward[-5:].mean():.2f}" if reward.size else "-"
        table.add_row(
            Text(run.id),
            Text(run.model or "-"),
            "-" if settings.learning_rate is None else f"{settings.learning_rate:.2g}",
            str(settings.group_size or "-"),
            str(settings.refresh_interval or "-"),
            f"{run.step[-1]:.0f}",
            ends,
        )
    console.print(table)


def print_sick(judged: Sequence[Diagnosis], console: Console) -> None:
    """Say which pilots show something that their rewards do not: it shapes the answer as well."""
    for one in judged:
        causes = [card for card in one.cards if card.status == "FAIL" and card.mode != "collapse"]
        own = [card for card in causes if AFTER not in card.witnesses]
        if own:
            console.print(
                Text(
                    f"Note: pilot {one.id}: {own[0].title.lower()}: {own[0].headline} Its rewards "
                    "shape the answer all the same; leave it out if they are not what is meant."
                ),
                soft_wrap=True,
            )


def print_answer(
    advice: Recommendation,
    posterior: Posterior,
    out: Path,
    files: Sequence[Path],
    *,
    details: bool,
) -> None:
    """Print the answer, what was assumed, and where everything lies."""
    console = Console(highlight=False)
    first, _, rest = (advice.text if details else advice.summary).partition("\n")
    title = TITLES[advice.kind]
    body = Group(Text(first, style="bold"), Text(rest))
    if console.is_terminal:
        console.print(Panel(body, title=title, border_style=COLOURS[advice.kind]))
    else:
        console.print(Text(title + "\n"), body, soft_wrap=True)
    if details:
        console.print()
        from advisor.findings.text import describe

        console.print(Text("What the pilots say: " + describe(posterior)), soft_wrap=True)
    if advice.assumptions:
        console.print(Text("\nAssumed:"))
        for line in advice.assumptions:
            console.print(Text(f"  {line}"), soft_wrap=True)
    top = [path.name for path in files if path.parent == out]
    if not details:
        told = "\nAlternatives, recipes, evidence: --details, or recommendation.txt in the study."
        console.print(Text(told), soft_wrap=True)
    console.print(
        Text(f"\nStudy in {out}/: {', '.join(sorted(top))}, and figures/"), soft_wrap=True
    )
