"""A trainer that does not exist, in one folder: what a new trainer has to bring."""

from __future__ import annotations

from advisor.runs import Export, Trainer
from made_up import console, export
from made_up.keys import KEY_TABLE

TRAINER = Trainer(
    name=KEY_TABLE.name,
    keys=(KEY_TABLE,),
    readers=(console.READER,),
    export=Export("made-up", "made-up (TOML)", "made_up.toml", export.render),
    setting_names={"learning_rate": "pace", "group_size": "siblings"},
    recipes={"made-up defaults": {"learning_rate": 2e-6, "group_size": 6}},
    paste=lambda settings: f"pace={settings.learning_rate!r}, siblings={settings.group_size}",
)
