"""Progress tables that transformers and Unsloth draw in a notebook."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

TABLE = re.compile(r"<table\b")
ROW = re.compile(r"<tr\b")
CELL = re.compile(r"<(?:th|td)\b[^<>]{0,400}>([^<]*)")
PLANNED = re.compile(r"""<progress\b[^<>]{0,400}?\bmax=['"]?(\d{1,9})""")


@dataclass
class ProgressTable:
    """A table as drawn last, and the length of the progress bar above it."""

    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    planned_steps: int | None = None

    @property
    def has_reward(self) -> bool:
        """Whether it shows a reward, of training or of an evaluation."""
        return any(key.strip().lower() in ("reward", "eval_reward") for key in self.keys)

    @property
    def keys(self) -> list[str]:
        """Keys of its columns."""
        # Right of a validation loss stand metrics of evaluations, drawn in capitals without their
        # prefix: ``Reward`` is the trainer's ``eval_reward``.
        if "Validation Loss" not in self.header:
            return self.header
        return [
            f"eval_{name.lower().replace(' ', '_')}" if place > 2 and name[:1].isupper() else name
            for place, name in enumerate(self.header)
        ]

    def cells(self, row: list[str]) -> dict[str, str]:
        """Cells of a row by key, without those that hold nothing."""
        pairs = zip(self.keys, row, strict=False)
        return {
            key: cell for key, cell in pairs if key and cell.lower() not in ("", "no log", "none")
        }

    def goes_on(self, other: ProgressTable) -> bool:
        """Whether it is a later state of another table."""
        shown = len(other.rows)
        return (
            self.header[: len(other.header)] == other.header
            and shown <= len(self.rows)
            and all(new[: len(old)] == old for old, new in zip(other.rows, self.rows, strict=False))
        )


def find_tables(text: str) -> list[ProgressTable]:
    """Progress tables of one HTML output; other tables in notebooks show data."""
    before, *drawn = TABLE.split(text)
    tables = []
    for table in drawn:
        rows = [
            [html.unescape(cell).strip() for cell in CELL.findall(row)]
            for row in ROW.split(table.partition("</table")[0])[1:]
        ]
        planned = PLANNED.findall(before)
        if len(rows) > 1 and rows[0] and rows[0][0].lower() in ("step", "epoch"):
            steps = int(planned[-1]) if planned else None
            tables.append(ProgressTable(rows[0], [row for row in rows[1:] if row], steps))
        before = table.partition("</table")[2] or before
    return [table for table in tables if table.rows]
