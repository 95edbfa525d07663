"""OpenRLHF and its forks."""

from __future__ import annotations

from advisor.runs.trainers.openrlhf import console, export
from advisor.runs.trainers.openrlhf.keys import KEY_TABLE
from advisor.runs.trainers.openrlhf.names import ASKED_AS, SETTING_NAMES, paste
from advisor.runs.trainers.trainer import Export, Trainer

TRAINER = Trainer(
    name=KEY_TABLE.name,
    keys=(KEY_TABLE,),
    readers=(console.READER,),
    export=Export("openrlhf", "OpenRLHF (shell)", export.FILE_NAME, export.render, export.CHECKED),
    setting_names=SETTING_NAMES,
    asked_as=ASKED_AS,
    configs="the launch script, or W&B's config.yaml",
    paste=paste,
)
