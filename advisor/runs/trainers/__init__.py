"""What is known of each trainer: keys, settings, log readers, export and names of settings.

To add one, write its table in `data` and a module or folder with its `TRAINER`, and register it.
"""

from __future__ import annotations

from advisor.runs.trainers import counted, generic, openrlhf, tables_only, trl, verl
from advisor.runs.trainers.derived import Derived as Derived
from advisor.runs.trainers.export import Export as Export
from advisor.runs.trainers.exported import exports
from advisor.runs.trainers.key_table import KeyTable as KeyTable
from advisor.runs.trainers.key_table import plain as plain
from advisor.runs.trainers.key_table import spellings as spellings
from advisor.runs.trainers.registry import Trainer as Trainer
from advisor.runs.trainers.registry import add_export, read_trainer
from advisor.runs.trainers.registry import all_key_tables as all_key_tables
from advisor.runs.trainers.registry import key_tables as key_tables
from advisor.runs.trainers.registry import register as register
from advisor.runs.trainers.registry import trainers as trainers
from advisor.runs.trainers.registry import unregister as unregister

for _trainer in (trl.TRAINER, verl.TRAINER, openrlhf.TRAINER, *tables_only.TRAINERS):
    register(_trainer)
# Of these no settings are read.
register(read_trainer("slime", readers=(counted.READER,)))
for _name in ("skyrl", "areal", "open_instruct"):
    register(read_trainer(_name))
register(generic.TRAINER)

# For these a configuration is written; of their logs no more than tables is read.
for _name, _export in exports().items():
    add_export(_name, _export)
