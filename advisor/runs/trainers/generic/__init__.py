"""Hand-written training loops."""

from __future__ import annotations

from advisor.runs.trainers.generic import console
from advisor.runs.trainers.generic.keys import KEY_TABLE
from advisor.runs.trainers.trainer import Trainer

TRAINER = Trainer(name=KEY_TABLE.name, keys=(KEY_TABLE,), readers=(console.READER,))
