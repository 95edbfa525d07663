"""Supervised training of the base of a world, cached in an ignored folder."""

from __future__ import annotations

import math
from pathlib import Path

import language_model
import torch
from batched import Architecture, Optimizer, completion_log_probabilities
from plan import SIZES, World
from problems import PAD, Problem, make_problem
from torch import Tensor

CACHE = Path(__file__).resolve().parent / ".cache"
BATCH = 128
WARMUP_STEPS = 100
SEED = 1
STEPS = {"xs": 1500, "s": 1000, "m": 500, "10k": 2500, "100k": 1500, "1m": 600}
LEARNING_RATE = {"xs": 6e-3, "s": 4e-3, "m": 3e-3, "10k": 6e-3, "100k": 3e-3, "1m": 1.5e-3}
HARD = {"modulo31": 2.0, "modulo53": 2.5, "checksum5": 1.5, "product": 2.0, "carry2": 1.5}
"""Problems that take longer to learn -> factor on the steps."""


def make_base(world: World) -> tuple[Problem, Architecture, Tensor]:
    """Train the base of a world, or load it.

    Returns
    -------
    tuple of Problem, Architecture and Tensor
        The problem, the shape of the model, and its weights (1, parameters).
    """
    if world.problem == language_model.NAME:
        problem: Problem = language_model.make_text_problem()
    else:
        problem = make_problem(world.problem, world.solvable)
    width, layers = SIZES[world.size]
    shape = Architecture(width, layers, 16, problem.context, problem.vocabulary, world.scale)
    path = CACHE / f"{world.problem}_{world.size}_{world.offset}_{world.empty}.pt"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        trained = _pretrain(world, problem)
        partial = path.with_suffix(f".{world.name}")
        torch.save(trained, partial)
        partial.replace(path)
    return problem, shape, torch.load(path, weights_only=True) / world.scale


def _pretrain(world: World, problem: Problem) -> Tensor:
    """Fit the mixture of right and wrong answers."""
    width, layers = SIZES[world.size]
    shape = Architecture(width, layers, 16, problem.context, problem.vocabulary)
    flat = shape.initial(SEED).requires_grad_()
    optimizer = Optimizer("adamw", 0.9, flat)
    generator = torch.Generator().manual_seed(SEED)
    total, peak = int(STEPS[world.size] * HARD.get(world.problem, 1)), LEARNING_RATE[world.size]
    for step in range(total):
        decay = 0.5 + 0.5 * math.cos(math.pi * step / total)
        rate = peak * min(1.0, (step + 1) / WARMUP_STEPS) * decay
        index = problem.draw((BATCH,), generator)
        targets = problem.demonstrations(index, world.offset, world.empty, generator)
        mask = targets != PAD
        log_probabilities = completion_log_probabilities(
            shape, flat, problem.prompts[index][None], targets[None]
        )
        loss = -(log_probabilities[0] * mask).sum() / mask.sum()
        (gradient,) = torch.autograd.grad(loss, flat)
        optimizer.step(gradient, torch.tensor([rate]))
    return flat.detach()
