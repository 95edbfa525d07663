"""The table of runs that ``inspect`` prints: one line a run, as wide as the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.runs import PilotRun
from advisor.text import counted

COLUMNS = ("run", "model", "size", "task", "G", "lr", "K", "steps", "reward", "lacks")
NUMBERS = ("size", "G", "lr", "K", "steps", "reward")
GROUPED = 30  # Runs from which on those that are alike share a row
PIPED = 120  # Columns of text where no terminal says how many
SHORTEST = {"run": 20, "model": 10, "task": 6, "lacks": 16}
"""Characters that cutting leaves of a cell; those of numbers are never cut."""

DROPPED = ("task", "model", "lacks")  # In this order where cutting is not enough

SHORT = {
    "learning_rate": "lr",
    "group_size": "G",
    "prompts_per_step": "prompts",
    "parameters": "size",
    "minibatches_per_refresh": "minibatches",
    "epochs_per_refresh": "epochs",
    "step_unit": "unit of steps",
}
"""What a run lacks, in a word; the paragraph below the table has the names to paste."""


def runs_table(runs: Sequence[PilotRun], console: Console) -> Table:
    """Table of runs; what does not fit is cut in the middle, or is said once in the title."""
    copies = sum(run.copy_of is not None for run in runs)
    title = [counted(len(runs), "run") + (f", {copies} of them copies" if copies else "")]
    groups: dict[object, list[PilotRun]] = {}
    for place, run in enumerate(runs):
        cells = _cells([run])
        key = (run.id.rpartition("/")[0], *cells[1:7], cells[9])
        groups.setdefault(key if len(runs) > GROUPED else place, []).append(run)
    rows = [_cells(group) for group in groups.values()]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    limit = console.width if console.is_terminal else PIPED
    if rows and _width(columns) > limit:
        title += _said_once(columns, [group[0].id for group in groups.values()])
        if _width(columns) > limit:
            _cut(columns, limit)
            title.append("names cut, whole with --explain")
    # Padding between columns alone.
    table = Table(
        title=Text("; ".join(title)),
        title_justify="left",
        header_style="bold",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
    )
    for name in columns:
        is_number = name in NUMBERS
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _width(columns: dict[str, list[str]]) -> int:
    """Characters of a line of the table."""
    return sum(max(map(len, (name, *cells))) + 2 for name, cells in columns.items()) + 1


def _said_once(columns: dict[str, list[str]], ids: Sequence[str]) -> list[str]:
    """Parts of the title for what all rows share, which leaves the columns."""
    said = []
    head, tail = shared(ids)
    if head or tail:
        said.append(f"named {head}...{tail}")
        columns["run"] = [
            cell.replace(own, own[len(head) : len(own) - len(tail)], 1)
            for cell, own in zip(columns["run"], ids, strict=True)
        ]
    columns["model"] = [cell.rpartition("/")[2] for cell in columns["model"]]
    for name in ("model", "size", "task", "G", "lr", "K"):
        if len(set(columns[name])) == 1:
            cell = columns.pop(name)[0]
            said += [] if cell == "-" else [f"{name} {cell}"]
    lacks = [cell.split(", ") for cell in columns["lacks"]]
    common = [word for word in lacks[0] if word != "-" and all(word in own for own in lacks)]
    if common:
        said.append(f"all lack {', '.join(common)}")
        rest = [[word for word in own if word not in common] for own in lacks]
        columns["lacks"] = [", ".join(own) or "-" for own in rest]
        if not any(rest):
            columns.pop("lacks")
    return said


def _cut(columns: dict[str, list[str]], limit: int) -> None:
    """Cut texts in the middle, the longest first, until a line fits; then drop what is longest."""
    most = {name: max(map(len, columns[name])) for name in SHORTEST if name in columns}
    over = _width(columns) - limit
    while over > 0 and any(most[name] > SHORTEST[name] for name in most):
        name = max(most, key=lambda one: most[one] - SHORTEST[one])
        most[name] -= 1
        over -= 1
    for name, width in most.items():
        columns[name] = _shortened(columns[name], width)
    for name in DROPPED:
        if _width(columns) > limit:
            columns.pop(name, None)


def _shortened(cells: Sequence[str], most: int) -> list[str]:
    """Cells of so many characters at most, cut where the fewest of them become alike."""

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
        lacks = ", ".join(SHORT.get(name, name) for name in run.needs) or "-"
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
