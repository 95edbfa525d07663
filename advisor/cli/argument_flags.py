"""Flags in place of arguments: the library's errors name arguments of functions, in backticks."""

from __future__ import annotations

import re
from collections.abc import Collection

RENAMED = {
    "epochs_per_refresh": "--epochs",
    "minibatches_per_refresh": "--minibatches",
    "overrides": "--set",
    "columns": "--column",
    "planned_steps": "--steps",
    "trainer": "--to",
    "runs": "--logs",
}
"""Flags that are not called like their arguments."""

_ARGUMENT = re.compile("`([a-z_]+)`")
_QUOTED_FLAG = re.compile("`(--[a-z-]+)`")
_FLAG_AS_KEY = re.compile("key '(--[^']*)'")


def argument_to_flag(argument: str, parameters: Collection[str] = ()) -> str:
    """Flag of the command line that gives an argument.

    Parameters
    ----------
    argument : str
        ``learning_rates``, say.
    parameters : collection of str
        Flags (``--learning-rates``) and positional arguments (``study``) that the command has;
        empty where it is not known.

    Returns
    -------
    flag : str
        ``--set task=...`` where the command takes an argument as a setting of every run.
    """
    if argument in parameters:
        return argument.upper()
    flag = f"--{argument.replace('_', '-')}"
    if argument in RENAMED and flag not in parameters:
        flag = RENAMED[argument]
    if parameters and flag not in parameters and "--set" in parameters:
        return f"--set {argument}=..."
    return flag


def with_flags(text: str, parameters: Collection[str] = ()) -> str:
    """Text of an error with flags in place of the arguments that it names."""
    named = _ARGUMENT.sub(lambda found: argument_to_flag(found[1], parameters), text)
    return _FLAG_AS_KEY.sub(r"\1", _QUOTED_FLAG.sub(r"\1", named))
