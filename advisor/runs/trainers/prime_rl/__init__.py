"""PRIME-Intellect's prime-rl."""

from __future__ import annotations

from advisor.runs.trainers.prime_rl.keys import KEY_TABLE
from advisor.runs.trainers.trainer import Trainer

TRAINER = Trainer(name=KEY_TABLE.name, keys=(KEY_TABLE,))
