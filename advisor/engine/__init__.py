"""A pure function over many items: on processes here, or on a cluster; kept line by line."""

from advisor.engine.engine import Engine, engine_of
from advisor.engine.item import Item, digest_of
from advisor.engine.mapping import EngineSettings, Mapped, mapped
from advisor.engine.outcome import Outcome
from advisor.engine.shard import Shard, shard_of

__all__ = [
    "Engine",
    "EngineSettings",
    "Item",
    "Mapped",
    "Outcome",
    "Shard",
    "digest_of",
    "engine_of",
    "mapped",
    "shard_of",
]
