"""Text that people read: counted, safe to print, in few characters; tables and patterns of TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

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
    plural = "es" if noun.endswith(("s", "tch")) else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def html_table(title: str, names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Table for a notebook; names out of logs make no HTML of their own."""

    def line(cells: Iterable[object], tag: str) -> str:
        texts = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in cells)
        return "".join(f"<{tag}>{escape(harmless(text))}</{tag}>" for text in texts)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    head = f"<caption>{escape(harmless(title))}</caption><tr>{line(names, 'th')}</tr>"
    return f"<table>{head}{body}</table>"


def scientific(value: float, digits: int = 1) -> str:
    """A learning rate or a size in few characters: ``3e-4``, ``1.2e-3``."""
    lead, power = f"{value:.{digits}e}".split("e")
    return f"{lead.removesuffix('.0')}e{int(power)}"


@cache
def read_toml(beside: str, name: str) -> dict[str, Any]:
    """Content of a TOML file that lies next to a module of the package, read once."""
    return tomllib.loads(Path(beside).with_name(name).read_text(encoding="utf-8"))


def compiled(written: Mapping[str, str | Sequence[str]]) -> Mapping[str, re.Pattern[Any]]:
    """Patterns by name; ``<<name>>`` is one before it, and a name in ``_bytes`` is one of bytes."""
    whole: dict[str, str] = {}
    for key, parts in written.items():
        whole[key] = re.sub("<<(.+?)>>", lambda found: whole[found[1]], "".join(parts))
    return {k: re.compile(t.encode() if k.endswith("_bytes") else t) for k, t in whole.items()}
