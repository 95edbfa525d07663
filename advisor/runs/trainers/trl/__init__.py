"""TRL, and the trainers that keep its names: Unsloth and ms-swift."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import yaml

from advisor.errors import InputError
from advisor.runs.logfiles.console_text import find_dicts, find_in_console, is_number
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Columns, Logged, Reader
from advisor.runs.logfiles.parsing import json_rows
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.derived import as_bytes, read_data
from advisor.runs.trainers.export import Launch, fill_template, per_device, words_for
from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.registry import read_trainer
from advisor.runs.trainers.trl import console, trainer_state
from advisor.runs.trainers.trl.console import logged_runs
from advisor.runs.trainers.trl.settings import PATTERNS, PrintedSettings, derive
from advisor.runs.trainers.trl.trainer_state import SUMMARY_KEY


def _asynchronous(table: KeyTable) -> KeyTable:
    """Keys of the asynchronous trainer; listed after TRL's, which win ties."""
    data = read_data("trl")["asynchronous"]
    return replace(
        table,
        name="TRL async",
        marks=(*table.marks, *data["marks"]),
        # Without a reference model, 'kl' is that of the policy to the one that made the sample.
        series={
            **{name: keys for name, keys in table.series.items() if name != "kl"},
            "policy_kl": ("kl",),
        },
        understood=(*table.understood, *data["marks"], "ratio"),
        setting_marks=tuple(data["setting_marks"]),
    )


def render(launch: Launch, model: str | None) -> str:
    """Write the arguments as YAML, with the arithmetic in comments."""
    limit, (batch, accumulation) = launch.settings.max_prompt_length, per_device(launch)
    return fill_template(
        "trl",
        launch,
        model=shlex.quote(" ".join(model.split())) if model else "MODEL",
        adapter=_adapter(launch),
        batch=batch,
        accumulation=accumulation,
        rounds=accumulation * launch.minibatches,
        named_devices="1 device" if launch.devices == 1 else f"{launch.devices} devices",
        longest=f"the {limit} tokens of your pilots" if limit else "what your pilots had at most",
        arguments=yaml.safe_dump(arguments(launch), sort_keys=False).rstrip("\n"),
    )


def arguments(launch: Launch) -> dict[str, Any]:
    """Arguments of ``GRPOConfig``."""
    launch.check_synchronous("TRL")
    launch.check_corrected("TRL")
    settings, words = launch.settings, words_for("trl", launch.settings)
    batch, accumulation = per_device(launch)
    is_sgd, precision = settings.optimizer == "sgd", settings.precision
    found = {
        "learning_rate": launch.learning_rate,
        "num_generations": launch.group_size,
        "num_iterations": launch.epochs,
        "steps_per_generation": accumulation * launch.minibatches,
        "gradient_accumulation_steps": accumulation,
        "per_device_train_batch_size": batch,
        "max_steps": launch.steps,
        "lr_scheduler_type": words["schedule"],
        "warmup_steps": settings.warmup_steps,
        "beta": settings.kl_coefficient,
        "epsilon": settings.clip_low,
        "epsilon_high": settings.clip_high,
        "scale_rewards": settings.advantage_scaling,
        "optim": words["optimizer"],
        "logging_steps": 1,
        "optim_args": f"momentum={settings.momentum!r}" if is_sgd else None,
        "adam_beta1": None if is_sgd else settings.momentum,
        "weight_decay": 0.0 if settings.optimizer == "adam" else None,
        "max_completion_length": settings.max_completion_length,
        "loss_type": words["loss_averaging"],
        "bf16": precision and precision == "bf16",
        "fp16": precision and precision == "fp16",
    }
    return {name: value for name, value in found.items() if value is not None}


def _adapter(launch: Launch) -> str:
    """Arguments of ``ModelConfig``; capitals ask for what the pilots do not state."""
    settings = launch.settings
    if settings.adapter != "lora":
        return ""
    alpha = settings.adapter_alpha or "ALPHA"
    modules = (settings.adapter_targets or "MODULES").replace(",", " ")
    return (
        f" --use_peft --lora_r {settings.adapter_rank} --lora_alpha {alpha} "
        f"--lora_target_modules {modules}"
    )


FRACTIONS = ("global_step/max_steps", "iteration")
"""Keys of the step over the planned steps; the second is that of Megatron."""

QUOTED = [f'"{key}"' for key in FRACTIONS]


class _SwiftRow(NamedTuple):
    """A logged row, its line, and whether its end is lost."""

    number: int
    cells: Mapping[str, Any]
    is_cut: bool


def claims_swift(log: LogFile) -> bool:
    """Whether a file is a ``logging.jsonl`` or a console log of ms-swift with rewards."""
    if log.suffix == ".jsonl":
        try:
            head = log.head_text()
        except InputError:
            return False
        return b'"reward":' in head and as_bytes(PATTERNS["swift_json"]).search(head) is not None
    return find_in_console(log, b"reward", as_bytes(PATTERNS["swift_row"]), _holds_swift_row)


def _holds_swift_row(line: str) -> bool:
    return any(
        is_number(cells.get("reward")) and _place(cells) is not None for cells, _ in _rows_of(line)
    )


def read_swift(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the runs of a log of ms-swift."""
    (log,) = logs
    printed = PrintedSettings()
    notes: list[str] = []
    rows = _console_rows(log, printed)
    if log.suffix == ".jsonl":
        rows = (_SwiftRow(*row, False) for row in json_rows(log, notes, QUOTED))
    reward = columns.keys.get("reward", "reward")
    runs: list[_SwiftRun] = []
    for row in rows:
        place = _place(row.cells)
        if place is None:
            continue
        is_train = SUMMARY_KEY not in row.cells and ("loss" in row.cells or reward in row.cells)
        if not runs or (is_train and runs[-1].is_closed):
            runs.append(_SwiftRun(log, columns, dict(printed.settings), notes))
            printed.began()
        runs[-1].add(row, place, reward)
    if not runs:
        raise InputError(
            "no row tells its step ('global_step/max_steps')",
            path=log.path,
            advice="Give the logging.jsonl of the output folder",
        )
    yield from logged_runs(runs)


class _SwiftRun:
    def __init__(
        self, log: LogFile, columns: Columns, settings: dict[str, Any], notes: list[str]
    ) -> None:
        self._builder = TableBuilder(log.path, kept_keys(columns))
        self._settings, self._notes = settings, notes
        self._planned: int | None = None
        self._last: Mapping[str, Any] | None = None
        self._has_kl = False
        self.rewards = 0
        self.is_closed = False

    def add(self, row: _SwiftRow, place: tuple[int, int], reward: str) -> None:
        step, planned = place
        # Where both streams of a console are kept, or those of several nodes, rows stand twice.
        if row.cells == self._last:
            return
        self._last = row.cells
        self._planned = planned or self._planned
        self.is_closed = self.is_closed or SUMMARY_KEY in row.cells
        self.rewards += reward in row.cells
        self._has_kl = self._has_kl or "kl" in row.cells or row.is_cut
        batch = row.cells.get("global batch size")
        if batch is not None:
            self._settings.setdefault("global_batch_size", batch)
        cells = {key: cell for key, cell in row.cells.items() if key not in FRACTIONS}
        self._builder.add(row.number, {**cells, "step": step}, is_cut=row.is_cut)

    def logged(self, label: str | None) -> Logged:
        return Logged(
            self._builder.build(),
            label=label,
            framework="TRL",
            settings=self._settings,
            # As in TRL, the KL term is computed and logged when its coefficient is not zero.
            facts={} if self._has_kl or not self.rewards else {"kl_coefficient": 0.0},
            planned_steps=self._planned,
            warnings=tuple(self._notes),
        )


def _place(cells: Mapping[str, Any]) -> tuple[int, int] | None:
    """Step and planned steps of a row."""
    for key in FRACTIONS:
        value = cells.get(key)
        found = PATTERNS["fraction"].fullmatch(value) if isinstance(value, str) else None
        if found is not None:
            return int(found.group(1)), int(found.group(2))
    return None


def _console_rows(log: LogFile, printed: PrintedSettings) -> Iterator[_SwiftRow]:
    for line in log.lines(strict=False):
        found = False
        for cells, is_cut in _rows_of(line.text):
            if _place(cells) is None:
                printed.take(cells)
                continue
            found = True
            yield _SwiftRow(line.number, cells, is_cut)
        if not found:
            printed.feed(line.text)


def _rows_of(text: str) -> Iterator[tuple[dict[str, str], bool]]:
    """Cells of the rows on a line of a console, and whether the end of each is lost."""
    for row in find_dicts(text):
        yield row.cells, row.is_cut
    start = PATTERNS["megatron"].search(text)
    if start is None:
        return
    cells = {"iteration": start.group(1)}
    *whole, rest = text[start.end() :].split("|")
    for part in whole:
        key, colon, value = part.partition(":")
        if colon and is_number(value):
            cells[key.strip()] = value.strip()
    yield cells, bool(rest.strip())


SWIFT_READER = Reader("ms-swift log", claims_swift, read_swift, claim=Claim.ROW)


TRAINER = read_trainer(
    "trl",
    readers=(trainer_state.READER, SWIFT_READER, console.READER),
    export=render,
    derive=derive,
)
KEY_TABLE = TRAINER.keys[0]
TRAINER = replace(TRAINER, keys=(KEY_TABLE, _asynchronous(KEY_TABLE)))
