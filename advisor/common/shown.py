"""Text of others as it may be shown: what would steer a terminal or reorder a line is spelt out."""

from __future__ import annotations

import re

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line end
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that reorder text
    "\u2028\u2029\ufeff\ud800-\udfff]"  # line ends of other kinds, and halves of characters
)


def harmless(text: str) -> str:
    r"""Text with every steering character as ``\u001b``, which JSON reads as the character itself.

    Parameters
    ----------
    text : str

    Returns
    -------
    text : str
    """
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def without_password(text: str) -> str:
    """Text with every password of a URL in it, or of what is cut off from one, as stars."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", text)


def counted(number: int, noun: str) -> str:
    """So many things, one of them without the plural: ``1 run``, ``2 runs``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"
