"""What the terminal shows of a run that goes on."""

from __future__ import annotations

import json
import math
import sys
from itertools import pairwise
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from advisor.advice import percent
from advisor.common import harmless
from advisor.forecast import Interval
from advisor.monitoring.decision import WatchReport

WIDTH, HEIGHT = 64, 12
"""Characters of the picture of the band."""

COLOURS = {"stop": "red", "change": "yellow", "go on": "green"}
STATUS = {"FAIL": "red", "WARNING": "yellow", "INFO": "cyan"}


class View:
    """A panel that is redrawn on a terminal; elsewhere a line per update, or one JSON object."""

    def __init__(self, console: Console, *, as_json: bool = False, is_quiet: bool = False) -> None:
        self.console = console
        self.as_json = as_json
        self.is_quiet = is_quiet
        self._live: Live | None = None
        self._noted: set[str] = set()
        if console.is_terminal and not as_json:
            self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> View:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Tell what happened to the log."""
        if self.as_json:
            self._print(json.dumps({"said": line}))
        elif self._live is not None:
            self._live.console.print(Text(line, style="dim"))
        else:
            self._print(line)

    def show(self, report: WatchReport, rewards: tuple[list[float], list[float]]) -> None:
        """Show an update."""
        if self.is_quiet and report.decision.action == "go on":
            return
        if self.as_json:
            self._print(json.dumps(as_json(report)))
        elif self._live is not None:
            self._live.update(panel(report, rewards), refresh=True)
        else:
            for note in report.update.notes:
                if note not in self._noted:
                    print(harmless(f"Note: {note}."), file=sys.stderr)
                    self._noted.add(note)
            self._print(line(report))

    def _print(self, text: str) -> None:
        # Not through rich's own wrapping: a line per update is what a pipe reads.
        self.console.file.write(harmless(text) + "\n")
        self.console.file.flush()


def as_json(report: WatchReport) -> dict[str, Any]:
    """All numbers of an update as plain objects."""
    document = report.model_dump(mode="json")
    if not math.isfinite(report.update.pareto_k):
        document["update"]["pareto_k"] = None  # JSON has no infinity
    document["diagnosis"] = {key: document["diagnosis"][key] for key in ("verdict", "cards")}
    return document


def line(report: WatchReport) -> str:
    """One line of text."""
    update = report.update
    parts = [
        f"step {update.step} of {update.planned_steps}",
        f"reward {update.reward:.3f}",
        f"at the end {_interval(update.final)}",
        f"P(unstable) {percent(update.p_unstable)}",
    ]
    if update.p_reach is not None:
        parts.append(f"P(reach) {percent(update.p_reach)}")
    if update.refit_due:
        parts.append(f"refit due (Pareto k {update.pareto_k:.2f})")
    parts.append(f"cards {report.diagnosis.verdict}")
    return "; ".join(parts) + ". " + report.decision.text


def _interval(of: Interval) -> str:
    return f"{of.mean:.3f} [{of.low:.3f}, {of.high:.3f}]"


def panel(report: WatchReport, rewards: tuple[list[float], list[float]]) -> Panel:
    """Band, where the run is, probabilities, cards and decision."""
    update, decision = report.update, report.decision
    end = f"at step {update.planned_steps} (80 %)"
    lines = [f"reward {update.reward:.3f} now, {_interval(update.final)} {end}"]
    if update.final_eval is not None:
        lines.append(f"held-out {_interval(update.final_eval)} at the end")
    if update.p_reach is not None:
        lines.append(f"reaches the target with probability {percent(update.p_reach)}")
    lines.append(f"ends unstable with probability {percent(update.p_unstable)}")
    if update.refit_due:
        k = f"Pareto k {update.pareto_k:.2f}"
        lines.append(f"the pilots do not explain this run ({k}): fit again")
    body: list[RenderableType] = [Text(picture(report, rewards)), Text(), *map(Text, lines)]
    for card in report.diagnosis.cards:
        if card.status in STATUS:
            line = Text(f"{card.status}: ", style=STATUS[card.status])
            body.append(line.append(f"{card.title}: {card.headline}", style="default"))
    body += [Text(note, style="dim") for note in update.notes]
    body += [Text(), Text(decision.text, style=f"bold {COLOURS[decision.action]}")]
    title = f"{update.run}: step {update.step} of {update.planned_steps}"
    return Panel(Group(*body), title=title, border_style=COLOURS[decision.action], expand=False)


def picture(report: WatchReport, rewards: tuple[list[float], list[float]]) -> str:
    """Logged rewards (dots) and the band to come (shade) over the steps."""
    update = report.update
    band = update.band
    values = [*rewards[1], *band.low, *band.high]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    last = max(update.planned_steps, update.step, 1)
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]

    def column(step: float) -> int:
        return min(int(step / last * (WIDTH - 1)), WIDTH - 1)

    def row(value: float) -> int:
        return HEIGHT - 1 - min(int((value - low) / span * (HEIGHT - 1) + 0.5), HEIGHT - 1)

    for (left, *first), (right, *second) in pairwise(
        zip(map(column, band.step), band.low, band.high, strict=True)
    ):
        for at in range(left, right + 1):
            share = (at - left) / max(right - left, 1)
            bottom, top = (a + share * (b - a) for a, b in zip(first, second, strict=True))
            for height in range(row(top), row(bottom) + 1):
                grid[height][at] = "░"
    for step, value in zip(*rewards, strict=True):
        grid[row(value)][column(step)] = "•"
    label = [f"{high:7.3f} "] + [" " * 8] * (HEIGHT - 2) + [f"{low:7.3f} "]
    lines = [name + "".join(cells).rstrip() for name, cells in zip(label, grid, strict=True)]
    return "\n".join([*lines, " " * 8 + "0" + str(last).rjust(WIDTH - 1)])
