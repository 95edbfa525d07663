"""Values of settings from text: overrides, command lines, and plain scalars of YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Scalar = str | int | float | bool | None

WHOLE = re.compile(r"[-+]?\d{1,18}")
DECIMAL = re.compile(r"[-+]?(?:\d{1,20}\.?\d{0,25}|\.\d{1,25})(?:[eE][-+]?\d{1,2})?")
SWITCHES = {"true": True, "True": True, "false": False, "False": False}
NOTHING = ("null", "None")
"""Not ``none``, which is a choice: TRL's ``scale_rewards="none"`` divides by nothing."""

NAME = re.compile(r"[A-Za-z_][\w./-]{0,199}")
MAPPING = re.compile(r"\{([^{}\[\]]{0,500})\}")


def literal(text: str) -> Scalar:
    """Value that a text stands for: a number, a switch, nothing, or itself without quotes."""
    bare = text.strip()
    if WHOLE.fullmatch(bare):
        return int(bare)
    if DECIMAL.fullmatch(bare):
        return float(bare)
    if bare in SWITCHES:
        return SWITCHES[bare]
    if bare in NOTHING:
        return None
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        return bare[1:-1]
    return bare


def parse_overrides(entries: Iterable[object]) -> dict[str, Scalar]:
    """Settings of Hydra overrides."""
    settings: dict[str, Scalar] = {}
    for entry in entries:
        if not isinstance(entry, str):
            continue
        key, equals, value = entry.strip().lstrip("+").partition("=")
        if equals and NAME.fullmatch(key.strip()):
            settings |= _entries(key.strip(), value.strip())
    return settings


def _entries(key: str, value: str) -> dict[str, Scalar]:
    mapping = MAPPING.fullmatch(value)
    if mapping is None:
        return {key: literal(value)}
    pairs = (each.partition(":") for each in mapping.group(1).split(","))
    return {f"{key}.{literal(name)}": literal(each) for name, colon, each in pairs if colon}


def parse_command_line(arguments: Sequence[object]) -> dict[str, Scalar]:
    """Settings of a command line: ``--key value``, ``--key=value``, ``--switch``, ``key=value``."""
    settings: dict[str, Scalar] = {}
    words = [word for word in arguments if isinstance(word, str)]
    for place, word in enumerate(words):
        if not word.startswith("--"):
            settings |= parse_overrides([word])
            continue
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if not NAME.fullmatch(name):
            continue
        if equals:
            settings[name] = literal(value)
        else:
            settings |= _flag(name, words[place + 1 : place + 1 + 16])
    return settings


def _flag(name: str, following: Sequence[str]) -> dict[str, Scalar]:
    """Settings of a flag, from the words behind it."""
    values: list[Scalar] = []
    for word in following:
        if not _is_value(word) or (values and "=" in word):
            break
        values.append(literal(word))
    if not values:
        off = {name.removeprefix("no_"): False} if name.startswith("no_") else {}
        return {name: True, **off}
    if len(values) == 1:
        return {name: values[0]}
    listed = {f"{name}.{place}": value for place, value in enumerate(values)}
    if all(type(value) in (int, float) for value in values):
        return listed
    # A word behind the first value may as well be an argument of the program itself.
    return {name: values[0], **listed}


def _is_value(word: str) -> bool:
    return not word.startswith("-") or DECIMAL.fullmatch(word) is not None
