"""Runs of the tiny transformer with stale samples, kept once they are made."""

from __future__ import annotations

import copy
import json
import math
import time
from collections import deque
from functools import lru_cache
from typing import Any

import torch
from config import GrpoConfig
from grpo import make_optimizer, reward_row, roll_out, take_step
from job import CACHE, MOMENTUM, PROMPTS, Job
from pretrain import pretrain
from table import BASE_EVALUATION_SEED, accuracy
from tasks import TASKS, Task
from torch import Tensor
from transformer import Transformer

Logged = list[dict[str, float]]


def follow(base: Transformer, task: Task, config: GrpoConfig) -> tuple[Transformer, Logged]:
    """Train a copy of `base` with a constant rate.

    Without lag these are the steps of ``table.train_row``, random numbers included; with lag the
    samples of a refresh come from the policy that many optimizer steps before, as in
    ``grpo.train``.

    Parameters
    ----------
    base : Transformer
    task : Task
    config : GrpoConfig
        One pass over each batch of rollouts.

    Returns
    -------
    policy : Transformer
        After the last step.
    logged : list of dict
        What each step logged.
    """
    policy, behaviour = copy.deepcopy(base), copy.deepcopy(base)
    optimizer = make_optimizer(policy, config)
    generator = torch.Generator().manual_seed(config.seed)
    snapshots: deque[dict[str, Tensor]] = deque(maxlen=config.lag + 1)
    logged: Logged = []
    for step in range(config.steps):
        snapshots.append({name: value.clone() for name, value in policy.state_dict().items()})
        within = step % config.minibatches_per_refresh
        if within == 0:
            behaviour.load_state_dict(snapshots[0])
            rollout_batch = roll_out(behaviour, task, config, generator)
        batch = rollout_batch[within]
        _, norm, update = take_step(policy, base, batch, config, optimizer)
        rewards = reward_row(batch)
        logged.append(
            {
                "reward": rewards["reward"],
                "reward_std": rewards["reward_std"],
                "frac_reward_zero_std": rewards["frac_reward_zero_std"],
                "grad_norm": norm,
                "clip_ratio": update["clip_ratio/region_mean"],
            }
        )
    return policy, logged


@lru_cache
def base_of(task: str, size: str, steps: int | None = None) -> Transformer:
    """Policy that runs start from; given steps, a hasty one of which nothing is kept."""
    return pretrain(TASKS[task], size, steps)


def made(job: Job, hasty: int | None = None) -> dict[str, Any]:
    """Train a run and lay it out as a row of ``table``, or take it from the cache.

    Parameters
    ----------
    job : Job
    hasty : int, optional
        Pre-train for so many steps only, and leave the caches alone.

    Returns
    -------
    row : dict
    """
    torch.set_num_threads(1)
    if hasty is None and job.path.exists():
        return dict(json.loads(job.path.read_text(encoding="utf-8")))
    started, task = time.perf_counter(), TASKS[job.task]
    base = base_of(job.task, job.size, hasty)
    policy, steps = follow(base, task, job.config)
    # A diverged run has no finite gradient, and JSON has no name for that.
    logged = [{n: round(v, 5) if math.isfinite(v) else None for n, v in at.items()} for at in steps]
    row = {
        "task": job.task,
        "size": job.size,
        "params": sum(parameter.numel() for parameter in base.parameters()),
        "lr": job.rate,
        "G": job.group,
        "K": job.interval,
        "prompts": PROMPTS,
        "beta1": MOMENTUM,
        "use_is": job.ratio,
        "base_acc": accuracy(base, task, BASE_EVALUATION_SEED),
        "final_eval": accuracy(policy, task, BASE_EVALUATION_SEED + job.seed),
        "seconds": round(time.perf_counter() - started, 2),
        **{name: [row[name] for row in logged] for name in logged[0]},
    }
    if hasty is None:
        CACHE.mkdir(exist_ok=True)
        job.path.write_text(json.dumps(row), encoding="utf-8")
    return row
