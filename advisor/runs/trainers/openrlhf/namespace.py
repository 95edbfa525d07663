"""Arguments of OpenRLHF as Python prints them: ``Namespace(seed=42, lora=namespace(rank=0))``."""

from __future__ import annotations

import re

from advisor.runs.logfiles.configs.literal import Scalar, literal

OPENING = re.compile(r"[Nn]amespace\(")
CLOSING = re.compile(r"\s*\)")
NAME = re.compile(r"[\s,]*([A-Za-z_]\w{0,100})=")
QUOTED = re.compile(r"'(?:[^'\\]|\\.){0,2000}'|\"(?:[^\"\\]|\\.){0,2000}\"")
BRACKETED = re.compile(r"[(\[][^()\[\]]{0,2000}[)\]]")
BARE = re.compile(r"[^,()\[\]]{1,200}")
DEEPEST = 8


def parse_namespace(text: str) -> dict[str, Scalar]:
    """Arguments of a printed namespace by dotted names, up to where it breaks off."""
    found: dict[str, Scalar] = {}
    opening = OPENING.match(text)
    if opening is None:
        return found
    outer, at = [""], opening.end()
    while outer:
        closing = CLOSING.match(text, at)
        if closing is not None:
            outer.pop()
            at = closing.end()
            continue
        name = NAME.match(text, at)
        if name is None:
            break
        key, at = outer[-1] + name.group(1), name.end()
        inner = OPENING.match(text, at)
        if inner is not None:
            if len(outer) > DEEPEST:
                break
            outer.append(f"{key}.")
            at = inner.end()
            continue
        value = QUOTED.match(text, at) or BRACKETED.match(text, at) or BARE.match(text, at)
        if value is None or value.end() == len(text):
            break  # what stands last on a cut line may have lost digits
        at = value.end()
        written = value.group()
        found[key] = written[1:-1] if written[0] in "([" else literal(written)
    return found
