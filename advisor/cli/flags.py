"""What goes into commands and comes out: flags, with the words of flags.toml, and lines."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option
from typer import echo as typer_echo

from advisor.common import harmless
from advisor.errors import InputError
from advisor.text import read_toml

words = partial(read_toml, __file__, "flags.toml")


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print text that may hold names of others, which do not steer the terminal."""
    typer_echo(harmless(str(text)), err=err, nl=nl)


@dataclass
class Stated:
    """What the user states of logs, for all that they leave unsaid."""

    sidecar: Path | None = None
    settings: list[str] | None = None
    column: list[str] | None = None

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of ``read_runs`` and ``inspect``."""
        return {
            "sidecar": self.sidecar,
            "overrides": pairs(self.settings, "--set"),
            "columns": pairs(self.column, "--column"),
        }


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Function as Typer takes it: parameters with their words, dataclasses as their fields."""
    name, hints = function.__name__, get_type_hints(function)
    groups: dict[str, Any] = {at: kind for at, kind in hints.items() if is_dataclass(kind)}
    taken: dict[str, tuple[Any, Any]] = {}
    for at, one in inspect.signature(function).parameters.items():
        if at in groups:
            kinds = get_type_hints(groups[at])
            for field in fields(groups[at]):
                taken[field.name] = kinds[field.name], field.default
        else:
            taken[at] = hints[at], one.default

    def called(**given: Any) -> None:
        for at, kind in groups.items():
            given[at] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        function(**given)

    called.__name__ = name
    called.__doc__ = "\n\n".join(filter(None, (function.__doc__, words()["more"].get(name))))
    keyword, signature = inspect.Parameter.KEYWORD_ONLY, []
    for at, (kind, default) in taken.items():
        worded = {"default": default, "annotation": Annotated[kind, _worded(name, at, kind)]}
        signature.append(inspect.Parameter(at, keyword, **worded))
    called.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return called


def _worded(command: str, parameter: str, kind: Any) -> Any:
    """Typer's description of a parameter."""
    found = words().get(command, {}).get(parameter) or words()["shared"][parameter]
    given = {"help": found} if isinstance(found, str) else dict(found)
    given["help"] = given["help"].replace("[default", r"\[default")  # no markup
    argument, flag = given.pop("argument", None), given.pop("flag", None)
    if argument is not None:
        return Argument(metavar=argument if isinstance(argument, str) else None, **given)
    if parameter in words()["panels"]["advanced"]:
        given["rich_help_panel"] = "Advanced"
    # With its name a flag has no --no-...
    named = flag or f"--{parameter.replace('_', '-')}"
    return Option(*([named] if isinstance(named, str) else named), **given)


def meant(typed: str, commands: Iterable[str]) -> str | None:
    """Command that an unknown word is the beginning of, or another word for."""
    others = (name for name, own in words()["synonyms"].items() if typed.lower() in own)
    return next((name for name in commands if name.startswith(typed)), next(others, None))


def pairs(values: list[str] | None, flag: str) -> dict[str, str]:
    """Split ``key=value`` flags."""
    out = {}
    for value in values or []:
        key, separator, content = value.partition("=")
        if not separator or not key or not content:
            raise InputError(
                f"'{value}' is no key=value", key=flag, advice=f"Write {flag} name=value"
            )
        out[key.strip()] = content.strip()
    return out


def numbers(text: str | None, flag: str, kind: Callable[[str], Any]) -> tuple[Any, ...] | None:
    """Split a list of numbers with commas."""
    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(
            f"'{text}' is no list of numbers", key=flag, advice=f"Write {flag} 8,16"
        ) from error
