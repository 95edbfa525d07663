"""Progress tables that transformers and Unsloth draw in a notebook."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

TOKEN = re.compile(r"<(/?)(table|tr|th|td|progress)\b([^<>]{0,400})>|<[^<>]{0,400}>|[^<]+|<")
"""A tag that matters, one that does not, or text; matched in linear time, whatever is broken."""

PLANNED = re.compile(r"""\bmax=['"]?(\d{1,9})['"]?""")
COUNTERS = ("step", "epoch")
"""First columns of a progress table; other tables in notebooks show data."""

NO_CELL = frozenset({"", "no log", "none"})


@dataclass
class ProgressTable:
    """A table as drawn last."""

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
        if "Validation Loss" not in self.header:
            return self.header
        return [
            f"eval_{name.lower().replace(' ', '_')}" if place > 2 and name[:1].isupper() else name
            for place, name in enumerate(self.header)
        ]

    def cells(self, row: list[str]) -> dict[str, str]:
        """Cells of a row by key, without those that hold nothing."""
        pairs = zip(self.keys, row, strict=False)
        return {key: cell for key, cell in pairs if key and cell.lower() not in NO_CELL}

    def goes_on(self, other: ProgressTable) -> bool:
        """Whether it is a later state of another table."""
        shown = len(other.rows)
        return (
            self.header[: len(other.header)] == other.header
            and shown <= len(self.rows)
            and all(new[: len(old)] == old for old, new in zip(other.rows, self.rows, strict=False))
        )


def find_tables(text: str) -> list[ProgressTable]:
    """Progress tables of one HTML output."""
    tables: list[ProgressTable] = []
    table: ProgressTable | None = None
    row: list[str] = []
    cell: list[str] | None = None
    is_head = False
    planned: int | None = None
    for token in TOKEN.finditer(text):
        closing, tag, attributes = token.group(1), token.group(2), token.group(3)
        if tag is None:
            if cell is not None and not token.group().startswith("<"):
                cell.append(token.group())
        elif tag == "progress":
            found = None if closing else PLANNED.search(attributes)
            planned = int(found.group(1)) if found is not None and table is None else planned
        elif tag in ("th", "td"):
            if cell is not None:
                row.append(_text(cell))
            cell = None if closing else []
            is_head = is_head or tag == "th"
        else:
            if cell is not None:
                row.append(_text(cell))
                cell = None
            if table is not None and row:
                # The index of a data frame is drawn as a heading in each row.
                if is_head and not table.header:
                    table.header = row
                else:
                    table.rows.append(row)
            row, is_head = [], False
            if tag == "table":
                if table is not None:
                    tables.append(table)
                table = None if closing else ProgressTable(planned_steps=planned)
    return [t for t in tables if t.header and t.header[0].lower() in COUNTERS and t.rows]


def _text(cell: list[str]) -> str:
    return html.unescape("".join(cell)).strip()
