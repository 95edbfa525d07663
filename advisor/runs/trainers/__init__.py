"""What is known of each trainer: keys, settings, log readers, export and names of settings.

To add one, write its table in `data` and a module or folder with its `TRAINER`, and register it.
"""

from __future__ import annotations

from advisor.runs.trainers import counted, generic, openrlhf, tables_only, trl, verl
from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.export import Export
from advisor.runs.trainers.exported import exports
from advisor.runs.trainers.key_table import KeyTable, plain, spellings
from advisor.runs.trainers.registry import (
    Trainer,
    add_export,
    all_key_tables,
    key_tables,
    read_trainer,
    register,
    trainers,
    unregister,
)

for _trainer in (trl.TRAINER, verl.TRAINER, openrlhf.TRAINER):
    register(_trainer)
for _trainer in (
    tables_only.TINKER,
    tables_only.CS336,
    tables_only.NEMO_RL,
    tables_only.PRIME_RL,
    tables_only.TORCHFORGE,
):
    register(_trainer)
# Of these no settings are read.
register(read_trainer("slime", readers=(counted.READER,)))
for _name in ("skyrl", "areal", "open_instruct"):
    register(read_trainer(_name))
register(generic.TRAINER)

# For these a configuration is written; of their logs no more than tables is read.
for _name, _export in exports().items():
    add_export(_name, _export)

__all__ = [
    "Derived",
    "Export",
    "KeyTable",
    "Trainer",
    "all_key_tables",
    "key_tables",
    "plain",
    "register",
    "spellings",
    "trainers",
    "unregister",
]
