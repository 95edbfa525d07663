"""Curvature along on-policy runs of the tiny transformer, kept once measured."""

from __future__ import annotations

import json
from typing import Any

import torch
from curvature import (
    along,
    gradient,
    held_objective,
    hessian,
    objective,
    preconditioned,
    pull,
    stiffest,
)
from grpo import SECOND_MOMENT_DECAY
from job import CACHE, Job
from tasks import MAX_COMPLETION_LENGTH, TASKS, Task, _terminated
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from training import Moment, base_of, follow
from transformer import Transformer, completion_statistics, sample

PROMPTS, PRODUCTS = 512, 12


class Look:
    """A policy's curvature on a fresh batch of prompts.

    Parameters
    ----------
    policy : Transformer
    task : Task
    group : int
        Group size of the run.
    prompts : int
        Prompts that the expectation is taken over.
    seed : int
        Of prompts and samples.
    """

    def __init__(
        self, policy: Transformer, task: Task, group: int, prompts: int = PROMPTS, seed: int = 0
    ) -> None:
        generator = torch.Generator().manual_seed(2_000_000 + seed)
        index = task.draw(prompts, generator)
        self.group, self.policy = group, policy
        self.parameters = list(policy.parameters())
        self.prompts, self.answers = task.prompts(index), _terminated(task.answers(index))
        samples = sample(policy, self.prompts, MAX_COMPLETION_LENGTH, generator)
        length = samples.mask.sum(dim=1).mean()
        # Only plain attention can be differentiated twice.
        with sdpa_kernel(SDPBackend.MATH):
            tokens, _ = completion_statistics(policy, self.prompts, self.answers)
            self.log_chance = tokens.sum(dim=1)
            value = objective(self.log_chance, group) / length
            held = held_objective(self.log_chance, self._cross_entropy(samples), group) / length
            self.whole = hessian(value, self.parameters)
            self.stale = hessian(value - held, self.parameters)
        self.length = float(length)
        self.gradient = gradient(value, self.parameters)
        self.held_gradient = gradient(held, self.parameters)

    def _cross_entropy(self, samples: Any) -> Tensor:
        tokens = torch.cat([self.prompts, samples.tokens[:, :-1]], dim=1)
        logits, _ = self.policy(tokens)
        log_probabilities = logits[:, self.prompts.shape[1] - 1 :].log_softmax(dim=-1)
        cross = -(log_probabilities.detach().exp() * log_probabilities).sum(dim=-1)
        return (cross * samples.mask).sum(dim=1)

    def left_by_ratio(self, direction: Tensor) -> float:
        """Curvature along a direction that stays stale under an unclipped ratio of single tokens.

        Such a ratio corrects each token for its own chance, not for those of its neighbours nor for
        the advantage, which was normalised on the snapshot:
        ``c' (grad p . v)^2 + c p [(sum_t s_t . v)^2 - sum_t (s_t . v)^2]``.
        """
        sizes = [parameter.numel() for parameter in self.parameters]
        shaped = [
            part.view_as(parameter)
            for part, parameter in zip(direction.split(sizes), self.parameters, strict=True)
        ]
        names = [name for name, _ in self.policy.named_parameters()]
        values = {name: p.detach() for name, p in zip(names, self.parameters, strict=True)}
        tokens = torch.cat([self.prompts, self.answers[:, :-1]], dim=1)

        def log_tokens(changed: dict[str, Tensor]) -> Tensor:
            logits, _ = torch.func.functional_call(self.policy, changed, (tokens,))
            chosen = logits[:, self.prompts.shape[1] - 1 :].log_softmax(dim=-1)
            return chosen.gather(2, self.answers[:, :, None])[:, :, 0]

        with sdpa_kernel(SDPBackend.MATH):
            _, slopes = torch.func.jvp(
                log_tokens, (values,), (dict(zip(names, shaped, strict=True)),)
            )
        chance = self.log_chance.detach().exp().requires_grad_()
        pulled = pull(chance, self.group)
        (change,) = torch.autograd.grad(pulled.sum(), chance)
        with torch.no_grad():
            whole, single = slopes.sum(dim=1) ** 2, (slopes**2).sum(dim=1)
            left = change * chance**2 * whole + pulled * chance * (whole - single)
        return float(-left.mean() / self.length / (direction @ direction))


def _scale(optimizer: torch.optim.Optimizer) -> Tensor:
    """D of AdamW: the root of its second moment, corrected for its start, plus epsilon."""
    parts = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            fair = state["exp_avg_sq"] / (1 - SECOND_MOMENT_DECAY ** float(state["step"]))
            parts.append((fair.sqrt() + group["eps"]).reshape(-1))
    return torch.cat(parts)


def _curvatures(look: Look, scale: Tensor | None, products: int) -> dict[str, float]:
    """Stiffest modes of the whole and of its stale part, and what pulls along the gradient."""
    scale = torch.ones_like(look.gradient) if scale is None else scale
    whole, stale = preconditioned(look.whole, scale), preconditioned(look.stale, scale)
    root = scale.rsqrt()
    pulling = root * look.gradient
    of_whole = stiffest(whole, len(root), products)
    of_stale = stiffest(stale, len(root), products)
    own = root * of_whole.vector  # the mode in the policy's own coordinates
    return {
        "whole": of_whole.curvature,
        "whole_residual": of_whole.residual,
        "stale": of_stale.curvature,
        "stale_residual": of_stale.residual,
        "stale_of_whole_mode": along(stale, of_whole.vector),
        "left_by_ratio": look.left_by_ratio(own) * float(own @ own),
        "along_gradient": along(whole, pulling),
    }


def looked_at(
    moment: Moment, task: Task, group: int, prompts: int, products: int, seed: int
) -> dict[str, Any]:
    """All curvatures of a moment, per unit of gradient of the loss that the trainer descends."""
    look = Look(moment.policy, task, group, prompts, seed)
    is_adam = isinstance(moment.optimizer, torch.optim.AdamW)
    found: dict[str, Any] = {
        "step": moment.step,
        "chance": float(look.log_chance.detach().exp().mean()),
        "gradient_norm": float(look.gradient.norm()),
        "raw": _curvatures(look, None, products),
    }
    if is_adam:
        found["adam"] = _curvatures(look, _scale(moment.optimizer), products)
    return found


def measured(
    job: Job, checkpoints: tuple[int, ...], hasty: int | None = None
) -> list[dict[str, Any]]:
    """Follow a run and look at its curvature on the way, or take it from the cache.

    Parameters
    ----------
    job : Job
    checkpoints : tuple of int
        Steps after which to look.
    hasty : int, optional
        Pre-train for so many steps only, look at few prompts, and leave the caches alone.

    Returns
    -------
    looks : list of dict
    """
    torch.set_num_threads(1)
    prompts, products = (64, 4) if hasty else (PROMPTS, PRODUCTS)
    name = f"curvature_{job.path.stem}_{'-'.join(map(str, checkpoints))}_{prompts}_{products}.json"
    path = CACHE / name
    if hasty is None and path.exists():
        return list(json.loads(path.read_text(encoding="utf-8")))
    task = TASKS[job.task]
    found = [
        looked_at(moment, task, job.group, prompts, products, job.seed)
        for moment in follow(base_of(job.task, job.size, hasty), task, job.config)
        if moment.step in checkpoints
    ]
    if hasty is None:
        CACHE.mkdir(exist_ok=True)
        path.write_text(json.dumps(found), encoding="utf-8")
    return found
