"""A softmax bandit trained by GRPO with real sampling: a simulator that is not the model.

A prompt is a row of logits over arms. One arm is right and pays 1, unless the verifier misses it;
prompts differ in how likely the untrained policy picks it. Nothing relaxes along a closed form
here: the reward curve is the mean of as many logistic-like curves as there are prompts, each moved
by sampled, group-normalised advantages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.runs import PartialSettings, PilotRun
from advisor.theory import FloatArray

ARMS = 8
PROMPTS = 64
PROMPTS_PER_STEP = 16
STEPS = 300
RUNS = 8
RATES = (1.5, 12.0)
"""Range of the learning rates, of which the runs of a cohort are spaced evenly in logs."""

GROUPS = (4, 8, 16)
EPSILON = 1e-4
"""Added to a group's standard deviation, as trainers do."""


class Task(NamedTuple):
    """A bandit before training.

    Attributes
    ----------
    logits : ndarray of shape (PROMPTS, ARMS)
        The right arm is the first.
    missed : float
        Share of right answers that the verifier refuses: the plateau is 1 minus it.
    momentum : float
        Of SGD, EMA form: 0 or 0.9.
    """

    logits: FloatArray
    missed: float
    momentum: float


def draw_task(rng: np.random.Generator, momentum: float) -> Task:
    """Draw difficulty, its spread over prompts, and the verifier's misses."""
    logits = rng.normal(0.0, 0.5, (PROMPTS, ARMS))
    level, spread = rng.uniform(-0.5, 1.5), rng.uniform(0.5, 1.5)
    logits[:, 0] += level + spread * rng.standard_normal(PROMPTS)
    return Task(logits, rng.uniform(0.0, 0.2), momentum)


def train(
    task: Task, rate: float, group: int, rng: np.random.Generator, steps: int = STEPS
) -> FloatArray:
    """Train by GRPO; mean reward of every step's completions, shape (steps,)."""
    logits, velocity = task.logits.copy(), np.zeros_like(task.logits)
    rewards = np.empty(steps)
    for step in range(steps):
        chosen = rng.choice(PROMPTS, PROMPTS_PER_STEP, replace=False)
        policy = np.exp(logits[chosen] - logits[chosen].max(axis=1, keepdims=True))
        policy /= policy.sum(axis=1, keepdims=True)
        levels = np.cumsum(policy, axis=1)[:, None, :]
        drawn = rng.random((PROMPTS_PER_STEP, group, 1))
        arms = np.minimum((drawn > levels).sum(axis=2), ARMS - 1)
        reward = (arms == 0) * (rng.random(arms.shape) >= task.missed)
        rewards[step] = reward.mean()
        centred = reward - reward.mean(axis=1, keepdims=True)
        advantage = centred / (reward.std(axis=1, keepdims=True) + EPSILON)
        # Advantages of a group sum to zero, so the policy's own term of the gradient drops out.
        gradient = np.zeros_like(logits)
        np.add.at(gradient, (chosen[:, None], arms), advantage / arms.size)
        velocity = task.momentum * velocity + (1 - task.momentum) * gradient
        logits = logits + rate * velocity
    return rewards


def make_cohort(number: int) -> list[PilotRun]:
    """Train the runs of one cohort on one bandit; even numbers without momentum.

    Parameters
    ----------
    number : int
        Decides every draw.
    """
    rng = np.random.default_rng([2606, number])
    task = draw_task(rng, 0.0 if number % 2 == 0 else 0.9)
    rates = np.geomspace(*RATES, RUNS)
    groups = rng.permutation(np.resize(GROUPS, RUNS))
    name = f"bandit-{number:02d}"
    return [
        PilotRun(
            id=f"{name}-{index}",
            path=name,
            model="softmax",
            task=name,
            parameters=float(task.logits.size),
            hyperparameters=PartialSettings(
                learning_rate=float(rate),
                group_size=int(group),
                prompts_per_step=PROMPTS_PER_STEP,
                optimizer="sgd",
                momentum=task.momentum,
                schedule="constant",
            ),
            step=np.arange(1.0, STEPS + 1),
            series={"reward": train(task, float(rate), int(group), rng)},
            reward_floor=0.0,
            reward_ceiling=1.0,
        )
        for index, (rate, group) in enumerate(zip(rates, groups, strict=True))
    ]
