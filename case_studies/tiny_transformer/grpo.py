"""Group Relative Policy Optimization of a tiny transformer, logged in the shape of TRL."""

from __future__ import annotations

import copy
import time
from collections import deque
from dataclasses import dataclass

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
    """Compute the clipped surrogate loss, averaged over all tokens of the minibatch.

    Parameters
    ----------
    policy : Transformer
        In training.
    batch : Rollouts
        The minibatch.
    config : GrpoConfig
        Clipping settings.

    Returns
    -------
    tuple of Tensor and dict
        Loss, and the quantities that are logged with it.
    """
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
    """Make one optimizer step.

    Parameters
    ----------
    policy, batch, config
        As in `surrogate`.
    optimizer : torch.optim.Optimizer
        Of the policy; its learning rate is that of the step.

    Returns
    -------
    tuple of float, float and dict
        Loss and gradient norm before the step, and the quantities that are logged with them.
    """
    loss, row = surrogate(policy, batch, config)
    optimizer.zero_grad()
    loss.backward()
    gradients = [parameter.grad for parameter in policy.parameters()]
    norm = torch.nn.utils.get_total_norm([g for g in gradients if g is not None])
    optimizer.step()
    return loss.item(), float(norm), row


def train(
    base: Transformer,
    task: Task,
    config: GrpoConfig,
    change: tuple[int, GrpoConfig] | None = None,
) -> list[Row]:
    """Run GRPO from a copy of `base`.

    Parameters
    ----------
    base : Transformer
        Start of the policy.
    task : Task
        Source of prompts and rewards.
    config : GrpoConfig
        Hyperparameters.
    change : (int, GrpoConfig), optional
        Finished steps after which the run goes on with other hyperparameters, of which the
        optimizer, the number of steps and the seed do not count.

    Returns
    -------
    list of dict
        Log rows in TRL's order: an evaluation before the first step, one row per optimizer step,
        an evaluation every 20 steps, and a summary.
    """
    policy, behaviour = copy.deepcopy(base), copy.deepcopy(base)
    optimizer = make_optimizer(policy, config)
    generator = torch.Generator().manual_seed(config.seed)
    # Evaluation draws from its own stream, so that it cannot change the training run.
    evaluation_generator = torch.Generator().manual_seed(config.seed + 1_000_000)
    snapshots: deque[dict[str, Tensor]] = deque(maxlen=config.lag + 1)
    rollout_batch: list[Rollouts] = []
    seen_tokens = seen_prompts = 0
    loss_sum, started = 0.0, time.perf_counter()
    training_prompts = task.number_of_prompts - task.number_held_out
    rows: list[Row] = [
        {"eval_reward": evaluate(policy, task, evaluation_generator), "epoch": 0, "step": 0}
    ]
    steps, begun = config.steps, 0
    for step in range(steps):
        step_started = time.perf_counter()
        if change is not None and step == change[0]:
            begun, config = change
        snapshots.append({name: value.clone() for name, value in policy.state_dict().items()})
        within = (step - begun) % (config.minibatches_per_refresh * config.epochs_per_refresh)
        if within == 0:
            behaviour.load_state_dict(snapshots[0])
            rollout_batch = roll_out(behaviour, task, config, generator)
            seen_prompts += config.prompts_per_step * config.minibatches_per_refresh
            seen_tokens += sum(
                part.prompts.numel() + int(part.samples.mask.sum()) for part in rollout_batch
            )
        batch = rollout_batch[within % config.minibatches_per_refresh]
        rate = config.learning_rate_at(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss, gradient_norm, update_row = take_step(policy, batch, config, optimizer)
        loss_sum += loss
        epoch = seen_prompts / training_prompts
        rows.append(
            {
                "loss": loss,
                "grad_norm": gradient_norm,
                "learning_rate": rate,
                "num_tokens": seen_tokens,
                **reward_row(batch),
                **update_row,
                "step_time": round(time.perf_counter() - step_started, 4),
                "epoch": epoch,
                "step": step + 1,
            }
        )
        if (step + 1) % EVALUATION_INTERVAL == 0:
            accuracy = evaluate(policy, task, evaluation_generator)
            rows.append({"eval_reward": accuracy, "epoch": epoch, "step": step + 1})
    rows.append(
        {
            "train_runtime": round(time.perf_counter() - started, 2),
            "train_loss": loss_sum / steps,
            "total_flos": 0,
            "epoch": epoch,
            "step": steps,
        }
    )
    return rows
