"""Small logs and what is read of them: the entries of logs.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from reader_conformance import LogFormat

from advisor.errors import InputError
from advisor.runs import read_runs

ENTRIES = yaml.safe_load(Path(__file__).with_name("logs.yaml").read_text(encoding="utf-8"))
SENTENCES = ("assumptions", "warnings")


def plain(value: Any) -> Any:
    """A value as YAML writes it: lists, and null for what is not finite."""
    if isinstance(value, np.ndarray):
        return [float(one) if np.isfinite(one) else None for one in value]
    return list(value) if isinstance(value, tuple) else value


def field(run: Any, path: str) -> Any:
    """Field of a run by its dotted path."""

    def within(of: Any, name: str) -> Any:
        return of[name] if isinstance(of, Mapping) else getattr(of, name)

    return reduce(within, path.split(".", 1), run)


def check(run: Any, wanted: dict[str, Any]) -> None:
    """Hold some fields of a run to what is wanted of them; ``_`` is none."""
    columns = wanted.get("columns", {})
    assert {key for key in columns if key in run.table.keys} == {
        key for key, values in columns.items() if values != "_"
    }
    found = {f"table {key}": run.table.column(key) for key in columns if columns[key] != "_"}
    told = {f"table {key}": values for key, values in columns.items() if values != "_"}
    for name, value in wanted.items():
        if name in SENTENCES:
            lines = getattr(run, name)
            assert len(lines) == len(value), lines
            assert all(any(part in line for line in lines) for part in value), lines
        elif name != "columns":
            found[name], told[name] = field(run, name), None if value == "_" else value
    assert {name: plain(value) for name, value in found.items()} == told


@pytest.mark.parametrize("title", ENTRIES)
def test_what_is_read(title: str, write: Callable[..., Path], tmp_path: Path) -> None:
    entry = ENTRIES[title]
    paths = [write(name, content) for name, content in entry["files"].items()]
    reader = LogFormat(entry["reader"]) if "reader" in entry else None
    if reader is not None and "claims" in entry:
        assert all(reader.claims(path) == entry["claims"] for path in paths)
    for ask in entry.get("asks", [entry]):
        refused = pytest.raises(InputError, match=ask["error"]) if "error" in ask else nullcontext()
        if not ask.keys() & {"error", "runs"}:
            continue
        with refused as caught:
            if reader is not None:
                runs: list[Any] = reader.read(*paths, columns=ask.get("columns"))
            else:
                asked = {name: ask[name] for name in ("columns", "overrides") if name in ask}
                if "sidecar" in ask:
                    asked["sidecar"] = tmp_path / ask["sidecar"]
                alone = paths[0].name if len(paths) == 1 and paths[0].parent == tmp_path else "."
                runs = read_runs(tmp_path / ask.get("of", alone), **asked)
            assert len(runs) == len(ask["runs"])
            for run, wanted in zip(runs, ask["runs"], strict=True):
                check(run, wanted)
        assert caught is None or caught.value.advice
