"""``advisor mcp``: commands as tools of the Model Context Protocol, over standard input.

A call is a process: it prints what a shell would see, disturbs no other, and can be stopped. The
words for agents are in ``agents.toml``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Signature, signature
from pathlib import Path
from subprocess import DEVNULL
from typing import Annotated, Any, get_args, get_origin

from typer.models import ArgumentInfo

from advisor.cli import flags
from advisor.cli.advise import advise, show
from advisor.cli.logs import FAILED, diagnose, inspect, watch
from advisor.cli.study import export, next_pilot, what_if
from advisor.common import VERSION
from advisor.errors import CannotTellError, InputError
from advisor.text import read_toml

_table = partial(read_toml, __file__, "agents.toml")

COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command
    for command in (inspect, diagnose, advise, show, what_if, next_pilot, export, watch)
}

KINDS: dict[str, Any] = {
    "settings": dict[str, str | int | float | bool] | None,
    "column": dict[str, str] | None,
    "known": dict[str, float] | None,
    "group_sizes": list[int] | None,
    "learning_rates": list[float] | None,
}
"""Arguments that are text with signs between on a command line, and objects or lists here."""


def mcp() -> None:
    """Serve the commands as tools to an agent (MCP, stdio)."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.resources import FileResource
        from mcp.types import ResourceLink
    except ImportError as error:
        problem = "the Python SDK of the Model Context Protocol is not installed"
        advice = "Install it with: pip install 'grpo-advisor[mcp]'"
        raise InputError(problem, advice=advice) from error

    def linked(study: str) -> list[Any]:
        """Links to the page and the figures of a study, which can be read from now on."""
        folder, links = Path(study).resolve(), []
        for file in (folder / "report.html", *sorted(folder.glob("figures/*.png"))):
            kind = "text/html" if file.suffix == ".html" else "image/png"
            own = {"uri": file.as_uri(), "name": f"{folder.name}: {file.name}", "mime_type": kind}
            if file.is_file():
                server.add_resource(FileResource(path=file, **own))
                links.append(ResourceLink(type="resource_link", **own))
        return links

    tools = [*(_tool(name, linked) for name in COMMANDS), _checked(answer_part)]
    about = {"version": VERSION, "instructions": _table()["use"], "log_level": "WARNING"}
    server = MCPServer("grpo-advisor", tools=tools, warn_on_duplicate_resources=False, **about)
    server.run()


def _tool(name: str, linked: Callable[[str], list[Any]]) -> Any:
    """Tool that runs a command."""
    from pydantic import Field

    own, options, parameters = _table()["tools"][name], {}, []
    for at, one in signature(flags.command(COMMANDS[name])).parameters.items():
        if at in own["takes"]:
            kind, option = get_args(one.annotation)
            bound = Field(ge=option.min)
            parameters.append(one.replace(annotation=Annotated[_kind(at, kind), bound]))
            options[at] = option, "list" in str(kind)

    async def called(**given: Any) -> Any:
        arguments = [name.replace("_", "-"), *own["command"], *arguments_of(given, options)]
        printed = await _printed(arguments)
        if "study" not in own:
            return printed
        study = str(given[own["study"]])
        return [printed, brief(_answer(study)), *linked(study)]

    called.__name__ = name
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return _checked(called)


def _kind(name: str, kind: Any) -> Any:
    """Type of an argument for an agent: where a list is taken, one value is taken as well."""
    lists = [one for one in (kind, *get_args(kind)) if get_origin(one) is list]
    return KINDS.get(name) or (get_args(lists[0])[0] | kind if lists else kind)


def _checked(function: Callable[..., Any]) -> Any:
    """Tool of a function that says in a sentence which argument is wrong."""
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from pydantic import ValidationError

    class Checked(Tool):  # type: ignore[misc]
        async def run(self, arguments: dict[str, Any], *given: Any, **more: Any) -> Any:
            try:
                return await super().run(arguments, *given, **more)
            except ToolError as error:
                if isinstance(error.__cause__, ValidationError):
                    raise ToolError(_wrong(error.__cause__, self.parameters)) from None
                raise

    own = _table()["tools"][function.__name__]
    tool = Checked.from_function(function, description=own["words"], structured_output=False)
    # Ignored, a misspelt argument would have its default, and the answer be to another question.
    taken = tool.fn_metadata.arg_model
    taken.model_config["extra"] = "forbid"
    taken.model_rebuild(force=True)
    tool.parameters = taken.model_json_schema()
    for name, one in tool.parameters["properties"].items():
        one["description"] = own.get("arguments", {}).get(name) or _table()["arguments"][name]
        one.pop("title", None)
    return tool


def _wrong(error: Any, schema: Mapping[str, Any]) -> str:
    """Which argument of a call is wrong, and what it takes."""
    from difflib import get_close_matches

    first, known = error.errors()[0], schema["properties"]
    name = str(first["loc"][0])
    if name not in known:
        near = get_close_matches(name, known, 1) or [", ".join(known)]
        return str(InputError("there is no such argument", key=name, advice=f"Give {near[0]}"))
    own = known[name]
    kinds = [one for one in own.get("anyOf", [own]) if one["type"] != "null"]
    wanted = " or ".join(_table()["nouns"][one["type"]] for one in kinds)
    least = next((f" of at least {one['minimum']}" for one in kinds if "minimum" in one), "")
    is_lacking = first["type"] == "missing"
    problem = "it is missing" if is_lacking else f"{json.dumps(first['input'])} does not fit"
    words = own["description"].rstrip(".")
    return str(InputError(problem, key=name, advice=f"Give {wanted}{least}: {words}"))


def arguments_of(given: Mapping[str, Any], options: Mapping[str, tuple[Any, bool]]) -> list[str]:
    """Arguments of a command line; no value is taken for a flag.

    Each option comes with whether its flag is repeated for several values; else they are one
    value with commas.
    """
    named: list[str] = []
    places: list[str] = []
    for name, value in given.items():
        option, is_repeated = options[name]
        flag = option.default  # Typer's place of the flag in an annotation
        flag = flag if isinstance(flag, str) else f"--{name.replace('_', '-')}"
        values = (
            [f"{key}={one}" for key, one in value.items()] if isinstance(value, dict) else value
        )
        several = values if isinstance(values, list) else [values]
        if isinstance(values, list) and not is_repeated:
            several = [",".join(map(str, values))]
        for one in several:
            if isinstance(option, ArgumentInfo):
                places.append(str(one))
            elif one is not None and one is not False:
                named.append(flag if one is True else f"{flag}={one}")
    return [*named, "--", *places]


async def _printed(arguments: Sequence[str]) -> str:
    """What a command prints; its error is the tool's. No process takes a NUL: it is replaced."""
    from anyio import run_process
    from mcp.server.mcpserver.exceptions import ToolError

    command = [sys.executable, "-m", "advisor", *(one.replace("\0", "\ufffd") for one in arguments)]
    done = await run_process(command, check=False, stdin=DEVNULL)
    printed, error = (str(text, "utf-8", "replace").strip() for text in (done.stdout, done.stderr))
    # Codes that come with an answer, be it that pilots cannot tell or that a run fails.
    if done.returncode not in (0, CannotTellError.exit_code, FAILED) or not printed:
        raise ToolError(f"{error}\n{printed}".strip())
    return printed


# Answers ------------------------------------------------------------------------------------------


def _answer(study: str) -> dict[str, Any]:
    """All parts of the answer of a study."""
    return dict(json.loads((Path(study) / "recommendation.json").read_text(encoding="utf-8")))


def brief(answer: Mapping[str, Any], most: int = 4000) -> str:
    """JSON of at most ``most`` characters: the main parts of an answer, names of the others."""
    settings = {name: value for name, value in answer["settings"].items() if value is not None}
    whole = {**answer, "settings": settings}
    kept: dict[str, Any] = {}
    first = [name for name in _table()["first"] if name in whole]
    rest = sorted(whole.keys() - set(first), key=lambda name: (len(json.dumps(whole[name])), name))
    text = ""
    for name in (*first, *rest):
        tried = {**kept, name: whole[name]}
        others = sorted(whole.keys() - tried.keys())
        shown = json.dumps({**tried, "answer_part": others}, separators=(",", ":"))
        if len(shown) <= most:
            kept, text = tried, shown
    return text


def answer_part(study: str, name: str) -> str:
    """One part of a study's answer, as JSON."""
    from mcp.server.mcpserver.exceptions import ToolError

    from advisor.study import is_study

    if not is_study(Path(study)):
        raise ToolError(str(InputError("it is no study", path=study, advice="Ask advise for one")))
    parts = _answer(study)
    if name not in parts:
        problem = f"there is no part '{name}'"
        raise ToolError(str(InputError(problem, key="name", advice=f"Give {', '.join(parts)}")))
    return json.dumps(parts[name])
