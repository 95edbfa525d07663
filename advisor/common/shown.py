"""Values as they are shown: text that steers no terminal, and HTML for notebooks, escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that reorder text
    "\u2028\u2029\ufeff\ud800-\udfff]"  # line ends of other kinds, and halves of characters
)


def harmless(text: str) -> str:
    r"""Text with every steering character as ``\u001b``, as JSON spells it."""
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def without_password(text: str) -> str:
    """Text with every password of a URL in it, or of what is cut off from one, as stars."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", text)


def counted(number: int, noun: str) -> str:
    """So many things, one of them without the plural: ``1 run``, ``2 runs``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


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
    """A table whose first column names the row."""
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
