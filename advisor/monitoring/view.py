"""What the terminal shows of a run that goes on."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from advisor.advice import percent
from advisor.common import harmless
from advisor.forecast import LATEST_ROWS, Interval
from advisor.monitoring.decision import WatchReport
from advisor.monitoring.watcher import Update

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

    def show(self, report: WatchReport) -> None:
        """Show an update."""
        if self.is_quiet and not self.as_json and report.decision.action == "go on":
            return
        if self.as_json:
            self._print(json.dumps(as_json(report)))
        elif self._live is not None:
            self._live.update(panel(report), refresh=True)
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
    place = f"step {update.step} of {update.planned_steps}"
    cards = f"cards {report.diagnosis.verdict}"
    return "; ".join([place, *_numbers(update), cards]) + ". " + report.decision.text


def _numbers(update: Update) -> list[str]:
    """Where the run is and where it goes: forecasts and probabilities."""
    # No level of the last row, left behind by a run that rises; of a finished run no forecasts.
    is_known = update.step >= update.planned_steps
    end = f"{update.final.mean:.3f}" if is_known else _interval(update.final)
    held_out, reach = update.final_eval, update.p_reach
    return [
        f"reward {update.reward:.3f} (latest {LATEST_ROWS} rows)",
        f"mean of its last tenth {end}",
        *([] if held_out is None or is_known else [f"held-out at the end {_interval(held_out)}"]),
        *([] if is_known else [f"P(unstable) {percent(update.p_unstable)}"]),
        *([] if update.best_step is None else [_best(update)]),
        *([] if reach is None else [f"P(reach) {percent(reach)}"]),
        *([f"refit due (Pareto k {update.pareto_k:.2f})"] if update.refit_due else []),
    ]


def _best(update: Update) -> str:
    kind = "held-out" if update.best_is_held_out else "reward"
    return f"best checkpoint step {update.best_step:.0f} ({kind} {update.best_reward:.3f})"


def _interval(of: Interval) -> str:
    return f"{of.mean:.3f}, 80 % interval [{of.low:.3f}, {of.high:.3f}]"


def panel(report: WatchReport) -> Panel:
    """Where the run is, probabilities, cards and decision."""
    update, decision = report.update, report.decision
    body: list[RenderableType] = [*map(Text, _numbers(update))]
    for card in report.diagnosis.cards:
        if card.status in STATUS:
            line = Text(f"{card.status}: ", style=STATUS[card.status])
            body.append(line.append(f"{card.title}: {card.headline}", style="default"))
    body += [Text(note, style="dim") for note in update.notes]
    body += [Text(), Text(decision.text, style=f"bold {COLOURS[decision.action]}")]
    title = f"{update.run}: step {update.step} of {update.planned_steps}"
    return Panel(Group(*body), title=title, border_style=COLOURS[decision.action], expand=False)
