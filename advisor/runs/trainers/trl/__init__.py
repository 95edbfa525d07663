"""TRL, and the trainers that keep its names: Unsloth and ms-swift."""

from __future__ import annotations

from advisor.runs.trainers.trainer import Export, Trainer
from advisor.runs.trainers.trl import console, export, swift, trainer_state
from advisor.runs.trainers.trl.keys import ASYNC_KEY_TABLE, KEY_TABLE
from advisor.runs.trainers.trl.names import ASKED_AS, RECIPES, SETTING_NAMES, paste

TRAINER = Trainer(
    name=KEY_TABLE.name,
    keys=(KEY_TABLE, ASYNC_KEY_TABLE),
    readers=(trainer_state.READER, swift.READER, console.READER),
    export=Export("trl", "TRL (YAML)", export.FILE_NAME, export.render, export.CHECKED),
    setting_names=SETTING_NAMES,
    asked_as=ASKED_AS,
    configs="the YAML of the run, args.json or config.json; adapter_config.json for LoRA",
    bessel=True,
    recipes=RECIPES,
    paste=paste,
)
