"""Write settings as a configuration that a trainer starts from; one framework per file.

A framework's module says which of its keys each setting becomes, and in which release they were
looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from advisor.errors import InputError
from advisor.run.pilot_run import Hyperparameters
from advisor.trainers.launch import Launch, make_launch
from advisor.trainers.openrlhf import export as openrlhf
from advisor.trainers.trl import export as trl
from advisor.trainers.verl import export as verl

__all__ = ["FRAMEWORKS", "Export", "export_config"]


class Export(NamedTuple):
    """How to write for one framework.

    Attributes
    ----------
    file_name : str
        Name of the file by default.
    render : callable (Launch, model) -> str
    """

    file_name: str
    render: Callable[[Launch, str | None], str]


FRAMEWORKS: dict[str, Export] = {
    "trl": Export(trl.FILE_NAME, trl.render),
    "verl": Export(verl.FILE_NAME, verl.render),
    "openrlhf": Export(openrlhf.FILE_NAME, openrlhf.render),
}


def export_config(
    settings: Hyperparameters,
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
    settings : Hyperparameters
        With both factors of the refresh interval.
    steps : int
        Optimizer steps of the run.
    framework : str
        One of `FRAMEWORKS`.
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
    if framework not in FRAMEWORKS:
        raise InputError(
            f"'{framework}' is none of the trainers that can be written for",
            key="to",
            advice=f"Choose one of {', '.join(FRAMEWORKS)}",
        )
    text = FRAMEWORKS[framework].render(make_launch(settings, steps, devices), model)
    if note is None:
        return text
    opening, _, rest = text.partition("\n")
    comment = "".join(f"# {line}".rstrip() + "\n" for line in note.splitlines())
    return f"{opening}\n{comment}{rest}" if opening.startswith("#!") else comment + text
