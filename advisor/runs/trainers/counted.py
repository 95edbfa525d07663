"""Consoles with a dict or a block of lines behind a counter: slime, miles, OpenRLHF, torchforge.

In those of TRL's PPO and SkyRL the counter is within the dict, which may span lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.limits import limits
from advisor.runs.logfiles.log_file import Line, LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader, TableBuilder
from advisor.runs.logfiles.parsing import cell_number, find_dicts, is_number, lines_with
from advisor.runs.trainers.key_table import DATA
from advisor.runs.trainers.keys import show_keys
from advisor.text import compiled

PATTERNS = compiled(DATA["counted"])

UNCOUNTED = ("'objective/scores'", "'reward/avg_raw_reward'")
"""Keys of PPO and of SkyRL, whose dicts count steps themselves."""

COUNTERS = {"Global step": "global_step", "global step": "global_step", "step": "step"}
OF_ROLLOUTS = "rollout/step"
"""Keys under which the counters stand; those of rollouts, their speed and evaluations are one."""


def claims(log: LogFile) -> bool:
    """Whether two lines of a console hold a dict, or begin a block, behind a counter."""
    dicts = (line for line in lines_with(log, "{'") if PATTERNS["dict"].search(line))
    blocks = (line for line in lines_with(log, "METRICS STEP ") if PATTERNS["block"].search(line))
    uncounted = (lines_with(log, sign) for sign in UNCOUNTED)
    return any(len([*itertools.islice(found, 2)]) == 2 for found in (dicts, blocks, *uncounted))


def _joined(log: LogFile) -> Iterator[Line]:
    """Lines without colours, those of one dict as one."""
    held = ""
    for line in log.lines(strict=False):
        text = held + PATTERNS["ansi"].sub("", line.text)
        is_open = text.rfind("{'") > text.rfind("}") and text.rstrip().endswith(",")
        held = text if is_open and len(text) < limits.longest_line else ""
        if not held:
            yield line._replace(text=text)


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the run of a console; rows of one counter and count are one."""
    (log,) = logs
    rows, at = list[tuple[int, dict[str, Any]]](), dict[tuple[str, int], int]()
    block: dict[str, Any] | None = None
    for line in _joined(log):
        text = line.text
        counter, start = PATTERNS["dict"].search(text), PATTERNS["block"].search(text)
        found = counter or start
        if found is None and any(sign in text for sign in UNCOUNTED):
            rows += [(line.number, _exact(printed.cells)) for printed in find_dicts(text)]
            continue
        if found is None:
            cell = PATTERNS["cell"].search(text) if block is not None else None
            if block is not None and cell is not None and is_number(cell[2]):
                block[cell[1]] = cell[2]
            continue
        name = COUNTERS.get(counter[1], OF_ROLLOUTS) if counter else "step"
        count = int(found[2] if counter else found[1])
        if counter and line.is_open:  # its last number may have lost digits
            continue
        if any(known == name and number > count for known, number in at):
            at = {place: row for place, row in at.items() if place[0] != name}  # started again
        if (name, count) not in at:
            at[name, count] = len(rows)
            rows.append((line.number, {name: count}))
        cells = rows[at[name, count]][1]
        block = cells if start else None
        for printed in find_dicts(text[found.end() :]) if counter else ():
            cells.update({key: cell for key, cell in printed.cells.items() if is_number(cell)})
            break
    facts = _on_rollouts([cells for _, cells in rows])
    builder = TableBuilder(log.path)
    for number, cells in rows:
        builder.add(number, cells)
    table = builder.build()
    if not any("reward" in key or "score" in key for key in table.keys):
        problem = f"its lines log no reward (keys seen: {show_keys(table.keys)})"
        advice = "Give the log of the process that makes rollouts, or the run's W&B or TensorBoard"
        raise InputError(problem, path=log.path, key="reward", advice=advice)
    is_openrlhf = any("global_step" in cells for _, cells in rows)
    yield Logged(table, framework="OpenRLHF" if is_openrlhf else None, facts=facts)


def _exact(cells: dict[str, str]) -> dict[str, Any]:
    """Cells without a learning rate that was rounded to 0."""
    rounded = PATTERNS["rounded"].fullmatch
    return {k: v for k, v in cells.items() if not (rounded(k) and cell_number(v) == 0)}


def _on_rollouts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count optimizer steps by the rollouts that they learn from, and how many each has."""
    rollouts = [row[OF_ROLLOUTS] for row in rows if OF_ROLLOUTS in row]
    steps = [row["step"] for row in rows if "step" in row]
    if not rollouts or not steps:
        return {}
    times = (max(steps) + 1) / (max(rollouts) + 1)
    # The last rollout may not be learnt from yet.
    interval = max(1, round(times))
    if abs(times - interval) * (max(rollouts) + 1) > interval + 0.5:
        return {}
    for row in rows:
        if "step" in row:
            row[OF_ROLLOUTS] = row.pop("step") // interval
    return {"minibatches_per_refresh": interval, "epochs_per_refresh": 1}


READER = Reader("console of dicts behind a counter", claims, read, claim=Claim.LINE)
