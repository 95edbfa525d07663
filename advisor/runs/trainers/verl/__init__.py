"""verl and its forks: Logic-RL, verl-agent, rLLM, EasyR1."""

from __future__ import annotations

from advisor.runs.trainers.trainer import Export, Trainer
from advisor.runs.trainers.verl import console, export, jsonl
from advisor.runs.trainers.verl.keys import KEY_TABLE
from advisor.runs.trainers.verl.names import ASKED_AS, RECIPES, SETTING_NAMES, paste

TRAINER = Trainer(
    name=KEY_TABLE.name,
    keys=(KEY_TABLE,),
    readers=(jsonl.READER, console.READER),
    export=Export("verl", "verl (shell)", export.FILE_NAME, export.render, export.CHECKED),
    setting_names=SETTING_NAMES,
    asked_as=ASKED_AS,
    configs=".hydra/config.yaml, .hydra/overrides.yaml, the launch script or W&B's config.yaml",
    recipes=RECIPES,
    paste=paste,
)
