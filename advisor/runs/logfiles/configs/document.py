"""YAML, JSON and TOML as plain data, with a bound on what a hostile file can cost."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from functools import cache
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.configs.literal import literal
from advisor.runs.logfiles.log_file import LogFile

YAML_ENDINGS = (".yaml", ".yml")


def read_document(log: LogFile) -> Any:
    """Parse a file by its ending."""
    text = log.text(give="Write the settings into it, or remove it", limit=limits.MOST_CONFIG_BYTES)
    parse: Callable[[str], Any] = json.loads
    if log.suffix in YAML_ENDINGS:
        parse = _parse_yaml
    elif log.suffix == ".toml":
        parse = tomllib.loads
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


def _parse_yaml(text: str) -> Any:
    import yaml

    return yaml.load(text, Loader=_plain_loader())


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
