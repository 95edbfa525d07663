"""Write settings as a configuration from which a trainer starts."""

from __future__ import annotations

import re

from advisor.common import harmless
from advisor.errors import InputError
from advisor.runs.settings import Settings
from advisor.runs.trainers.launch import make_launch
from advisor.runs.trainers.registry import exports

__all__ = ["export_config"]

_COMMENT = re.compile(r"^\s*#[^\n]*", re.MULTILINE)


def export_config(
    settings: Settings,
    steps: int,
    framework: str,
    *,
    devices: int = 1,
    model: str | None = None,
    note: str | None = None,
) -> str:
    """Write settings as a trainer's configuration.

    Parameters
    ----------
    settings : Settings
    steps : int
        Optimizer steps of the run.
    framework : str
        Name of an export, such as ``trl``, ``verl`` or ``openrlhf``.
    devices : int
        Devices that share one optimizer step.
    model : str, optional
        Name or folder of the model.
    note : str, optional
        Goes to the top as a comment.

    Returns
    -------
    text : str
        A YAML file of ``GRPOConfig`` arguments for TRL, a shell script for verl and OpenRLHF. Every
        number is written with all its digits, and the comments hold the arithmetic.

    Raises
    ------
    InputError
        Something is missing, does not divide, or cannot be told to this trainer. Nothing is
        rounded.
    """
    known = exports()
    if framework not in known:
        raise InputError(
            f"'{framework}' is none of the trainers that can be written for",
            key="to",
            advice=f"Choose one of {', '.join(known)}",
        )
    text = known[framework].render(make_launch(settings, steps, devices), model)
    text = _COMMENT.sub(lambda line: harmless(line[0]), text)
    checked = known[framework].checked
    if checked:
        note = f"Checked against {checked}." + (f"\n{note}" if note else "")
    if note is None:
        return text
    opening, _, rest = text.partition("\n")
    comment = "".join(f"# {harmless(line)}".rstrip() + "\n" for line in note.splitlines())
    return f"{opening}\n{comment}{rest}" if opening.startswith("#!") else comment + text
