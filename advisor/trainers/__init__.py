"""One folder per trainer: keys, settings, log readers, export and names of settings.

To add a trainer, write its folder with a `Trainer` and register it.
"""

from __future__ import annotations

from advisor.trainers import (
    areal,
    cs336,
    generic,
    open_instruct,
    openrlhf,
    prime_rl,
    skyrl,
    slime,
    tinker,
    trl,
    verl,
)
from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable, plain, spellings
from advisor.trainers.registry import (
    all_key_tables,
    find_trainer,
    key_tables,
    register,
    setting_name,
    trainers,
    unregister,
)
from advisor.trainers.trainer import Export, Trainer

for _trainer in (
    *(trl, verl, openrlhf, prime_rl, tinker, cs336),
    *(skyrl, slime, areal, open_instruct, generic),
):
    register(_trainer.TRAINER)

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
