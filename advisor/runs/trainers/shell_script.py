"""A shell script that starts a trainer: variables to set, then one command with its arguments."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence


def write_script(
    comments: Sequence[str],
    variables: Mapping[str, str],
    command: str,
    arguments: Sequence[str],
    asked: Sequence[str] = (),
) -> str:
    """Text of a script: comments, variables to set, one command with its arguments.

    Lines that ask for more arguments stand behind those, commented out.
    """
    lines = [
        "#!/usr/bin/env bash",
        *(f"# {line}".rstrip() for line in comments),
        "set -euo pipefail",
        *(f"{name}={value}" for name, value in variables.items()),
        "arguments=(",
        *(f"  {argument}" for argument in arguments),
        *(f"  # {line}" for line in asked),
        ")",
        f'{command} "${{arguments[@]}}" "$@"',
    ]
    return "\n".join(lines) + "\n"


def from_environment(value: str | None, name: str, what: str) -> str:
    """Shell expression: a variable of the caller's environment, else a value or an error."""
    if value:
        return f"${{{name}:-{shlex.quote(value)}}}"
    return f'"${{{name}:?set {name} to {what}}}"'
