"""Rows and settings as a trainer's log and config files state them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.runs import Derived, Table, TableBuilder, on_disk
from advisor.runs.logfiles.config_files import parse_command_line, parse_config, parse_overrides
from advisor.runs.logs.stated_settings import check_settings


def table_of(rows: Iterable[Mapping[str, Any]], *, is_cut: bool = False) -> Table:
    """Rows as a reader keeps them."""
    builder = TableBuilder(Path("metrics.jsonl"))
    for number, row in enumerate(rows, 1):
        builder.add(number, row, is_cut=is_cut)
    return builder.build()


def settings_in(path: Path) -> dict[str, Any]:
    """Settings of a config file, under its own names."""
    return dict(parse_config(on_disk(path), path.name).settings)


def arguments_in(words: Sequence[str]) -> dict[str, Any]:
    """Settings that the flags of a command line give, under their own names."""
    return dict(parse_command_line(words))


def overrides_in(words: Sequence[str]) -> dict[str, Any]:
    """Settings that overrides as Hydra takes them give, under their own names."""
    return dict(parse_overrides(words))


def checked(derived: Derived) -> Derived:
    """Settings in the package's names, each of which can be, with its arithmetic."""
    assert derived.arithmetic.keys() == derived.facts.keys()
    check_settings(derived.facts)
    return derived
