"""OpenRLHF and its forks."""

from __future__ import annotations

from advisor.runs.trainers.openrlhf import console, export
from advisor.runs.trainers.openrlhf.settings import derive, observe
from advisor.runs.trainers.registry import read_trainer

TRAINER = read_trainer(
    "openrlhf",
    readers=(console.READER,),
    export=export.render,
    derive=derive,
    observe=observe,
)
