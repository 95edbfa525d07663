"""verl and its forks: Logic-RL, verl-agent, rLLM, EasyR1."""

from __future__ import annotations

from advisor.runs.trainers.registry import read_trainer
from advisor.runs.trainers.verl import console, export, jsonl
from advisor.runs.trainers.verl.settings import derive, observe

TRAINER = read_trainer(
    "verl",
    readers=(jsonl.READER, console.READER),
    export=export.render,
    derive=derive,
    observe=observe,
)
