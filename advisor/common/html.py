"""What a notebook shows of our objects: HTML without script, with every text escaped.

Needs the standard library only, so that every room may use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

NUMBER = "text-align:right;white-space:nowrap"
TEXT = "text-align:left"


def cell(value: object) -> str:
    """Write a value: whole numbers whole, others to three digits, what is missing as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:.3g}"
    return str(value)


def heading(text: str, more: str = "") -> str:
    """A bold line, and what follows it in plain letters."""
    rest = f" {escape(more)}" if more else ""
    return f"<p><strong>{escape(text)}</strong>{rest}</p>"


def paragraph(text: str) -> str:
    """Text with its own line breaks."""
    return f'<p style="white-space:pre-wrap;max-width:60em">{escape(text)}</p>'


def bullets(lines: Iterable[str]) -> str:
    """A list; nothing where there is no line."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose first column names the row.

    Parameters
    ----------
    columns : sequence of str
    rows : iterable of sequence
        Values; numbers are aligned at the right.
    """
    head = "".join(f'<th style="{TEXT}">{escape(name)}</th>' for name in columns)
    body = "".join(
        f"<tr>{''.join(_cell(value, is_name=place == 0) for place, value in enumerate(row))}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def whole(*parts: str) -> str:
    """Parts as one block."""
    return f"<div>{''.join(parts)}</div>"


def _cell(value: object, *, is_name: bool) -> str:
    tag, style = ("th", TEXT) if is_name else ("td", TEXT if isinstance(value, str) else NUMBER)
    return f'<{tag} style="{style}">{escape(cell(value))}</{tag}>'
