"""TRL, and the trainers that keep its names: Unsloth and ms-swift."""

from __future__ import annotations

from dataclasses import replace

from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.registry import read_trainer
from advisor.runs.trainers.table_files import read_data
from advisor.runs.trainers.trl import console, export, swift, trainer_state
from advisor.runs.trainers.trl.settings import derive


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


TRAINER = read_trainer(
    "trl",
    readers=(trainer_state.READER, swift.READER, console.READER),
    export=export.render,
    derive=derive,
)
KEY_TABLE = TRAINER.keys[0]
TRAINER = replace(TRAINER, keys=(KEY_TABLE, _asynchronous(KEY_TABLE)))
