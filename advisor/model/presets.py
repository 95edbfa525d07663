"""Choose a preset for runs, say where its evidence ends, and write one as TOML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from advisor.common import write_whole
from advisor.errors import InputError, unwritable
from advisor.model.priors import Priors, load_priors
from advisor.runs import PilotRun, Settings

SMALL = 1e7
"""Parameters below which a model is small: the evidence of that preset ends there."""

DECADE = 10.0
"""Factor beyond the sizes of the evidence, or of the pilots, from which a model is far away."""


def preset_for(runs: Sequence[PilotRun]) -> tuple[str, str]:
    """Preset whose evidence the runs lie in, and why."""
    if runs and all(run.hyperparameters.adapter == "lora" for run in runs):
        return "lora", "every run trains an adapter"
    if all_small(runs):
        return "small_models", f"every model has fewer than {SMALL:.0e} parameters"
    return "full_finetuning", "neither adapters nor small models alone"


def all_small(runs: Sequence[PilotRun]) -> bool:
    """Whether every one of some runs trains a small model."""
    sizes = [run.parameters for run in runs]
    return bool(sizes) and all(size is not None and size < SMALL for size in sizes)


def outside_evidence(
    preset: Priors, settings: Settings, parameters: float, piloted: Sequence[float]
) -> str | None:
    """Say in what a target lies outside of what shaped a preset and of what was piloted."""
    domain = preset.domain
    known = ("adamw",) if domain is None else domain.optimizers
    if settings.optimizer not in known:
        rests = "every preset rests" if domain is None else f"preset '{preset.name}' rests"
        return f"the optimizer is {settings.optimizer.upper()}, and {rests} on AdamW"
    if domain is not None:
        if settings.adapter not in domain.adapters:
            return f"preset '{preset.name}' rests on adapter '{domain.adapters[0]}' alone"
        if not domain.least_parameters <= parameters <= domain.most_parameters:
            return (
                f"preset '{preset.name}' rests on models of {domain.least_parameters:.0e} to "
                f"{domain.most_parameters:.0e} parameters"
            )
    if not min(piloted) / DECADE <= parameters <= max(piloted) * DECADE:
        return "the model is more than ten times larger or smaller than any that was piloted"
    return None


def preset_toml(priors: Priors, base: Priors | None = None) -> str:
    """Preset as TOML: what is said of the whole first, then one table per entry."""
    head, tables = [], []
    known = {} if base is None else base.model_dump()
    for key, value in priors.model_dump().items():
        if isinstance(value, dict):
            if key not in known and value == _default(key):
                continue
            before = known.get(key)
            if isinstance(before, dict) and _numbers(value) == _numbers(before):
                continue
            # The numbers first, then where they come from.
            names = sorted(value, key=lambda name: name == "source")
            lines = [f"{name} = {_literal(value[name])}" for name in names]
            tables.append("\n".join([f"[{key}]", *lines]))
        elif value != type(priors).model_fields[key].default:
            head.append(f"{key} = {_literal(value)}")
    if base is not None:
        head.append(f"base = {_literal(base.name)}")
    return "\n\n".join(["\n".join(head), *tables]) + "\n"


def _default(key: str) -> Any:
    default = Priors.model_fields[key].default
    return default.model_dump() if isinstance(default, BaseModel) else default


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
    try:
        write_whole(path, preset_toml(priors))
    except OSError as error:
        raise unwritable("the preset", error, path, "out") from error


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON and TOML escape alike, but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "\n".join(["[", *(f"  {_literal(part)}," for part in value), "]"])
    return repr(value)
