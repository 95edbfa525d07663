"""Group Relative Policy Optimization of a tiny transformer, logged in the shape of TRL."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from config import GrpoConfig
from tasks import MAX_COMPLETION_LENGTH, Task
from torch import Tensor
from transformer import Samples, Transformer, completion_statistics, sample

EVALUATION_INTERVAL = 20
EVALUATION_PROMPTS = 512
SECOND_MOMENT_DECAY = 0.999
SPREAD_FLOOR = 1e-4  # what TRL adds to the spread before it divides by it

Row = dict[str, float | int]


@dataclass(frozen=True)
class Rollouts:
    """One minibatch of completions, ordered so that a group's members are neighbours.

    Attributes
    ----------
    prompts : Tensor
        Prompt tokens, shape (n, prompt_length).
    samples : Samples
        The completions.
    rewards, advantages : Tensor
        Shape (groups, group_size).
    """

    prompts: Tensor
    samples: Samples
    rewards: Tensor
    advantages: Tensor


def advantages(rewards: Tensor) -> Tensor:
    """Rewards, shape (groups, group_size), centred within groups and over their deviation."""
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    return centred / (rewards.std(dim=1, keepdim=True) + SPREAD_FLOOR)


def roll_out(
    policy: Transformer, task: Task, config: GrpoConfig, generator: torch.Generator
) -> list[Rollouts]:
    """Sample one rollout batch and split it into minibatches."""
    parts = []
    for _ in range(config.minibatches_per_refresh):
        index = task.draw(config.prompts_per_step, generator)
        index = index.repeat_interleave(config.group_size)
        prompts = task.prompts(index)
        samples = sample(policy, prompts, MAX_COMPLETION_LENGTH, generator)
        rewards = task.verify(index, samples.tokens).view(-1, config.group_size)
        parts.append(Rollouts(prompts, samples, rewards, advantages(rewards)))
    return parts


def surrogate(policy: Transformer, batch: Rollouts, config: GrpoConfig) -> tuple[Tensor, Row]:
    """Clipped surrogate loss, averaged over all tokens of the minibatch, and what is logged."""
    tokens, mask = batch.samples.tokens, batch.samples.mask
    log_probabilities, entropy = completion_statistics(policy, batch.prompts, tokens)
    # Against itself the ratio is 1 in value and keeps its gradient: the uncorrected case.
    old = batch.samples.log_probabilities if config.importance_ratio else log_probabilities.detach()
    ratio = (log_probabilities - old).exp()
    advantage = batch.advantages.reshape(-1, 1)
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    token_loss = -torch.minimum(ratio * advantage, clipped * advantage)
    total = mask.sum()
    outside = ((ratio < 1 - config.clip_low) & (advantage < 0)) | (
        (ratio > 1 + config.clip_high) & (advantage > 0)
    )
    row: Row = {
        "entropy": float((entropy * mask).sum() / total),
        "clip_ratio/region_mean": float((outside * mask).sum() / total),
    }
    return (token_loss * mask).sum() / total, row


def reward_row(batch: Rollouts) -> Row:
    """Summarise the rewards and lengths of a minibatch under TRL's names."""
    rewards = batch.rewards
    spread = rewards.std(dim=1)
    return {
        "completions/mean_length": float(batch.samples.mask.sum(dim=1).mean()),
        "completions/clipped_ratio": float((~batch.samples.ended).float().mean()),
        "rewards/exact_match/mean": float(rewards.mean()),
        "rewards/exact_match/std": float(rewards.std()),
        "reward": float(rewards.mean()),
        "reward_std": float(spread.mean()),
        "frac_reward_zero_std": float((spread == 0).float().mean()),
    }


def evaluate(
    policy: Transformer, task: Task, generator: torch.Generator, count: int = EVALUATION_PROMPTS
) -> float:
    """Accuracy at temperature 1 on fresh held-out prompts, one completion each."""
    index = task.draw(count, generator, held_out=True)
    samples = sample(policy, task.prompts(index), MAX_COMPLETION_LENGTH, generator)
    return float(task.verify(index, samples.tokens).mean())


def make_optimizer(policy: Transformer, config: GrpoConfig) -> torch.optim.Optimizer:
    """Build the optimizer of a run."""
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            policy.parameters(), lr=config.learning_rate, momentum=config.momentum
        )
    decays = (config.momentum, SECOND_MOMENT_DECAY)
    return torch.optim.AdamW(
        policy.parameters(), lr=config.learning_rate, betas=decays, weight_decay=0.0
    )


def take_step(
    policy: Transformer,
    batch: Rollouts,
    config: GrpoConfig,
    optimizer: torch.optim.Optimizer,
) -> tuple[float, float, Row]:
    """Make one step; loss and gradient norm before it, and what is logged with them."""
    loss, row = surrogate(policy, batch, config)
    optimizer.zero_grad()
    loss.backward()
    gradients = [parameter.grad for parameter in policy.parameters()]
    norm = torch.nn.utils.get_total_norm([g for g in gradients if g is not None])
    optimizer.step()
    return loss.item(), float(norm), row


class Step(NamedTuple):
    """What one optimizer step did; ``fresh`` are the minibatches that it drew, at a refresh."""

    number: int
    rate: float
    loss: float
    gradient_norm: float
    logged: Row
    sampler: Transformer
    fresh: list[Rollouts]


def steps_of(
    policy: Transformer,
    task: Task,
    config: GrpoConfig,
    change: tuple[int, GrpoConfig] | None = None,
) -> Iterator[Step]:
    """Train a policy in place, step by step.

    Parameters
    ----------
    policy : Transformer
    task : Task
        Source of prompts and rewards.
    config : GrpoConfig
    change : (int, GrpoConfig), optional
        Finished steps after which the run goes on with other hyperparameters, of which the
        optimizer, the number of steps and the seed do not count.
    """
    behaviour, optimizer = copy.deepcopy(policy), make_optimizer(policy, config)
    generator = torch.Generator().manual_seed(config.seed)
    snapshots: deque[dict[str, Tensor]] = deque(maxlen=config.lag + 1)
    rollout_batch: list[Rollouts] = []
    begun = 0
    for step in range(config.steps):
        if change is not None and step == change[0]:
            begun, config = change
        snapshots.append({name: value.clone() for name, value in policy.state_dict().items()})
        within = (step - begun) % (config.minibatches_per_refresh * config.epochs_per_refresh)
        if within == 0:
            behaviour.load_state_dict(snapshots[0])
            rollout_batch = roll_out(behaviour, task, config, generator)
        batch = rollout_batch[within % config.minibatches_per_refresh]
        rate = config.learning_rate_at(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss, norm, update = take_step(policy, batch, config, optimizer)
        logged = {**reward_row(batch), **update}
        fresh = rollout_batch if within == 0 else []
        yield Step(step + 1, rate, loss, norm, logged, behaviour, fresh)


def train(
    base: Transformer,
    task: Task,
    config: GrpoConfig,
    change: tuple[int, GrpoConfig] | None = None,
) -> list[Row]:
    """Log rows of GRPO from a copy of a base, in TRL's order.

    An evaluation before the first step, one row per optimizer step, an evaluation every 20 steps,
    and a summary; ``change`` as in `steps_of`.
    """
    policy = copy.deepcopy(base)
    # Evaluation draws from its own stream, so that it cannot change the training run.
    evaluation_generator = torch.Generator().manual_seed(config.seed + 1_000_000)
    seen_tokens = seen_prompts = 0
    loss_sum, started = 0.0, time.perf_counter()
    training_prompts = task.number_of_prompts - task.number_held_out
    rows: list[Row] = [
        {"eval_reward": evaluate(policy, task, evaluation_generator), "epoch": 0, "step": 0}
    ]
    step_started = time.perf_counter()
    for step in steps_of(policy, task, config, change):
        for part in step.fresh:
            seen_prompts += len(part.rewards)
            seen_tokens += part.prompts.numel() + int(part.samples.mask.sum())
        loss_sum += step.loss
        epoch = seen_prompts / training_prompts
        rows.append(
            {
                "loss": step.loss,
                "grad_norm": step.gradient_norm,
                "learning_rate": step.rate,
                "num_tokens": seen_tokens,
                **step.logged,
                "step_time": round(time.perf_counter() - step_started, 4),
                "epoch": epoch,
                "step": step.number,
            }
        )
        if step.number % EVALUATION_INTERVAL == 0:
            accuracy = evaluate(policy, task, evaluation_generator)
            rows.append({"eval_reward": accuracy, "epoch": epoch, "step": step.number})
        step_started = time.perf_counter()
    rows.append(
        {
            "train_runtime": round(time.perf_counter() - started, 2),
            "train_loss": loss_sum / config.steps,
            "total_flos": 0,
            "epoch": epoch,
            "step": config.steps,
        }
    )
    return rows
