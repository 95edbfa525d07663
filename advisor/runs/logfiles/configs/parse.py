"""One config file as settings, by what kind of file it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.configs.document import read_document
from advisor.runs.logfiles.configs.flat import flatten, follow_references
from advisor.runs.logfiles.configs.literal import Scalar, parse_command_line, parse_overrides
from advisor.runs.logfiles.log_file import LogFile

ADAPTER = "adapter_config.json"
COMMAND_LINE = "wandb-metadata.json"
SECTIONS = {
    "orch.toml": "orchestrator.",
    "orchestrator.toml": "orchestrator.",
    "train.toml": "trainer.",
    "trainer.toml": "trainer.",
}
"""Files of prime-rl that hold what is one section of its ``rl.toml``."""


class Parsed(NamedTuple):
    """Settings of one file, flattened with dots, and a remark on them."""

    settings: dict[str, Scalar]
    note: str = ""


def parse_config(log: LogFile, kind: str) -> Parsed:
    """Read the settings of one file."""
    document = read_document(log)
    if kind.startswith("overrides.") and isinstance(document, list):
        return Parsed(follow_references(parse_overrides(document)))
    if not isinstance(document, dict):
        raise InputError(
            f"it holds a {type(document).__name__}, not settings by name",
            path=log.path,
            advice="Write 'name: value' lines, or remove it",
        )
    if kind == ADAPTER:
        return _adapter(document)
    if kind == COMMAND_LINE:
        arguments = document.get("args")
        return Parsed(parse_command_line(arguments) if isinstance(arguments, list) else {})
    if kind == "config.json" and _is_architecture(document):
        name = document.get("_name_or_path")
        return Parsed({"model_name_or_path": name} if isinstance(name, str) and name else {})
    settings = follow_references(flatten(_without_wrapping(document)))
    return Parsed({SECTIONS.get(kind, "") + key: value for key, value in settings.items()})


def _without_wrapping(document: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Values of W&B's ``{"desc": ..., "value": ...}``, if that is what all are."""
    rest = {key: value for key, value in document.items() if key not in ("_wandb", "wandb_version")}
    if rest and all(map(_is_wrapped, rest.values())):
        return {key: value["value"] for key, value in rest.items()}
    return document


def _is_wrapped(value: Any) -> bool:
    return isinstance(value, Mapping) and "value" in value and set(value) <= {"desc", "value"}


def _is_architecture(document: Mapping[Any, Any]) -> bool:
    """Whether this describes a model, as the ``config.json`` in every checkpoint does."""
    described = "model_type" in document and (
        "architectures" in document or "vocab_size" in document
    )
    return described and "learning_rate" not in document


def _adapter(document: Mapping[Any, Any]) -> Parsed:
    """Settings of PEFT in the names that trainers give them."""
    settings: dict[str, Scalar] = {}
    kind, rank = document.get("peft_type"), document.get("r")
    if isinstance(kind, str):
        settings["adapter"] = kind.lower()
    if isinstance(rank, int) and not isinstance(rank, bool):
        settings["lora_r"] = rank
    alpha = document.get("lora_alpha")
    if isinstance(alpha, int | float) and not isinstance(alpha, bool):
        settings["lora_alpha"] = alpha
    modules = document.get("target_modules")
    if isinstance(modules, str):
        settings["lora_target_modules"] = modules
    elif isinstance(modules, list):
        settings["lora_target_modules"] = ",".join(sorted(map(str, modules)))[:200]
    base = document.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        return Parsed(settings)
    settings["model_name_or_path"] = base
    is_path = base.startswith(("/", ".", "~")) or base.count("/") > 1 or "\\" in base
    note = f"the base model is named by a local path ({base[:100]})" if is_path else ""
    return Parsed(settings, note)
