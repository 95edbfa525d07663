"""What a folder of logs holds, as a table for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.cli.terminal import table
from advisor.common import Words
from advisor.diagnosis import JUDGES, silent_share
from advisor.runs import Inspection, PilotRun, Trainer, is_source
from advisor.text import counted

MOST_SHOWN = 12  # Lines of a kind that are shown; the others are counted
COLUMNS = ("run", "model", "size", "task", "G", "lr", "K", "steps", "reward", "lacks")
TEXTS = {"run": 20, "model": 10, "task": 6, "lacks": 16}  # And to how many characters they are cut
PIPED = 120  # Width of the table where no terminal has one

LACKED = {
    "learning_rate": "lr",
    "group_size": "G",
    "prompts_per_step": "prompts",
    "parameters": "size",
    "minibatches_per_refresh": "minibatches",
    "epochs_per_refresh": "epochs",
}
"""Settings in a word, as the columns name them; what is to be pasted has the whole name."""


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


def runs_table(runs: Sequence[PilotRun], console: Console) -> Table:
    """Table of runs; what does not fit is cut in the middle, or is named once in the title."""
    copies = sum(run.copy_of is not None for run in runs)
    title = [counted(len(runs), "run") + (f", {copies} of them copies" if copies else "")]
    groups: dict[object, list[PilotRun]] = {}
    for place, run in enumerate(runs):
        cells = _cells([run])
        key = (run.id.rpartition("/")[0], *cells[1:7], cells[9])
        groups.setdefault(key if len(runs) > 30 else place, []).append(run)
    rows = [_cells(group) for group in groups.values()]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    limit = console.width if console.is_terminal else PIPED
    if rows and _width(columns) > limit:
        title += _shared_by_all(columns, [group[0].id for group in groups.values()])
        if _width(columns) > limit:
            _cut(columns, limit)
            title.append("names cut, whole with --explain")
    numbers = [name for name in columns if name not in TEXTS]
    found = table(
        [*columns], zip(*columns.values(), strict=True), right=numbers, title="; ".join(title)
    )
    found.padding = (0, 1, 0, 0)  # between columns alone
    return found


def _width(columns: dict[str, list[str]]) -> int:
    """Characters of a line of the table."""
    return sum(max(map(len, (name, *cells))) + 2 for name, cells in columns.items()) + 1


def _shared_by_all(columns: dict[str, list[str]], ids: Sequence[str]) -> list[str]:
    """Parts of the title for what all rows share, which leaves the columns."""
    parts = []
    head, tail = shared(ids)
    if head or tail:
        parts.append(f"named {head}...{tail}")
        columns["run"] = [
            cell.replace(own, own[len(head) : len(own) - len(tail)], 1)
            for cell, own in zip(columns["run"], ids, strict=True)
        ]
    columns["model"] = [cell.rpartition("/")[2] for cell in columns["model"]]
    for name in ("model", "size", "task", "G", "lr", "K"):
        if len(set(columns[name])) == 1:
            cell = columns.pop(name)[0]
            parts += [] if cell == "-" else [f"{name} {cell}"]
    lacks = [cell.split(", ") for cell in columns["lacks"]]
    common = [word for word in lacks[0] if word != "-" and all(word in own for own in lacks)]
    if common:
        parts.append(f"all lack {', '.join(common)}")
        rest = [[word for word in own if word not in common] for own in lacks]
        columns["lacks"] = [", ".join(own) or "-" for own in rest]
        if not any(rest):
            columns.pop("lacks")
    return parts


def _cut(columns: dict[str, list[str]], limit: int) -> None:
    """Cut texts in the middle, the longest first, until a line fits; or else drop columns."""
    most = {name: max(map(len, columns[name])) for name in TEXTS if name in columns}
    for _ in range(_width(columns) - limit):
        name = max(most, key=lambda one: most[one] - TEXTS[one])
        most[name] = max(most[name] - 1, TEXTS[name])
    for name, width in most.items():
        columns[name] = _shortened(columns[name], width)
    for name in ("task", "model", "lacks"):
        if _width(columns) > limit:
            columns.pop(name, None)


def _shortened(cells: Sequence[str], most: int) -> list[str]:
    """Cells of a given width at most, cut where the fewest of them become equal."""

    def cut(cell: str, kept: int) -> str:
        name, more = re.fullmatch(r"(.*?)((?: and \d+ more)?)", cell, re.DOTALL).groups()  # type: ignore[union-attr]
        over = len(cell) - most
        return cell if over <= 0 else f"{name[:kept]}…{name[kept + over + 1 :]}{more}"

    middle = most // 2
    places = sorted(range(3, most - 4), key=lambda kept: abs(kept - middle)) or [middle]
    tried = ([cut(cell, kept) for cell in cells] for kept in places)
    return max(tried, key=lambda made: len(set(made)))


def shared(names: Sequence[str]) -> tuple[str, str]:
    """Long beginning and end that all names share, cut where words do."""
    if len(set(names)) < 2:
        return "", ""
    head = _common(names)
    head = head[: max(head.rfind(sign) for sign in "/_-. ") + 1]
    tail = _common([name[len(head) :][::-1] for name in names])
    tail = tail[: max(tail.rfind(sign) for sign in "/_-. :") + 1][::-1]
    is_whole = all(len(name) > len(head) + len(tail) for name in names)
    return (head if len(head) > 8 else "", tail if len(tail) > 8 else "") if is_whole else ("", "")


def _common(names: Sequence[str]) -> str:
    """Longest beginning of all names: of the first and the last in order."""
    first, last = min(names), max(names)
    return first[: next((at for at, sign in enumerate(first) if last[at : at + 1] != sign), None)]


def _cells(runs: Sequence[PilotRun]) -> list[str]:
    """Cells of one run, or of several that differ in their lengths and rewards."""
    run, settings = runs[0], runs[0].hyperparameters
    if run.copy_of is not None:
        lacks = f"copy of {run.copy_of}"
    elif run.is_eval_only:
        lacks = "evaluations only"
    else:
        lacks = ", ".join(LACKED.get(name, name) for name in run.needs) or "-"
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
        not 0 <= max(np.nanmax(run.reward) for run in own) <= 1,
        inspection.unused_configs,
    )


def _why_flat(runs: Sequence[PilotRun]) -> str:
    """What kind of standstill runs show whose rewards did not move beyond their noise."""
    if all(run.constant_reward is not None or not np.any(run.reward) for run in runs):
        return "constant"
    if all(run.is_at_floor for run in runs):
        return "floor"
    if all(_is_silent(run) for run in runs):
        return "silent"
    return "short" if all(JUDGES["too_short"](run).kind == "few" for run in runs) else "noise"


def _is_silent(run: PilotRun) -> bool:
    """Whether nearly all groups have equal rewards; without their share, in nearly all rows."""
    found = silent_share(run)
    middle = np.median if "silent_group_share" in run.series else np.mean
    return found is not None and bool(middle(found.values) > 0.9)


WORDS = Words("advisor.cli", "inspect.txt.j2", counted=counted)


def _say(console: Console, paragraph: str, *of: Any, is_apart: bool = True) -> None:
    """Print a paragraph of ``inspect.txt.j2``, if it says anything."""
    if text := WORDS(paragraph, *of):
        console.print(Text("\n" * is_apart + text), soft_wrap=True)


def _adapter_assumed(runs: Sequence[PilotRun]) -> list[str]:
    """Lines for an adapter that no log states, and for its rank: a config needs it."""
    lines: list[str] = []
    asked = [run for run in runs if run.may_be_lora]
    if any(run.parameters is None for run in asked):
        lines.append('  # adapter = ...  # "lora" or "full": this rate or name is typical of LoRA')
    ranked = [run for run in runs if run.hyperparameters.adapter == "lora"] + asked
    unknown = [run for run in ranked if run.hyperparameters.adapter_rank is None]
    if unknown:
        name = Trainer.named(unknown[0].framework).words_for("adapter_rank")
        told = "of a LoRA adapter: the config to launch needs it" + (f"; {name}" if name else "")
        lines.append(f"  # adapter_rank = ...  # {told}")
    return lines


def _bounds_assumed(runs: Sequence[PilotRun]) -> list[str]:
    """Lines for the bounds of the reward, where no log states them: they decide the plateau."""
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
