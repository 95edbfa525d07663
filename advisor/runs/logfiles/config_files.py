"""One config file as settings by dotted names, by what kind of file it is."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.pilot_run import model_name
from advisor.text import compiled, read_toml

Scalar = str | int | float | bool | None

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Stands for a value that only a shell or Hydra knew: no default may take its place."""

NAMES = read_toml(__file__, "config_names.toml")
PATTERNS = compiled(NAMES["patterns"])

CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
"""Not ``none``, which is a choice: TRL's ``scale_rewards="none"`` divides by nothing."""


def literal(text: str) -> Scalar:
    """Value that a text stands for: a number, a switch, nothing, or itself without quotes."""
    bare = text.strip()
    if PATTERNS["whole"].fullmatch(bare):
        return int(bare)
    if PATTERNS["decimal"].fullmatch(bare):
        return float(bare)
    if bare in CONSTANTS:
        return CONSTANTS[bare]
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        return bare[1:-1]
    return bare


def parse_overrides(entries: Iterable[object]) -> dict[str, Scalar]:
    """Settings of Hydra overrides."""
    settings: dict[str, Scalar] = {}
    for entry in entries:
        key, equals, value = str(entry).strip().lstrip("+").partition("=")
        key = key.strip()
        if not isinstance(entry, str) or not equals or not PATTERNS["name"].fullmatch(key):
            continue
        if mapping := PATTERNS["mapping"].fullmatch(value.strip()):
            pairs = (each.partition(":") for each in mapping.group(1).split(","))
            settings |= {f"{key}.{literal(a)}": literal(b) for a, colon, b in pairs if colon}
        else:
            settings[key] = literal(value)
    return settings


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
        if PATTERNS["name"].fullmatch(name):
            following = next(iter(words[place + 1 : place + 2]), "--")
            if equals or not following.startswith("-") or PATTERNS["decimal"].fullmatch(following):
                settings[name] = literal(value if equals else following)
            else:
                settings |= {name: True, **({name[3:]: False} if name.startswith("no_") else {})}
    return settings


def flatten(document: Any) -> dict[str, Scalar]:
    """Scalars of nested mappings and short lists by dotted names."""
    return dict(_scalars(document, "", 0))


def _scalars(node: Any, prefix: str, depth: int) -> Iterator[tuple[str, Scalar]]:
    if isinstance(node, Mapping | list):
        if depth > 20 or (isinstance(node, list) and len(node) > 16):
            return
        for key, value in node.items() if isinstance(node, Mapping) else enumerate(node):
            yield from _scalars(value, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif prefix and _is_setting(node):
        yield prefix, node


def _is_setting(value: Any) -> bool:
    if isinstance(value, str):
        # OpenRLHF hands W&B its nested arguments as one text.
        is_nested = value.startswith("namespace(")
        return len(value) <= (20_000 if is_nested else limits.most_config_text_characters)
    if isinstance(value, int | float):
        return abs(value) <= (2**53) and not math.isnan(value)
    return value is None


def without_references(settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Settings of which one that refers to others, as ``${a.b}`` does, is unknown."""
    return {key: UNKNOWN if "${" in str(value) else value for key, value in settings.items()}


@dataclass(frozen=True)
class ConfigSource:
    """Settings of one file next to a log, flattened with dots, and a remark on them."""

    path: Path
    settings: dict[str, Scalar] = field(default_factory=dict)
    note: str = ""
    line: int = 0  # Of a command that states them
    is_of_several: bool = False  # Nothing of it is used, since it may describe any of several logs

    @property
    def name(self) -> str:
        """For a message: the file and the line."""
        return f"{self.path.name}, line {self.line}" if self.line else self.path.name


def parse_config(log: LogFile, kind: str) -> ConfigSource:
    """Read the settings of one file."""
    document = _document(log)
    if kind.startswith("overrides.") and isinstance(document, list):
        return ConfigSource(log.path, without_references(parse_overrides(document)))
    if not isinstance(document, dict):
        problem = f"it holds a {type(document).__name__}, not settings by name"
        raise InputError(problem, path=log.path, advice="Write 'name: value' lines, or remove it")
    if kind == "adapter_config.json":
        return _adapter(document, log.path)
    if kind == "wandb-metadata.json":
        arguments = document.get("args")
        words = arguments if isinstance(arguments, list) else []
        return ConfigSource(log.path, parse_command_line(words))
    # A model is described by the config.json in every checkpoint.
    described = "model_type" in document and document.keys() & {"architectures", "vocab_size"}
    if kind == "config.json" and described and "learning_rate" not in document:
        name = document.get("_name_or_path")
        is_named = isinstance(name, str) and name
        return ConfigSource(log.path, {"model_name_or_path": name} if is_named else {})
    # Values of W&B's {"desc": ..., "value": ...}, if that is what all are.
    rest = {key: value for key, value in document.items() if key not in ("_wandb", "wandb_version")}
    wrapped = [
        isinstance(v, dict) and {"value"} <= set(v) <= {"desc", "value"} for v in rest.values()
    ]
    if rest and all(wrapped):
        document = {key: value["value"] for key, value in rest.items()}
    section = NAMES["one_section"].get(kind, "")
    settings = without_references(flatten(document))
    return ConfigSource(log.path, {section + key: value for key, value in settings.items()})


def _adapter(document: Mapping[Any, Any], path: Path) -> ConfigSource:
    """Settings of PEFT in the names that trainers give them."""
    modules, base = document.get("target_modules"), document.get("base_model_name_or_path")
    if isinstance(modules, list):
        modules = ",".join(sorted(map(str, modules)))[:200]
    kind = document.get("peft_type")
    stated = {
        "adapter": kind.lower() if isinstance(kind, str) else None,
        "lora_r": document.get("r"),
        "lora_alpha": document.get("lora_alpha"),
        "lora_target_modules": modules,
        "model_name_or_path": model_name(base) if isinstance(base, str) and base else base or None,
    }
    settings = flatten({name: value for name, value in stated.items() if value is not None})
    base = str(settings.get("model_name_or_path", ""))
    is_path = base.startswith(("/", ".", "~")) or base.count("/") > 1 or "\\" in base
    note = f"{path.name}: the base model is named by a local path ({base[:100]})"
    return ConfigSource(path, settings, note if is_path else "")


def _document(log: LogFile) -> Any:
    """Parse a file by its ending."""
    text = log.text(give="Write the settings into it, or remove it", limit=limits.most_config_bytes)
    parsers = {".yaml": _parse_yaml, ".yml": _parse_yaml, ".toml": _parse_toml}
    try:
        return parsers.get(log.suffix, json.loads)(text)
    except Exception as error:  # parsers raise nearly any kind for what a file may hold
        what = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        problem = f"this is not valid {log.suffix[1:].upper()} ({what})"
        raise InputError(problem, path=log.path, advice="Correct it, or remove it") from None


def _parse_toml(text: str) -> Any:
    # A dotted key costs the parser the square of its dots.
    if any(line.count(".") > limits.most_toml_dots for line in text.splitlines()):
        raise ValueError(f"a line holds more than {limits.most_toml_dots} dots")
    return tomllib.loads(text)


def _parse_yaml(text: str) -> Any:
    import yaml

    _check_size(yaml.parse(text, Loader=_plain_loader()))
    return yaml.load(text, Loader=_plain_loader())


def _check_size(events: Iterable[Any]) -> None:
    """Raise where nesting would overflow the C parser's stack, or aliases would fill memory."""
    import yaml

    sizes: dict[str, int] = {}
    starts: list[tuple[str | None, int]] = []
    total = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise ValueError(f"the alias *{event.anchor} stands for nothing before it")
            total += sizes[event.anchor]
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = starts.pop()
            sizes |= {anchor: total - before} if anchor else {}
        elif isinstance(event, yaml.NodeEvent):
            total += 1
            if isinstance(event, yaml.CollectionStartEvent):
                starts.append((event.anchor, total - 1))
            elif event.anchor:
                sizes[event.anchor] = 1
        if len(starts) > limits.most_config_levels:
            raise ValueError(f"nested more than {limits.most_config_levels} levels deep")
        if total > limits.most_yaml_values:
            raise ValueError(f"it holds more than {limits.most_yaml_values:,} values")


@cache
def _plain_loader() -> Any:
    """Safe loader of plain data, whatever tags a file asks for, with the numbers of YAML 1.2."""
    import yaml

    class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    def data(loader: Any, _: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return node.value

    def scalar(loader: Any, node: Any) -> Any:
        return node.value if node.style else literal(node.value)

    for kind in ("int", "float", "str"):
        Plain.add_constructor(f"tag:yaml.org,2002:{kind}", scalar)
    for kind in ("timestamp", "binary"):
        Plain.add_constructor(f"tag:yaml.org,2002:{kind}", lambda loader, node: node.value)
    Plain.add_multi_constructor("", data)
    return Plain
