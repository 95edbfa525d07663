"""A card: what one failure mode looks like in one run, in the words of ``cards.toml``."""

from __future__ import annotations

from string import Formatter
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, field_validator

from advisor.runs import PilotRun, Trainer
from advisor.text import read_toml

Status = Literal["PASS", "INFO", "WARNING", "FAIL", "NOT APPLICABLE"]

CARDS = read_toml(__file__, "cards.toml")
MODES = tuple(CARDS)  # Failure modes: causes before their consequences

SEVERITY: dict[Status, int] = {"NOT APPLICABLE": 0, "PASS": 1, "INFO": 2, "WARNING": 3, "FAIL": 4}


class Card(BaseModel, frozen=True):
    """Verdict on one failure mode of one run."""

    mode: str  # One of `MODES`
    kind: str = ""  # Entry of the mode in ``cards.toml`` that words it
    title: str  # What people call it
    # INFO: worth knowing, nothing to do. WARNING: look at it. FAIL: no fit may learn from this run,
    # and it should be stopped. NOT APPLICABLE: the log lacks what it takes.
    status: Status
    headline: str  # One sentence
    number: float | None = None  # What was judged, in `unit`, and its 95 % interval
    unit: str = ""
    interval: tuple[float, float] | None = None
    threshold: float | None = None  # Beyond which it is no longer harmless, and where that is from
    source: str = ""
    steps: tuple[float, float] | None = None  # First and last of what was judged, as logged
    witnesses: tuple[str, ...] = ()  # Other series that show the same, with their numbers
    change: str = ""  # What to change, in the trainer's names; empty where nothing is wrong
    unknown: tuple[str, ...] = ()  # What the log cannot show, and the key that would
    is_consequence: bool = False  # Whether it began with or after the collapse

    @field_validator("number", "interval")
    @classmethod
    def _is_finite(cls, measured: Any) -> Any:
        return measured if measured is not None and np.isfinite(measured).all() else None

    @property
    def lines(self) -> list[str]:
        """Verdict, number against threshold, witnesses, change, what is unknown."""
        lines = [f"{self.status}  {self.title}: {self.headline}"]
        if self.number is not None:
            between = " [{:.3g}, {:.3g}]".format(*self.interval) if self.interval else ""
            limit = "" if self.threshold is None else f", threshold {self.threshold:.3g}"
            lines.append(f"  {self.unit}: {self.number:.3g}{between}{limit} ({self.source})")
        if self.steps is not None:
            lines.append(f"  steps {self.steps[0]:.0f} to {self.steps[1]:.0f}")
        lines += [f"  also: {line}" for line in self.witnesses]
        if self.change:
            lines.append(f"  change: {self.change}")
        lines += [f"  cannot tell: {line}" for line in self.unknown]
        return [printable(line) for line in lines]


def printable(text: str) -> str:
    """Text without line ends and control characters, which would steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


class Finding(NamedTuple):
    """One fact about a run, as the card words it; what the finders of a mode return."""

    status: Status
    headline: str
    steps: tuple[float, float] | None = None
    change: str = ""
    source: str = ""
    kind: str = ""


def finding(
    kind: str,
    run: PilotRun,
    steps: tuple[float, float] | None = None,
    status: Status | None = None,
    **facts: Any,
) -> Finding:
    """A finding of a ``mode.kind``, with facts and the trainer's names of settings filled in."""
    mode, _, name = kind.partition(".")
    words = {"source": CARDS[mode]["source"], **CARDS[mode][name]}
    interval, first = run.hyperparameters.refresh_interval or 1, steps[0] if steps else 0.0
    facts["batch"] = f" (batch of rollouts {-(-first // interval):.0f})" * (interval > 1)
    headline, change = (filled(words.get(each, ""), run, facts) for each in ("headline", "change"))
    return Finding(status or words["status"], headline, steps, change, words["source"], name)


def filled(text: str, run: PilotRun, facts: dict[str, Any]) -> str:
    """A sentence with its facts, and settings as the run's trainer calls them."""
    names = {name.partition(".")[0] for _, name, _, _ in Formatter().parse(text) if name}
    trainer = Trainer.named(run.framework)
    return text.format(**{each: trainer.setting_name(each) for each in names} | facts)


def card_of(mode: str, found: Finding, **judged: Any) -> Card:
    """Card of a finding; ``judged`` are the card's other fields."""
    return Card(**{"mode": mode, "title": CARDS[mode]["title"], **found._asdict(), **judged})


def not_applicable(kind: str, run: PilotRun, **facts: Any) -> Card:
    """Card of a mode that the log cannot show, with the key that would."""
    mode, _, name = kind.partition(".")
    unknown = (CARDS[mode][name]["unknown"],)
    return card_of(mode, finding(kind, run, **facts), source="", unknown=unknown)
