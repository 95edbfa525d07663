"""A shell script that starts a trainer: variables to set, then one command with its arguments."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence


def write_script(
    comments: Sequence[str], variables: Mapping[str, str], command: str, arguments: Sequence[str]
) -> str:
    """Write a script.

    Parameters
    ----------
    comments : sequence of str
        Lines for the head.
    variables : mapping of str to str
        Assignments, as they stand after the equals sign.
    command : str
    arguments : sequence of str
        As they stand in the shell; further ones may follow when the script is called.

    Returns
    -------
    text : str
    """
    lines = [
        "#!/usr/bin/env bash",
        *(f"# {line}".rstrip() for line in comments),
        "set -euo pipefail",
        *(f"{name}={value}" for name, value in variables.items()),
        "arguments=(",
        *(f"  {argument}" for argument in arguments),
        ")",
        f'{command} "${{arguments[@]}}" "$@"',
    ]
    return "\n".join(lines) + "\n"


def given(value: str | None, name: str, what: str) -> str:
    """Right side of an assignment: what the caller's environment holds under a name, else a value.

    Parameters
    ----------
    value : str or None
    name : str
        Name of the variable.
    what : str
        What to set it to, for whoever starts the script without it; without braces and quotes.

    Returns
    -------
    assigned : str
    """
    if value:
        return f"${{{name}:-{shlex.quote(value)}}}"
    return f'"${{{name}:?set {name} to {what}}}"'
