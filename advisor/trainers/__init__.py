"""One trainer per file: what its keys mean and how its settings are read."""

from __future__ import annotations

from advisor.trainers.cs336 import keys as cs336
from advisor.trainers.framework import Derived, Framework, plain, spellings
from advisor.trainers.generic import own_loop
from advisor.trainers.openrlhf import keys as openrlhf
from advisor.trainers.prime_rl import keys as prime_rl
from advisor.trainers.tinker import keys as tinker
from advisor.trainers.trl import keys as trl
from advisor.trainers.verl import keys as verl

FRAMEWORKS: tuple[Framework, ...] = (
    trl.FRAMEWORK,
    trl.ASYNC_FRAMEWORK,
    verl.FRAMEWORK,
    openrlhf.FRAMEWORK,
    prime_rl.FRAMEWORK,
    tinker.FRAMEWORK,
    cs336.FRAMEWORK,
    own_loop.FRAMEWORK,
)
"""Trainers, besides which `generic` knows the names that many share."""

__all__ = ["FRAMEWORKS", "Derived", "Framework", "plain", "spellings"]
