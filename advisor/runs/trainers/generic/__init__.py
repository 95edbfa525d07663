"""Hand-written training loops."""

from __future__ import annotations

from advisor.runs.trainers.generic import console
from advisor.runs.trainers.generic.keys import KEY_TABLE
from advisor.runs.trainers.registry import Trainer

TRAINER = Trainer(KEY_TABLE.name, (KEY_TABLE,), (console.READER,))
