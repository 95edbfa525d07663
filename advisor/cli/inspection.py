"""What a folder of logs holds, as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from advisor.cli.runs_table import runs_table
from advisor.common import Words
from advisor.runs import Inspection, PilotRun, Trainer, is_source
from advisor.text import counted

MOST_SHOWN = 12  # Lines of a kind that are shown; the others are counted


def show(found: Inspection, console: Console, *, quiet: bool = False) -> None:
    """Print the runs and, unless quiet, what they lack and what was not read."""
    if found.runs:
        console.print(runs_table(found.runs, console))
    if quiet:
        return
    _show_needs(found, console)
    _show_left_out(found.runs, console)
    _show_unread(found, console)


def explain(found: Inspection, console: Console) -> None:
    """Print which keys were read and how each setting was reached, once for runs that agree."""
    alike: dict[tuple[tuple[str, tuple[str, ...]], ...], list[PilotRun]] = {}
    for run in found.runs:
        alike.setdefault(tuple(_blocks(run)), []).append(run)
    for blocks, runs in alike.items():
        console.print()
        for run in runs:
            console.print(Text(run.id, style="bold"), Text(f"({run.path})"), soft_wrap=True)
        for title, lines in blocks:
            for place, line in enumerate(line for line in lines if line):
                head = f"  {title + ':':<24}" if place == 0 else " " * 26
                console.print(Text(head + line), soft_wrap=True)


def _show_needs(inspection: Inspection, console: Console) -> None:
    own = inspection.train_runs
    if not own:
        return
    frozen = [run for run in own if run.frozen_since is not None]
    bounds = _bounds_assumed(own)
    _say(
        console,
        "needs",
        own,
        sum(not run.needs and run not in frozen for run in own),
        frozen,
        _why_flat(own) if inspection.is_flat else "",
        {run.constant_reward for run in own},
        Trainer.asked_of(own, [*_adapter_assumed(own), *bounds]),
        all(is_source(run.path) for run in own),  # beside which no file lies
        bounds,
        max(np.nanmax(run.reward) for run in own) > 1,
        inspection.unused_configs,
    )


def _why_flat(runs: Sequence[PilotRun]) -> str:
    """What kind of standstill runs show whose rewards did not move beyond their noise."""
    if all(run.constant_reward is not None for run in runs):
        return "constant"
    if all(run.is_at_floor for run in runs):
        return "floor"
    silent = (np.nanmedian(run.series.get("silent_group_share", 0.0)) for run in runs)
    return "silent" if all(share > 0.9 for share in silent) else "noise"


WORDS = Words("advisor.cli", "inspect.txt.j2", counted=counted)


def _say(console: Console, paragraph: str, *of: Any, is_apart: bool = True) -> None:
    """Print a paragraph of ``inspect.txt.j2``, if it says anything."""
    if text := WORDS(paragraph, *of):
        console.print(Text("\n" * is_apart + text), soft_wrap=True)


def _adapter_assumed(runs: Sequence[PilotRun]) -> list[str]:
    """Lines for an adapter that nobody told of, and for its rank: a config needs it."""
    lines: list[str] = []
    asked = [run for run in runs if run.may_be_lora]
    if any(run.parameters is None for run in asked):
        lines.append('  # adapter = ...  # "lora" or "full": a rate or a name is one of LoRA')
    ranked = [run for run in runs if run.hyperparameters.adapter == "lora"] + asked
    unknown = [run for run in ranked if run.hyperparameters.adapter_rank is None]
    if unknown:
        name = Trainer.named(unknown[0].framework).words_for("adapter_rank")
        told = "of a LoRA adapter: the config to launch needs it" + (f"; {name}" if name else "")
        lines.append(f"  # adapter_rank = ...  # {told}")
    return lines


def _bounds_assumed(runs: Sequence[PilotRun]) -> list[str]:
    """Lines for the bounds of the reward, where nobody told them: they decide the plateau."""
    if any(run.reward_ceiling is not None for run in runs):
        return []
    values = np.concatenate([run.reward[np.isfinite(run.reward)] for run in runs])
    if not values.size:
        return []
    low, high = float(values.min()), float(values.max())
    lines = [] if low >= 0 else [f"  # reward_floor = ...  # lowest logged: {low:.4g}"]
    # Percentages, most likely.
    likely = "100" if 20 < high <= 100 and low >= 0 else "..."
    why = f"the most it can be; highest logged: {high:.4g}"
    return [*lines, f"  # reward_ceiling = {likely}  # {why}"]


def _show_left_out(runs: Sequence[PilotRun], console: Console) -> None:
    """Rows and files of runs that are part of none, and runs that are known by evaluations."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for line in run.to_check:
            found.setdefault(line, []).append(run.id)
        if run.is_eval_only or run.rewards_are_held_out:
            how = "too few to fit" if run.is_eval_only else "read as rewards"
            found.setdefault(f"held-out evaluations alone, {how}", []).append(run.id)
    if found:
        _say(console, "left_out", found, MOST_SHOWN)


def _show_unread(inspection: Inspection, console: Console) -> None:
    shown, unread = inspection.unread_logs, inspection.unread
    sidecars = [item.path for item in unread if item.kind == "sidecar"]
    used = {item.path for item in unread} & inspection.configs.keys()
    names, own = Counter[str](), {run.path for run in inspection.runs}
    for path, logs in inspection.configs.items():
        names[path.name] += logs if str(path) not in own else 0
    others = len(unread) - len(shown) - len(sidecars) - len(used)
    configs = [(name, logs) for name, logs in names.items() if logs]
    of = shown, sidecars, configs, others, MOST_SHOWN
    _say(console, "unread", *of, is_apart=bool(shown))


def _blocks(run: PilotRun) -> list[tuple[str, tuple[str, ...]]]:
    """What is told of one run, by title."""
    framework = f", keys of {run.framework}" if run.framework else ""
    lacking = run.questions
    # What is asked for is not assumed.
    lines = run.hyperparameters.assumptions()
    defaults = [line for line in lines if line.partition(" = ")[0] not in lacking]
    absent: dict[str, list[str]] = {}
    in_part = []
    for name, why in run.missing.items():
        if name in run.series:
            rows = int(np.isfinite(run.series[name]).sum())
            in_part.append(f"{name}: {rows} of {run.step.size} rows ({why})")
        else:
            absent.setdefault(why, []).append(name)
    understood = [key for key in run.keys_understood if key not in run.scores]
    ignored = [key for key in run.keys_ignored if key not in run.scores]
    found = [
        ("Format", [f"{run.format}{framework}"]),
        ("Settings", list(run.derivations.values())),
        ("Assumed", [*run.assumptions, *defaults]),
        ("Read", [f"{name} <- {key}" for name, key in run.keys_read.items()]),
        ("Parts of the reward", [", ".join(run.parts)]),
        ("Other scores", [", ".join(run.scores)]),
        ("Missing", [f"{why}: {', '.join(names)}" for why, names in absent.items()]),
        ("In part", in_part),
        ("Understood, not needed", [", ".join(understood)]),
        ("Not understood", [", ".join(ignored)]),
        ("Warnings", list(run.warnings)),
        ("Still needed", [f"{name}: {why}" for name, why in lacking.items()]),
    ]
    return [(title, tuple(lines)) for title, lines in found]
