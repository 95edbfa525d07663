"""One config file as settings by dotted names, by what kind of file it is."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.configs.literal import (
    Scalar,
    literal,
    parse_command_line,
    parse_overrides,
)
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

MOST_LEVELS = 50
MOST_TOML_DOTS = 1_000
MOST_YAML_VALUES = 100_000
"""Of a YAML document once its aliases are written out."""

REFERENCE = re.compile(r"\$\{([^${}]{1,200})\}")


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
        if value.startswith("namespace("):
            return len(value) <= 20_000
        return len(value) <= limits.MOST_CONFIG_TEXT_CHARACTERS
    if isinstance(value, int | float):
        return abs(value) <= (2**53) and not math.isnan(value)
    return value is None


def follow_references(settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Replace ``${a.b}`` by the value of ``a.b``; leave out what leads elsewhere."""
    followed = {key: _follow(key, value, settings) for key, value in settings.items()}
    return {key: value for key, (value, is_whole) in followed.items() if is_whole}


def _follow(key: str, value: Scalar, settings: Mapping[str, Scalar]) -> tuple[Scalar, bool]:
    for _ in range(10):
        if not isinstance(value, str) or "${" not in value:
            return value, True
        found = REFERENCE.search(value)
        if found is None:
            break
        name = _absolute(found.group(1).strip(), key)
        if name not in settings:
            break
        if found.group() == value.strip():
            # What it says relative to itself is followed from where it stands.
            key, value = name, settings[name]
        else:
            value = f"{value[: found.start()]}{settings[name]}{value[found.end() :]}"
            if len(value) > limits.MOST_CONFIG_TEXT_CHARACTERS:
                break
    return None, False


def _absolute(name: str, key: str) -> str:
    dots = len(name) - len(name.lstrip("."))
    if not dots:
        return name
    parents = key.split(".")
    return ".".join([*parents[: max(len(parents) - dots, 0)], name[dots:]])


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


def read_document(log: LogFile) -> Any:
    """Parse a file by its ending."""
    text = log.text(give="Write the settings into it, or remove it", limit=limits.MOST_CONFIG_BYTES)
    parse: Callable[[str], Any] = json.loads
    if log.suffix in (".yaml", ".yml"):
        parse = _parse_yaml
    elif log.suffix == ".toml":
        parse = _parse_toml
    try:
        return parse(text)
    except InputError:
        raise
    except Exception as error:  # parsers raise nearly any kind for what a file may hold
        what = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(
            f"this is not valid {log.suffix[1:].upper()} ({what})",
            path=log.path,
            advice="Correct it, or remove it",
        ) from None


def _parse_toml(text: str) -> Any:
    # A dotted key costs the parser the square of its dots.
    if any(line.count(".") > MOST_TOML_DOTS for line in text.splitlines()):
        raise ValueError(f"a line holds more than {MOST_TOML_DOTS} dots")
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
        if len(starts) > MOST_LEVELS:
            raise ValueError(f"nested more than {MOST_LEVELS} levels deep")
        if total > MOST_YAML_VALUES:
            raise ValueError(f"it holds more than {MOST_YAML_VALUES:,} values")


def _safe_loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _plain_loader() -> Any:
    """Safe loader that builds nothing but plain data, whatever tags a file asks for.

    Configs that were dumped from Python objects carry tags of their classes; what is below such
    a tag is read as the mapping, list or text that it is. Numbers are those of YAML 1.2, as
    trainers read them: ``1e-6`` is one, ``1:30`` is not.
    """
    import yaml

    class Plain(_safe_loader()):  # type: ignore[misc]
        pass

    def data(loader: Any, _: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return node.value

    def scalar(loader: Any, node: Any) -> Any:
        return node.value if node.style else literal(node.value)

    def text(loader: Any, node: Any) -> Any:
        return node.value

    for kind in ("int", "float", "str"):
        Plain.add_constructor(f"tag:yaml.org,2002:{kind}", scalar)
    for kind in ("timestamp", "binary"):
        Plain.add_constructor(f"tag:yaml.org,2002:{kind}", text)
    Plain.add_multi_constructor("", data)
    return Plain
