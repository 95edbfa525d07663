"""Tinker and its cookbook."""

from __future__ import annotations

from advisor.runs.trainers.tinker.keys import KEY_TABLE
from advisor.runs.trainers.trainer import Trainer

TRAINER = Trainer(name=KEY_TABLE.name, keys=(KEY_TABLE,))
