"""Limits of what is read from files."""

from __future__ import annotations

from types import SimpleNamespace

from advisor.text import read_toml

limits = SimpleNamespace(**read_toml(__file__, "limits.toml"))
