"""A bandit with many contexts that share parameters, under GRPO with real sampling.

Logits are linear in a context's features, so what is learned on the train contexts carries over.
Seeds are trained side by side: every array leads with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from advisor.theory import FloatArray

FEATURES, ACTIONS, CONTEXTS, ELSEWHERE = 6, 6, 24, 200
MOST_LOGIT = 1e3
"""Parameters beyond this have diverged and are held: their policy no longer changes."""


@dataclass(frozen=True)
class Task:
    """Contexts with success probabilities of every action, and held-out ones with the true reward.

    Attributes
    ----------
    features : ndarray of shape (contexts, features)
    success : ndarray of shape (contexts, actions)
        Chance that the trained-on reward is 1.
    held_out : (ndarray, ndarray)
        Features and expected true rewards of the evaluation.
    start : ndarray of shape (actions,)
        Logits of the policy before training, the same in every context.
    """

    features: FloatArray
    success: FloatArray
    held_out: tuple[FloatArray, FloatArray]
    start: FloatArray = field(default_factory=lambda: np.zeros(ACTIONS))


@dataclass(frozen=True)
class Plan:
    """How a task is trained, by SGD on samples that are held for an interval."""

    learning_rate: float
    steps: int
    momentum: float = 0.9
    interval: int = 1
    contexts_per_step: int = 8
    group_size: int = 8
    kl_coefficient: float = 0.1
    warmup_steps: int = 0


@dataclass
class Record:
    """What a trainer would log of every step, each of shape (seeds, steps), and the parameters."""

    reward: FloatArray
    spread: FloatArray
    silent: FloatArray
    entropy: FloatArray
    gradient: FloatArray
    weights: FloatArray
    evaluated: FloatArray


def softmax(logits: FloatArray) -> FloatArray:
    """Policy of logits along the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def jacobian(of: Callable[[FloatArray], FloatArray], at: FloatArray, step: float) -> FloatArray:
    """Of a field, by central differences."""
    eye = step * np.eye(at.size)
    return np.stack([(of(at + e) - of(at - e)) / (2 * step) for e in eye], axis=1)


def linear_task() -> Task:
    """Task whose success is logistic in the features; evaluated off the train contexts."""
    rng = np.random.default_rng(0)
    worth = rng.standard_normal((FEATURES, ACTIONS))

    def contexts(count: int) -> FloatArray:
        return np.column_stack([rng.standard_normal((count, FEATURES - 1)), np.ones(count)])

    def success(features: FloatArray) -> FloatArray:
        return np.asarray(1 / (1 + np.exp(-(features @ worth - 1))))

    here, elsewhere = contexts(CONTEXTS), contexts(ELSEWHERE)
    return Task(here, success(here), (elsewhere, success(elsewhere)))


def train(task: Task, plan: Plan, seeds: int, *, evaluate_every: int = 20, seed: int = 0) -> Record:
    """Train ``seeds`` runs side by side by GRPO with real sampling."""
    rng = np.random.default_rng(seed)
    shape = (seeds, task.features.shape[1], task.start.size)
    weights, velocity = np.zeros(shape), np.zeros(shape)
    rows: dict[str, list[FloatArray]] = {
        name: [] for name in ("reward", "spread", "silent", "entropy", "gradient")
    }
    evaluated: list[FloatArray] = []
    held, worth = task.held_out
    place = np.arange(seeds)[:, None, None]
    for step in range(plan.steps):
        if step % plan.interval == 0:
            chosen = rng.integers(task.features.shape[0], size=(seeds, plan.contexts_per_step))
            features = task.features[chosen]
            old = softmax(features @ weights + task.start)
            uniform = rng.random((seeds, plan.contexts_per_step, plan.group_size))
            actions = (uniform[..., None] > old.cumsum(axis=-1)[:, :, None, :-1]).sum(axis=-1)
            chance = task.success[chosen[:, :, None], actions]
            rewards = (rng.random(chance.shape) < chance).astype(float)
            centred = rewards - rewards.mean(axis=-1, keepdims=True)
            advantages = centred * plan.group_size / (plan.group_size - 1)
            group = np.arange(plan.contexts_per_step)[None, :, None]
        policy = softmax(features @ weights + task.start)
        pull = np.zeros_like(policy)
        np.add.at(pull, (place, group, actions), advantages)
        pull = (pull - advantages.sum(axis=-1)[..., None] * policy) / plan.group_size
        surprise = task.start - task.start.max() - np.log(np.maximum(old, 1e-300))
        penalty = old * (surprise - (old * surprise).sum(axis=-1, keepdims=True))
        gradient = (
            np.einsum("spf,spa->sfa", features, pull + plan.kl_coefficient * penalty)
            / plan.contexts_per_step
        )
        rows["reward"].append(rewards.mean(axis=(1, 2)))
        rows["spread"].append(rewards.std(axis=2, ddof=1).mean(axis=1))
        rows["silent"].append((np.ptp(rewards, axis=2) == 0).mean(axis=1))
        rows["entropy"].append(
            -(policy * np.log(np.maximum(policy, 1e-300))).sum(axis=-1).mean(axis=1)
        )
        rows["gradient"].append(np.sqrt((gradient**2).sum(axis=(1, 2))))
        if step % evaluate_every == 0:
            chosen_there = softmax(held @ weights + task.start)
            evaluated.append((chosen_there * worth).sum(axis=-1).mean(axis=-1))
        velocity = plan.momentum * velocity + (1 - plan.momentum) * gradient
        warm = min(1.0, (step + 1) / plan.warmup_steps) if plan.warmup_steps else 1.0
        weights = np.clip(weights + plan.learning_rate * warm * velocity, -MOST_LOGIT, MOST_LOGIT)
    return Record(
        **{name: np.stack(values, axis=1) for name, values in rows.items()},
        weights=weights,
        evaluated=np.stack(evaluated, axis=1),
    )
