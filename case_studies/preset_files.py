"""Learned presets as TOML files: what differs from a base, and nothing else overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from advisor.common import write_whole
from advisor.errors import InputError, writing
from advisor.model import Priors, load_priors


def preset_toml(priors: Priors, base: Priors | None = None) -> str:
    """Preset as TOML: the fields of the whole first, then one table per entry."""
    head, tables = [], []
    known = {} if base is None else base.model_dump()
    for key, value in priors.model_dump().items():
        if isinstance(value, dict):
            default = Priors.model_fields[key].default
            usual = default.model_dump() if isinstance(default, BaseModel) else default
            if key not in known and value == usual:
                continue
            before = known.get(key)
            if isinstance(before, dict) and _numbers(value) == _numbers(before):
                continue
            # The numbers first, then where they come from.
            names = sorted(value, key=lambda name: name == "source")
            lines = [f"{of} = {_literal(value[of])}" for of in names if value[of] is not None]
            tables.append("\n".join([f"[{key}]", *lines]))
        elif value != type(priors).model_fields[key].default:
            head.append(f"{key} = {_literal(value)}")
    if base is not None:
        head.append(f"base = {_literal(base.name)}")
    return "\n\n".join(["\n".join(head), *tables]) + "\n"


def _numbers(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "source"}


def check_preset_file(path: Path) -> None:
    """Refuse a place for a preset before any work is done."""
    if path.suffix != ".toml":
        raise InputError(
            "a preset is found by a path that ends in .toml",
            path=path,
            argument="out",
            advice=f"Write `out` {path.stem or 'team'}.toml",
        )
    if not path.exists():
        return
    try:
        load_priors(path)
    except InputError as error:
        raise InputError(
            "it exists and is no preset of this version: nothing was overwritten",
            path=path,
            argument="out",
            advice="Choose another file",
        ) from error


def write_preset(path: Path, priors: Priors) -> None:
    """Write a preset, replacing an older one."""
    check_preset_file(path)
    with writing("the preset", path, "out"):
        write_whole(path, preset_toml(priors))


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON and TOML escape alike, but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_literal(v)}" for k, v in value.items()) + " }"
    if isinstance(value, tuple):
        return "\n".join(["[", *(f"  {_literal(part)}," for part in value), "]"])
    return repr(value)
