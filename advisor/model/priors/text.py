"""What the terminal shows of presets: all of them, one of them, and what one has learned."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model.priors.loader import Priors, load_priors, preset_names
from advisor.model.priors.table import INTERVAL, prior_table

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
