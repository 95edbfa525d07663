"""Defaults of a team: ``advisor.toml`` in the working folder or above it.

They hold for every command but those of ``advisor priors`` and ``advisor studies``; the store has a
variable of its own, ADVISOR_STORE. A path counts from the working folder, as on the command line.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import InputError

NAME = "advisor.toml"

SHARED = "defaults"
"""Table of what holds for every command that takes it; others are named after commands."""

NOT_BY_DEFAULT = frozenset({"debug", "help", "out"})
"""What only a call itself may say: a default place would be overwritten by the next call."""


def find_defaults(folder: Path) -> Path | None:
    """The nearest file of defaults, in a folder or above it."""
    for place in (folder, *folder.parents):
        file = place / NAME
        if file.is_file():
            return file
    return None


class Flag(NamedTuple):
    """A flag by the parameter that it sets, and whether it may be given several times."""

    parameter: str
    is_list: bool


def read_defaults(file: Path, flags: Mapping[str, Mapping[str, Flag]]) -> dict[str, dict[str, Any]]:
    """Defaults by command and parameter.

    Parameters
    ----------
    file : Path
    flags : mapping of command to mapping of flag, without its dashes in front, to Flag

    Returns
    -------
    defaults : dict of str to dict
        For the commands that take them.

    Raises
    ------
    InputError
        It is no TOML, or a table or key of it is not known.
    """
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"it cannot be read ({error})", path=file, advice="Mend or remove it"
        ) from None
    everywhere = {name for own in flags.values() for name in own} - NOT_BY_DEFAULT
    for name, table in found.items():
        if name not in {SHARED, *flags} or not isinstance(table, dict):
            names = {SHARED, *flags}
            raise _unknown(name, names, file, "table", f"[{SHARED}] and tables named by commands")
        known = everywhere if name == SHARED else {*flags[name]} - NOT_BY_DEFAULT
        for key in table:
            if key.replace("_", "-") not in known:
                raise _unknown(key, known, file, f"key of [{name}]", "flags without their dashes")
    defaults: dict[str, dict[str, Any]] = {}
    for command, own in flags.items():
        for table in (SHARED, command):
            for key, value in found.get(table, {}).items():
                flag = own.get(key.replace("_", "-"))
                if flag is not None:
                    told = _value(value, file, f"{table}.{key}", is_list=flag.is_list)
                    defaults.setdefault(command, {})[flag.parameter] = told
    return defaults


def _value(value: Any, file: Path, key: str, *, is_list: bool) -> Any:
    """A value as its flag takes it: a list where a flag may be repeated."""
    if isinstance(value, dict) or (isinstance(value, list) and not is_list):
        raise InputError(
            f"{value!r} is no value of a flag", path=file, key=key, advice="Give one value"
        )
    return value if isinstance(value, list) or not is_list else [value]


def _unknown(name: str, known: set[str], file: Path, what: str, are: str) -> InputError:
    near = difflib.get_close_matches(name.replace("_", "-"), sorted(known), n=1)
    return InputError(
        f"'{name}' is no {what}",
        path=file,
        key=name,
        advice=f"The nearest is '{near[0]}'" if near else f"It may hold {are}",
    )
