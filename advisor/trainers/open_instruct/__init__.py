"""open-instruct."""

from __future__ import annotations

from advisor.trainers.open_instruct.keys import KEY_TABLE
from advisor.trainers.trainer import Trainer

TRAINER = Trainer(name=KEY_TABLE.name, keys=(KEY_TABLE,))
