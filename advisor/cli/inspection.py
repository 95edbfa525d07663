"""What a folder of logs holds, as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.common import Words
from advisor.runs import Inspection, PilotRun, Trainer, is_source
from advisor.text import counted

MOST_SHOWN = 12  # Lines of a kind that are shown; the others are counted


def show(found: Inspection, console: Console, *, quiet: bool = False) -> None:
    """Print the runs and, unless quiet, what they lack and what was not read."""
    copies = sum(run.copy_of is not None for run in found.runs)
    title = counted(len(found.runs), "run") + (f", {copies} of them copies" if copies else "")
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE)
    for name in ("run", "model", "size", "task", "G", "lr", "K", "steps", "reward", "lacks"):
        is_number = name in ("size", "G", "lr", "K", "steps", "reward")
        side: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(name, justify=side, overflow="fold", no_wrap=is_number)
    ids = [run.id for run in found.runs]
    is_narrow = console.is_terminal and max(map(len, ids), default=0) > console.width - 60
    head, tail = _shared(ids) if is_narrow else ("", "")
    if head or tail:
        table.title = f"{title}, named {head}...{tail}"
    groups: dict[object, list[PilotRun]] = {}
    for place, run in enumerate(found.runs):
        cells = _cells([run])
        key = (run.id.rpartition("/")[0], *cells[1:7], cells[9])
        # Runs from which on those that are alike share a row.
        groups.setdefault(key if len(found.runs) > 30 else place, []).append(run)
    for group in groups.values():
        name, *cells = _cells(group)
        own = group[0].id
        short = own[len(head) : len(own) - len(tail)]
        table.add_row(*map(Text, (name.replace(own, short, 1), *cells)))
    if found.runs:
        if not console.is_terminal:  # nobody reads names over several lines in a file
            wide = console.options.update(max_width=10_000)
            console.width = max(console.width, table.__rich_measure__(console, wide).maximum)
        console.print(table)
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


def _shared(names: Sequence[str]) -> tuple[str, str]:
    """Long beginning and end that all names share, cut where words do."""
    if len(names) < 2:
        return "", ""
    # Of the first and the last in order what all share.
    first, last = min(names), max(names)
    head = first[: next((at for at, sign in enumerate(first) if last[at : at + 1] != sign), 0)]
    head = head[: max(head.rfind(sign) for sign in "/_-. ") + 1]
    turned = [name[len(head) :][::-1] for name in names]
    first, last = min(turned), max(turned)
    tail = first[: next((at for at, sign in enumerate(first) if last[at : at + 1] != sign), 0)]
    tail = tail[: max(tail.rfind(sign) for sign in "/_-. :") + 1][::-1]
    is_whole = all(len(name) > len(head) + len(tail) for name in names)
    return (head if len(head) > 8 else "", tail if len(tail) > 8 else "") if is_whole else ("", "")


def _cells(runs: Sequence[PilotRun]) -> list[str]:
    """Cells of one run, or of several that differ in their lengths and rewards."""
    run, settings = runs[0], runs[0].hyperparameters
    if run.copy_of is not None:
        lacks = f"copy of {run.copy_of}"
    elif run.is_eval_only:
        lacks = "evaluations only"
    else:
        lacks = ", ".join(run.needs) or "-"
    units = {"refresh": " refreshes", "unknown": " (?)"}
    steps = ((each.eval_step if each.is_eval_only else each.step, each) for each in runs)
    texts = {f"{step[-1]:.0f}{units.get(each.step_unit, '')}" for step, each in steps}
    lengths = sorted(texts, key=lambda text: (len(text), text))
    ends = (each.reward_ends or each.eval_ends for each in runs)
    found = [both for both in ends if both]
    sides = [f"{min(side):.2f}..{max(side):.2f}" for side in zip(*found, strict=True)]
    mark = ""
    if len(runs) == 1:
        sides = [f"{value:.2f}" for both in found for value in both]
        mark = "" if run.reward_ends else " (held out)"
    return [
        run.id + (f" and {len(runs) - 1} more" if len(runs) > 1 else ""),
        run.model or "-",
        "-" if run.parameters is None else _size(run.parameters),
        run.task or "-",
        str(settings.group_size or "-"),
        "-" if settings.learning_rate is None else f"{settings.learning_rate:.3g}",
        str(settings.refresh_interval or "-"),
        lengths[0] if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}",
        " -> ".join(sides) + mark if sides else "-",
        lacks,
    ]


def _size(parameters: float) -> str:
    for unit, scale in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if parameters >= scale:
            return f"{parameters / scale:.3g}{unit}"
    return f"{parameters:.0f}"


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
