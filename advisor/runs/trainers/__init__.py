"""One folder per trainer: keys, settings, log readers, export and names of settings.

To add a trainer, write its folder with a `Trainer` and register it. Trainers of which only tables
are read are rows of `table_only`.
"""

from __future__ import annotations

from advisor.runs.trainers import (
    cs336,
    generic,
    openrlhf,
    prime_rl,
    table_only,
    tinker,
    trl,
    verl,
)
from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.key_table import KeyTable, plain, spellings
from advisor.runs.trainers.registry import (
    all_key_tables,
    find_trainer,
    key_tables,
    register,
    setting_name,
    trainers,
    unregister,
)
from advisor.runs.trainers.trainer import Export, Trainer

for _folder in (trl, verl, openrlhf, prime_rl, tinker, cs336):
    register(_folder.TRAINER)
for _trainer in (*table_only.TRAINERS, generic.TRAINER):
    register(_trainer)

__all__ = [
    "Derived",
    "Export",
    "KeyTable",
    "Trainer",
    "all_key_tables",
    "find_trainer",
    "key_tables",
    "plain",
    "register",
    "setting_name",
    "spellings",
    "trainers",
    "unregister",
]
