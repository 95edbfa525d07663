"""Hand-written training loops."""

from __future__ import annotations

from advisor.trainers.generic import console
from advisor.trainers.generic.keys import KEY_TABLE
from advisor.trainers.trainer import Trainer

TRAINER = Trainer(name=KEY_TABLE.name, keys=(KEY_TABLE,), readers=(console.READER,))
