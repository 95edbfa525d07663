"""Notebooks: progress tables and printed rows in the outputs, settings in the code above them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles import limits
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.notebook_code import NotebookCode
from advisor.runs.logfiles.notebook_table import ProgressTable, find_tables
from advisor.runs.logfiles.parsing import parse_json
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.derived import number
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.registry import trainer_readers
from advisor.runs.trainers.trl.console import read_console
from advisor.runs.trainers.trl.printed_settings import PLANNED, PrintedSettings

REWARD = re.compile(
    rb"<th>\s{0,8}[Rr]eward\s{0,8}</th>|'reward': ?'?(?:[-+.\d]|nan)"
    rb"|\bstep:\d{1,9} - [\w.@+-]+/|\b(?:[Ss]tep|[Ii]ter\w*)\b[^\"\n\\]{1,200}"
    rb"[Rr]eward\w{0,20} ?[:=] ?[-+]?\d"
)
CONSOLES = (Claim.LINE, Claim.PAIRS)
"""What other trainers print, which a cell may have run."""

TOLD = {
    "per_device_train_batch_size": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "max_steps": PLANNED,
}
"""Settings that a banner repeats as the trainer uses them, and under which name."""


def claims(log: LogFile) -> bool:
    """Whether a file is a notebook in whose outputs rewards stand."""
    if log.suffix != ".ipynb":
        return False
    try:
        with log.open() as stream:
            rest, left = b"", limits.MOST_NOTEBOOK_BYTES
            while left > 0 and (block := stream.read(limits.BLOCK_BYTES)):
                if REWARD.search(rest + block):
                    return True
                rest, left = block[-200:], left - len(block)
    except InputError:
        pass
    return False


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a notebook."""
    (log,) = logs
    text = log.text(give="Save the notebook with its outputs", limit=limits.MOST_NOTEBOOK_BYTES)
    notebook = parse_json(text, log.path)
    code = NotebookCode()
    runs: list[Logged] = []
    for cell in _code_cells(notebook):
        code.feed(_joined(cell.get("source", cell.get("input"))))
        runs += _Outputs(cell, log, columns, dict(code.settings)).runs()
    if not runs:
        raise InputError(
            "no output of the notebook shows a reward for each step",
            path=log.path,
            advice="Save it with the outputs of its training cell, or give the trainer_state.json",
        )
    if len(runs) == 1:
        yield runs[0]
        return
    for place, run in enumerate(runs, start=1):
        yield Logged(**{**vars(run), "label": str(place)})


class _Outputs:
    """Outputs of one code cell."""

    def __init__(
        self, cell: dict[str, Any], log: LogFile, columns: Columns, settings: dict[str, Any]
    ) -> None:
        self._log, self._columns, self._settings = log, columns, settings
        self._reward = columns.keys.get("reward", "reward")
        self._outputs = [o for o in _listed(cell.get("outputs")) if isinstance(o, dict)]

    def runs(self) -> list[Logged]:
        tables: list[ProgressTable] = []
        for output in self._outputs:
            for table in find_tables(_html(output)):
                # The table is drawn anew with each row, so only its last state counts.
                older = [i for i, kept in enumerate(tables) if table.goes_on(kept)]
                if older:
                    tables[older[0]] = table
                elif len(tables) < 50 and not any(t.goes_on(table) for t in tables):
                    tables.append(table)
        shown = [t for t in tables if t.has_reward or self._reward in t.keys]
        if not shown:
            return self._from_console()
        printed = PrintedSettings()
        for _, line in self._lines():
            printed.feed(line)
        return [self._from_table(table, printed) for table in shown]

    def _lines(self) -> Iterator[tuple[int, str]]:
        place = 0
        for output in self._outputs:
            for line in _plain(output).split("\n"):
                place += 1
                yield place, line

    def _from_table(self, table: ProgressTable, printed: PrintedSettings) -> Logged:
        builder = TableBuilder(self._log.path, kept_keys(self._columns))
        builder.seen(key for key in table.keys if key)
        for place, row in enumerate(table.rows, start=1):
            builder.add(place, table.cells(row))
        planned = table.planned_steps or printed.planned_steps
        # Outputs are copied between notebooks: a banner of another length is of another run.
        is_own = printed.planned_steps in (None, planned)
        told = dict(printed.settings) if is_own else {}
        if planned is not None:
            told[PLANNED] = planned
        # The table has a column for the KL term where it is computed: its coefficient is not 0.
        has_no_kl = "reward_std" in table.keys and "kl" not in table.keys
        return Logged(
            builder.build(),
            framework="TRL",
            settings={**self._settings, **told},
            facts={"kl_coefficient": 0.0} if has_no_kl else {},
            planned_steps=planned,
            warnings=self._contradictions(told),
        )

    def _from_console(self) -> list[Logged]:
        if not any("{'" in _plain(output) for output in self._outputs):
            return self._from_others()
        logged = []
        for run in read_console(self._lines, self._log.path, self._columns):
            if run.rewards:
                warnings = self._contradictions(run.settings)
                told = run.logged(None)
                settings = {**self._settings, **run.settings}
                logged.append(Logged(**{**vars(told), "settings": settings, "warnings": warnings}))
        return logged or self._from_others()

    def _from_others(self) -> list[Logged]:
        """Runs of other trainers, whose console the cell shows."""
        raw = "\n".join(line for _, line in self._lines()).encode("utf-8", "replace")
        if not raw.strip():
            return []
        # Messages call it by the notebook; that its name has no ending lets all consoles try it.
        path = self._log.path.with_suffix("")
        console = LogFile(path, lambda: io.BytesIO(raw), len(raw))
        printed = (reader for reader in trainer_readers() if reader.claim in CONSOLES)
        for reader in sorted(printed, key=lambda reader: reader.claim):
            if reader.claims(console):
                runs = reader.read([console], self._columns)
                return [
                    Logged(**{**vars(run), "settings": {**self._settings, **run.settings}})
                    for run in runs
                ]
        return []

    def _contradictions(self, printed: dict[str, Any]) -> tuple[str, ...]:
        """Settings of the code that the output belies: the cell was edited after it ran."""
        said = []
        for name, banner in TOLD.items():
            coded, used = number(self._settings.get(name)), number(printed.get(banner))
            # Unsloth raises the batch of a device to a group, and says so.
            raised = name.startswith("per_device") and used == number(
                self._settings.get("num_generations")
            )
            if coded is None or used is None or coded in (used, -1) or raised:
                continue
            said.append(f"{name} {coded:g} in the code, {used:g} in its output")
        if not said:
            return ()
        return (
            f"the code was changed after it ran ({'; '.join(said)}): what the output does not "
            "tell, as num_generations, may have been changed too",
        )


def _code_cells(notebook: Any) -> Iterator[dict[str, Any]]:
    """Code cells of format 4, or of format 3, which keeps them in worksheets."""
    if not isinstance(notebook, dict):
        return
    for holder in (notebook, *_listed(notebook.get("worksheets"))):
        for cell in _listed(holder.get("cells")) if isinstance(holder, dict) else ():
            if isinstance(cell, dict) and cell.get("cell_type") == "code":
                yield cell


def _html(output: dict[str, Any]) -> str:
    data = output.get("data")
    shown = data.get("text/html") if isinstance(data, dict) else output.get("html")
    return _joined(shown)


def _plain(output: dict[str, Any]) -> str:
    """Text of an output, unless it only stands in for a richer one."""
    return _joined(output.get("text")) if output.get("output_type") == "stream" else ""


def _joined(text: Any) -> str:
    """Text that a notebook keeps whole or as a list of lines."""
    if isinstance(text, str):
        return text
    return "".join(part for part in _listed(text) if isinstance(part, str))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


READER = Reader("notebook with progress tables", claims, read)
