"""A preset as text: every entry with its central 80 % interval, read on its natural scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model.priors import HalfNormalPrior, NormalPrior, Priors, load_priors, preset_names

INTERVAL = 0.8
"""Probability of the central interval of an entry."""

LOG_LEVELS = ("plateau_loss_level", "hazard_level")
"""Levels of the laws, which are linear in logs although their names do not say so."""


@dataclass(frozen=True)
class PriorRow:
    """One entry of a preset."""

    name: str
    mean: float | None
    sd: float
    scale: str
    lower: float
    median: float
    upper: float
    source: str


def prior_table(priors: Priors) -> list[PriorRow]:
    """Every entry of a preset, in the order of the preset."""
    return [_row(name, entry) for name, entry in prior_entries(priors).items()]


def prior_entries(priors: Priors) -> dict[str, NormalPrior | HalfNormalPrior]:
    """Distributions of a preset by name."""
    values = {name: getattr(priors, name) for name in type(priors).model_fields}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, NormalPrior | HalfNormalPrior)
    }


def natural_scale(name: str) -> tuple[str, Callable[[Any], Any]]:
    """How an entry is read: a name that ends in ``logit`` or ``log_odds`` is a share."""
    if name.endswith(("logit", "log_odds")):
        return "logistic", lambda value: 0.5 * (1 + math.tanh(0.5 * value))
    if name.startswith("log_") or name in LOG_LEVELS:
        return "exp", math.exp
    return "as is", float


def _row(name: str, entry: NormalPrior | HalfNormalPrior) -> PriorRow:
    tail = (1 - INTERVAL) / 2
    standard = NormalDist()
    if isinstance(entry, HalfNormalPrior):
        mean = None
        values = [entry.sd * standard.inv_cdf((1 + p) / 2) for p in (tail, 0.5, 1 - tail)]
    else:
        mean = entry.mean
        values = [mean + entry.sd * standard.inv_cdf(p) for p in (tail, 0.5, 1 - tail)]
    scale, to_natural = natural_scale(name)
    lower, median, upper = (to_natural(value) for value in values)
    return PriorRow(name, mean, entry.sd, scale, lower, median, upper, entry.source)


ROOM_FOR_SOURCES = 140
"""Columns from which sources stand beside their numbers; below, they follow the table."""

PROSE = ("evidence", "description")
"""Columns that wrap."""

READ_AS = {"exp": "e^x", "logistic": "share", "as is": "x"}


def show_presets(console: Console) -> None:
    """Print the presets that come with the package."""
    table = _table("Prior presets", "name", "evidence", "description")
    for name in preset_names():
        preset = load_priors(name)
        table.add_row(name, Text(preset.evidence), Text(preset.description))
    console.print(table)


def show_preset(priors: Priors, console: Console) -> None:
    """Print every entry of a preset with its interval on the natural scale, and its source."""
    interval = f"{INTERVAL:.0%} interval"
    table = _table(
        f"{priors.name}: {priors.description}", "entry", ">mean", ">sd", ">" + interval, "scale"
    )
    rows, is_wide = prior_table(priors), console.width >= ROOM_FOR_SOURCES
    if is_wide:
        table.add_column("source", overflow="fold")
    for row in rows:
        table.add_row(
            row.name,
            "-" if row.mean is None else f"{row.mean:g}",
            f"{row.sd:g}",
            f"{row.lower:.2g} to {row.upper:.2g}",
            READ_AS[row.scale],
            *([Text(row.source)] if is_wide else []),
        )
    console.print(table)
    if not is_wide:
        for row in rows:
            console.print(Text.assemble((row.name, "bold"), f": {row.source}"))
        console.print()
    console.print(Text(f"Evidence: {priors.evidence}."), soft_wrap=True)
    if priors.learned_from:
        runs = len(priors.learned_from)
        console.print(
            Text(f"Learned from {runs} run{'s' if runs > 1 else ''}: it may not be scored on them.")
        )
    console.print(
        Text(
            "Intervals are on the natural scale: of e^x where the entry is a log, of the share "
            "between 0 and 1 where it is a logit."
        ),
        soft_wrap=True,
    )


def show_learned(learned: Priors, base: Priors, console: Console) -> None:
    """Print which entries a preset learned, beside what its base said."""
    before = {row.name: row for row in prior_table(base)}
    rows = [(before[row.name], row) for row in prior_table(learned)]
    moved = [(old, new) for old, new in rows if (old.mean, old.sd) != (new.mean, new.sd)]
    if moved:
        table = _table(
            f"Learned: {len(moved)} of {len(rows)} entries",
            *("entry", f">{base.name}", ">learned", f">{INTERVAL:.0%} interval", "scale"),
        )
        for old, new in moved:
            table.add_row(
                new.name,
                f"{old.mean:.2f} ± {old.sd:.2f}",
                f"{new.mean:.2f} ± {new.sd:.2f}",
                f"{new.lower:.2g} to {new.upper:.2g}",
                READ_AS[new.scale],
            )
        console.print(table)
    kept = [new.name for old, new in rows if (old.mean, old.sd) == (new.mean, new.sd)]
    console.print(Text(f"Kept from {base.name} ({len(kept)}): {', '.join(kept)}."), soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=Text(title), title_justify="left", header_style="bold", box=SIMPLE)
    for name in columns:
        is_number = name.startswith(">")
        justify, fold = ("right", True) if is_number else ("left", name not in PROSE)
        table.add_column(name.removeprefix(">"), justify=justify, no_wrap=fold)  # type: ignore[arg-type]
    return table
