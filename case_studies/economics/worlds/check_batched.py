"""Check that the batched program computes what `../../tiny_transformer/grpo.py` computes.

For several settings, runs of different weights and rates are laid side by side; each must get the
sampled log-probabilities, loss, gradient and two optimizer steps that `grpo.py` gives it alone on
the same rollouts. Controls with a wrong clip, a wrong floor and a wrong moment decay must
disagree. Exits with 1 on disagreement.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import batched
import torch
from batched import Architecture, Optimizer, advantages, sample, surrogate
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[2] / "tiny_transformer"))

import grpo
from config import GrpoConfig
from tasks import MAX_COMPLETION_LENGTH, TASKS
from transformer import SIZES, Samples, Transformer

TOLERANCE = 1e-9
"""Relative distance of float64 sums in another order. In float32 AdamW would blow up the rounding
error of gradients that are zero, those of the keys' biases."""
WRONG = 1e-3
RATES = (1e-3, 3e-3, 1e-2)
PROMPTS, GROUP = 6, 8
SPREAD = 0.1  # of the weights that runs differ in, so that ratios leave the clipping range


@dataclass(frozen=True)
class Case:
    """One setting of loss and optimizer."""

    size: str
    scaling: str
    kl_coefficient: float
    optimizer: str
    momentum: float


CASES = (
    Case("xs", "group", 0.0, "adamw", 0.9),
    Case("s", "group", 0.3, "adamw", 0.0),
    Case("xs", "batch", 0.0, "sgd", 0.9),
    Case("s", "none", 0.1, "adamw", 0.95),
)


def flattened(model: Transformer, shape: Architecture) -> Tensor:
    """Weights of a model in the order of the batched program, shape (1, parameters)."""
    return torch.cat([part.flatten() for part in ordered(dict(model.named_parameters()), shape)])[
        None
    ]


def gradients(model: Transformer, shape: Architecture) -> Tensor:
    """Its gradient in the same order."""
    found = {name: p.grad for name, p in model.named_parameters()}
    return torch.cat([part.flatten() for part in ordered(found, shape)])[None]


def ordered(found: dict[str, Tensor], shape: Architecture) -> list[Tensor]:
    """Tensors of a model by the batched program's names; linear weights are transposed there."""
    parts = []
    for name in shape.shapes:
        theirs = name if not name[0].isdigit() else f"blocks.{name}"
        theirs = f"{name}.weight" if name in ("token", "position") else theirs
        part = found[theirs].detach()
        linear = part.ndim == 2 and name not in ("token", "position")
        parts.append(part.T if linear else part)
    return parts


def distance(first: Tensor, second: Tensor) -> float:
    """Relative distance."""
    return float((first - second).norm() / second.norm())


def rollouts_of(
    case: Case, policies: Tensor, shape: Architecture
) -> tuple[Tensor, batched.Rollouts]:
    """Completions of every run, with rewards drawn at random."""
    generator = torch.Generator().manual_seed(3)
    task = TASKS["sort"]
    runs = len(policies)
    index = task.draw(runs * PROMPTS, generator)
    prompts = task.prompts(index).view(runs, PROMPTS, -1)
    samples = sample(shape, policies, prompts, GROUP, MAX_COMPLETION_LENGTH, generator)
    rewards = torch.rand(runs, PROMPTS, GROUP, generator=generator).round()
    rewards[:, 0] = 1.0  # a silent group
    return prompts, batched.Rollouts(prompts, samples, rewards, advantages(rewards, case.scaling))


def largest_distance(case: Case) -> float:
    """Largest relative distance between the two programs, over runs and quantities."""
    width, layers = SIZES[case.size]
    shape = Architecture(width, layers, 16, 16)
    base = Transformer(case.size, seed=0)
    generator = torch.Generator().manual_seed(5)
    start = flattened(base, shape)
    frozen = start + SPREAD * start.std() * torch.randn(
        len(RATES), start.shape[1], generator=generator
    )
    moved = SPREAD * start.std() * torch.randn(frozen.shape, generator=generator)
    policy = (frozen + moved).requires_grad_()
    prompts, batch = rollouts_of(case, frozen, shape)
    initial = policy.detach().clone()
    optimizer = Optimizer(case.optimizer, case.momentum, policy)
    losses, gradient = [], []
    for _ in range(2):
        loss, _ = surrogate(shape, policy, start, batch, case.kl_coefficient)
        (found,) = torch.autograd.grad(loss.sum(), policy)
        losses.append(loss.detach())
        gradient.append(found)
        optimizer.step(found, torch.tensor(RATES))
    found_distances = []
    for run, rate in enumerate(RATES):
        model, sampler = Transformer(case.size), Transformer(case.size)
        load(model, initial[run], shape)
        load(sampler, frozen[run], shape)
        config = GrpoConfig(
            rate,
            GROUP,
            PROMPTS,
            momentum=case.momentum,
            optimizer=case.optimizer,
            kl_coefficient=case.kl_coefficient,
            advantage_scaling=case.scaling,
        )
        tokens, mask = batch.samples.tokens[run], batch.samples.mask[run]
        with torch.no_grad():
            repeated = prompts[run].repeat_interleave(GROUP, dim=0)
            log_probabilities, entropy = grpo.completion_statistics(sampler, repeated, tokens)
        samples = Samples(tokens, mask, log_probabilities * mask, torch.ones(len(tokens)).bool())
        rewards = batch.rewards[run]
        theirs = grpo.Rollouts(repeated, samples, rewards, grpo.advantages(rewards, case.scaling))
        found_distances += [
            distance(batch.samples.log_probabilities[run], log_probabilities * mask),
            distance(batch.samples.entropy[run], entropy * mask),
        ]
        step = grpo.make_optimizer(model, config)
        for place in range(2):
            loss, _, _ = grpo.take_step(model, base, theirs, config, step)
            found_distances += [
                abs(float(losses[place][run]) - loss) / abs(loss),
                distance(gradient[place][run : run + 1], gradients(model, shape)),
            ]
        change = flattened(model, shape) - initial[run : run + 1]
        found_distances.append(distance(policy.detach()[run : run + 1] - initial[run], change))
    return max(found_distances)


def load(model: Transformer, flat: Tensor, shape: Architecture) -> None:
    """Put weights of the batched program into a model."""
    views = shape.views(flat[None])
    with torch.no_grad():
        for target, view in zip(
            ordered(dict(model.named_parameters()), shape), views.values(), strict=True
        ):
            target.copy_(view[0])


def main() -> int:
    """Compare, then break the batched program in three ways that the comparison must see."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    failed = False
    for case in CASES:
        found = largest_distance(case)
        failed |= not found < TOLERANCE
        print(f"{case}: largest relative distance {found:.1e}")
    controls = {
        "clip at 0.1": ("CLIP", 0.1),
        "spread floor of 0.1": ("SPREAD_FLOOR", 0.1),
        "second moment decays by 0.9": ("SECOND_MOMENT_DECAY", 0.9),
    }
    for name, (constant, value) in controls.items():
        kept = getattr(batched, constant)
        setattr(batched, constant, value)
        found = largest_distance(CASES[0])
        setattr(batched, constant, kept)
        failed |= not found > WRONG
        print(f"control, {name}: largest relative distance {found:.1e}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
