"""Diagnoses as text: a table of runs, and the cards in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from advisor.runs.diagnosis.card import SEVERITY, Card
from advisor.runs.diagnosis.diagnose import Diagnosis


def diagnosis_json(found: Sequence[Diagnosis]) -> str:
    """Diagnoses as a JSON list; what is missing or infinite is null."""
    return json.dumps([one.model_dump(mode="json") for one in found], indent=1, allow_nan=False)


def worst(diagnosis: Diagnosis) -> str:
    """What to say of a run in one line."""
    bad = [card for card in diagnosis.cards if SEVERITY[card.status] >= SEVERITY["WARNING"]]
    if not bad:
        young = next((card for card in diagnosis.cards if card.mode == "too_short"), None)
        is_flat = young is not None and young.status == "INFO"
        return "no change beyond noise so far" if is_flat else "nothing wrong"
    named = sorted(bad, key=lambda card: (-SEVERITY[card.status], card.mode != "collapse"))
    more = f" (+{len(bad) - 1})" if len(bad) > 1 else ""
    return printable(f"{named[0].title}: {named[0].headline}{more}")


def card_lines(card: Card) -> list[str]:
    """A card as lines: verdict, number against threshold, witnesses, change, what is unknown."""
    lines = [f"{card.status}  {card.title}: {card.headline}"]
    if card.number is not None:
        between = (
            "" if card.interval is None else f" [{card.interval[0]:.3g}, {card.interval[1]:.3g}]"
        )
        limit = "" if card.threshold is None else f", threshold {card.threshold:.3g}"
        lines.append(f"  {card.unit}: {card.number:.3g}{between}{limit} ({card.source})")
    if card.steps is not None:
        lines.append(f"  steps {card.steps[0]:.0f} to {card.steps[1]:.0f}")
    lines += [f"  also: {line}" for line in card.witnesses]
    if card.change:
        lines.append(f"  change: {card.change}")
    lines += [f"  cannot tell: {line}" for line in card.unknown]
    return [printable(line) for line in lines]


def as_markdown(found: Sequence[Diagnosis]) -> str:
    """Diagnoses as Markdown: a table, then the cards of every run with a warning or a failure."""
    rows = ["| run | verdict | collapse at step | says |", "|---|---|---|---|"]
    for one in found:
        step = "" if one.collapse_step is None else f"{one.collapse_step:.0f}"
        rows.append(f"| {plain(one.id)} | {one.verdict} | {step} | {plain(worst(one))} |")
    for one in found:
        shown = [c for c in one.cards if SEVERITY[c.status] >= SEVERITY["WARNING"]]
        if shown:
            rows += ["", f"## {plain(one.id)}"]
        for card in shown:
            head, *rest = card_lines(card)
            rows += ["", f"**{plain(head)}**", "", *(f"- {plain(line.strip())}" for line in rest)]
    return "\n".join(rows) + "\n"


_MARKS = re.compile(r"[\\`*|~$#]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])")
"""What Markdown might read as more than text; an underscore between letters is none."""


def printable(text: str) -> str:
    """Text without line ends and control characters, which would steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def plain(text: str) -> str:
    """Text that Markdown shows as it is: no tag, cell, link, emphasis or formula."""
    line = " ".join(printable(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\g<0>", line)
