"""GRPO loops of Stanford's CS336 (assignment 5)."""

from __future__ import annotations

from advisor.runs.trainers.cs336.keys import KEY_TABLE
from advisor.runs.trainers.trainer import Trainer

TRAINER = Trainer(name=KEY_TABLE.name, keys=(KEY_TABLE,))
