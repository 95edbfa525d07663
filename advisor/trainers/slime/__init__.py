"""THUDM's slime, and miles, which keeps its keys."""

from __future__ import annotations

from advisor.trainers.slime.keys import KEY_TABLE
from advisor.trainers.trainer import Trainer

TRAINER = Trainer(name=KEY_TABLE.name, keys=(KEY_TABLE,))
