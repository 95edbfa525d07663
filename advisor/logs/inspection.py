"""What a folder of logs holds: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.logfiles import limits
from advisor.logfiles.find import Unread
from advisor.logs.read import Inspection
from advisor.run.needs import WHY, advice_for, needs
from advisor.run.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray

NO_LOG = ("not a log that any reader knows", "settings, not a log")
"""Reasons that are counted rather than shown, since the file was never meant to be a log."""


def ends(values: FloatArray) -> tuple[float, float] | None:
    """Means of the first and of the last tenth of a series, or None where nothing is finite."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    share = max(1, finite.size // 10)
    return float(finite[:share].mean()), float(finite[-share:].mean())


def as_json(inspection: Inspection) -> str:
    """An inspection as JSON.

    Parameters
    ----------
    inspection : Inspection

    Returns
    -------
    text : str
        ``{"runs": [{"id", "path", "model", "copy_of", ...}], "unread": [{"path", "reason"}]}``;
        missing numbers are null.
    """
    document = {
        "runs": [_run(run) for run in inspection.runs],
        "unread": [{"path": str(path), "reason": reason} for path, reason in inspection.unread],
    }
    return json.dumps(document, indent=1, allow_nan=False)


def _run(run: PilotRun) -> dict[str, Any]:
    reward, held_out = ends(run.reward), ends(run.eval_reward)
    return {
        "id": run.id,
        "path": run.path,
        "format": run.format,
        "framework": run.framework,
        "copy_of": run.copy_of,
        "model": run.model,
        "parameters": run.parameters,
        "task": run.task,
        "hyperparameters": run.hyperparameters.model_dump(),
        "refresh_interval": run.hyperparameters.refresh_interval,
        "rows": int(run.step.size),
        "first_step": None if run.is_eval_only else int(run.step[0]),
        "last_step": None if run.is_eval_only else int(run.step[-1]),
        "step_unit": run.step_unit,
        "logging_steps": run.logging_steps,
        "reward_first": reward and reward[0],
        "reward_last": reward and reward[1],
        "evaluations": int(run.eval_step.size),
        "eval_first": held_out and held_out[0],
        "eval_last": held_out and held_out[1],
        "series": sorted(run.series),
        "missing": dict(run.missing),
        "needs": needs(run),
        "keys_read": run.keys_read,
        "keys_understood": list(run.keys_understood),
        "keys_ignored": list(run.keys_ignored),
        "derivations": run.derivations,
        "assumptions": list(run.assumptions),
        "warnings": list(run.warnings),
    }


def show(inspection: Inspection, console: Console, *, quiet: bool = False) -> None:
    """Print the runs and, unless quiet, what they lack and what was not read."""
    copies = sum(run.copy_of is not None for run in inspection.runs)
    count = len(inspection.runs)
    title = f"{count} run{'s' if count != 1 else ''}"
    title += f", {copies} of them copies" if copies else ""
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE)
    for name in ("run", "model", "size", "task", "G", "lr", "K", "steps", "reward", "lacks"):
        is_number = name in ("size", "G", "lr", "K", "steps", "reward")
        table.add_column(
            name,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
        )
    for run in inspection.runs:
        table.add_row(*(Text(cell) for cell in _cells(run)))
    if inspection.runs:
        console.print(table)
    if quiet:
        return
    _show_needs(inspection.runs, console)
    _show_unread(inspection.unread, console)


def _cells(run: PilotRun) -> list[str]:
    settings = run.hyperparameters
    interval = settings.refresh_interval
    if run.copy_of is not None:
        lacks = f"copy of {run.copy_of}"
    elif run.is_eval_only:
        lacks = "evaluations only"
    else:
        lacks = ", ".join(needs(run)) or "-"
    unit = {"refresh": " refreshes", "unknown": " (?)"}.get(run.step_unit, "")
    last = run.eval_step[-1] if run.is_eval_only else run.step[-1]
    return [
        run.id,
        run.model or "-",
        "-" if run.parameters is None else _size(run.parameters),
        run.task or "-",
        str(settings.group_size or "-"),
        "-" if settings.learning_rate is None else f"{settings.learning_rate:.3g}",
        str(interval or "-"),
        f"{last:.0f}{unit}",
        _ends(run),
        lacks,
    ]


def _ends(run: PilotRun) -> str:
    found, mark = ends(run.reward), ""
    if found is None:
        found, mark = ends(run.eval_reward), " (held out)"
    return "-" if found is None else f"{found[0]:.2f} -> {found[1]:.2f}{mark}"


def _size(parameters: float) -> str:
    for unit, scale in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if parameters >= scale:
            return f"{parameters / scale:.3g}{unit}"
    return f"{parameters:.0f}"


def _show_needs(runs: Sequence[PilotRun], console: Console) -> None:
    asked = [run for run in runs if run.copy_of is None and not run.is_eval_only]
    lacking = Counter(name for run in asked for name in needs(run))
    ready = sum(not needs(run) for run in asked)
    if not asked:
        return
    console.print(Text(f"\n{ready} of {len(asked)} runs can be fitted as they are."))
    if not lacking:
        return
    console.print(Text("To fit the others:"))
    for name, count in lacking.most_common():
        runs_word = "run" if count == 1 else "runs"
        console.print(Text(f"  {count} {runs_word}: {WHY[name]}. {advice_for(name)}."))
    everywhere = [n for n, count in lacking.items() if count == len(asked) and n != "step_unit"]
    example = next(run for run in asked if needs(run))
    lines = ["  [defaults]", *(f"  {name} = ..." for name in everywhere)] if everywhere else []
    rest = [name for name in needs(example) if name not in everywhere and name != "step_unit"]
    if rest:
        lines += ["  [[run]]", f'  path = "{Path(example.path).name}"']
        lines += [f"  {name} = ..." for name in rest]
    if lines:
        console.print(Text("A pilots.toml beside the logs:\n" + "\n".join(lines)))


def _show_unread(unread: Sequence[Unread], console: Console) -> None:
    shown = [item for item in unread if item.reason not in NO_LOG]
    if shown:
        console.print(Text(f"\nNot read ({len(shown)}):"))
    for path, reason in shown[: limits.MOST_UNREAD_SHOWN]:
        console.print(Text(f"  {path}: {reason}"), soft_wrap=True)
    if len(shown) > limits.MOST_UNREAD_SHOWN:
        more = len(shown) - limits.MOST_UNREAD_SHOWN
        console.print(Text(f"  ... and {more} more; --json lists all"))
    others = len(unread) - len(shown)
    if others:
        console.print(Text(f"{others} other files hold no log (configs, code, weights, ...)."))


def explain(inspection: Inspection, console: Console) -> None:
    """Print for each run which keys were read and how each setting was reached."""
    for run in inspection.runs:
        console.print(Text(f"\n{run.id}", style="bold"), Text(f"({run.path})"), soft_wrap=True)
        framework = f", keys of {run.framework}" if run.framework else ""
        _block(console, "Format", [f"{run.format}{framework}"])
        _block(console, "Settings", list(run.derivations.values()))
        defaults = run.hyperparameters.assumptions()
        _block(console, "Assumed", [*run.assumptions, *defaults])
        _block(console, "Read", [f"{name} <- {key}" for name, key in run.keys_read.items()])
        if run.parts:
            _block(console, "Parts of the reward", [", ".join(run.parts)])
        reasons = Counter(run.missing.values())
        _block(
            console,
            "Missing",
            [
                f"{reason}: {', '.join(n for n, why in run.missing.items() if why == reason)}"
                for reason in reasons
            ],
        )
        _block(console, "Understood, not needed", [", ".join(run.keys_understood)])
        _block(console, "Not understood", [", ".join(run.keys_ignored)])
        _block(console, "Warnings", list(run.warnings))
        _block(console, "Still needed", [f"{n}: {WHY[n]}" for n in needs(run)])


def _block(console: Console, title: str, lines: Sequence[str]) -> None:
    shown = [line for line in lines if line]
    for place, line in enumerate(shown):
        head = f"  {title + ':':<24}" if place == 0 else " " * 26
        console.print(Text(head + line), soft_wrap=True)
