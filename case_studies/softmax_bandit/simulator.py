"""A softmax bandit under GRPO: exact expected gradient, and the same with real sampling.

One state, a few actions with fixed rewards, and a KL penalty that gives the policy a fixed point
inside the simplex. Everything the theory speaks of can be measured here by other means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from contexts import jacobian, softmax

from advisor.theory import FloatArray

Samples = Literal["held", "corrected"]
Scaling = Literal["none", "leave_one_out", "group"]
Optimizer = Literal["sgd", "adamw"]

SPREAD_FLOOR = 1e-4


@dataclass(frozen=True)
class Bandit:
    """Actions with rewards, and a penalty of KL to the uniform policy.

    Attributes
    ----------
    rewards : ndarray of shape (actions,)
    kl_coefficient : float
    """

    rewards: FloatArray = field(default_factory=lambda: np.array([1.0, 0.6, 0.3, 0.1, 0.0, 0.0]))
    kl_coefficient: float = 0.3

    def field_at(self, logits: FloatArray) -> FloatArray:
        """Expected gradient of reward less penalty with centred advantages, shape (actions,)."""
        policy = softmax(logits)
        worth = self.rewards - self.kl_coefficient * np.log(policy)
        return policy * (worth - policy @ worth)

    def fixed_point(self) -> FloatArray:
        """Logits at which the expected gradient vanishes: rewards over the penalty."""
        return self.rewards / self.kl_coefficient

    def curvature(self) -> FloatArray:
        """Curvature at the fixed point, shape (actions, actions)."""
        return -jacobian(self.field_at, self.fixed_point(), 1e-5)

    def curvatures(self) -> FloatArray:
        """Curvatures h of all modes at the fixed point, descending."""
        return np.sort(np.linalg.eigvals(self.curvature()).real)[::-1]

    def stiffest(self) -> FloatArray:
        """Direction of the stiffest mode at the fixed point."""
        values, vectors = np.linalg.eig(self.curvature())
        return np.asarray(vectors[:, int(np.argmax(values.real))].real)


@dataclass(frozen=True)
class Plan:
    """How a bandit is trained; ``completions`` None takes the exact expectation."""

    learning_rate: float
    momentum: float = 0.0
    interval: int = 1
    lag_cycles: int = 0
    samples: Samples = "held"
    groups: int = 8
    group_size: int | None = None
    scaling: Scaling = "none"
    optimizer: Optimizer = "sgd"


def train(bandit: Bandit, plan: Plan, start: FloatArray, steps: int, seed: int = 0) -> FloatArray:
    """Train from some logits.

    Returns
    -------
    path : ndarray of shape (steps + 1, actions)
        Logits; momentum is in EMA form, so that k is the learning rate times the curvature.
    """
    rng = np.random.default_rng(seed)
    logits, velocity, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
    snapshots = [start.copy()] * (plan.lag_cycles + 1)
    path = [logits.copy()]
    batch = None
    for step in range(steps):
        if step % plan.interval == 0:
            snapshots = [*snapshots[1:], logits.copy()]
            batch = _draw(bandit, plan, snapshots[0], rng)
        gradient = _gradient(bandit, plan, logits, snapshots[0], batch)
        velocity = plan.momentum * velocity + (1 - plan.momentum) * gradient
        if plan.optimizer == "adamw":
            second = 0.999 * second + 0.001 * gradient**2
            bias = np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8
            moved = velocity / (1 - plan.momentum ** (step + 1)) / bias
        else:
            moved = velocity
        logits = logits + plan.learning_rate * moved
        if not np.all(np.isfinite(logits)) or np.abs(logits).max() > 1e6:
            path += [np.full_like(start, np.inf)] * (steps - step)
            break
        path.append(logits.copy())
    return np.array(path)


def _draw(
    bandit: Bandit, plan: Plan, logits: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray] | None:
    """Actions and advantages of one batch of rollouts, or None for the expectation."""
    if plan.group_size is None:
        return None
    policy = softmax(logits)
    actions = rng.choice(policy.size, size=(plan.groups, plan.group_size), p=policy)
    rewards = bandit.rewards[actions]
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    if plan.scaling == "group":
        centred = centred / (rewards.std(axis=1, ddof=1, keepdims=True) + SPREAD_FLOOR)
    elif plan.scaling == "leave_one_out":
        # Centred on its own group a reward counts itself: (G - 1) / G of the drift is left.
        centred = centred * plan.group_size / (plan.group_size - 1)
    return actions, centred


def _gradient(
    bandit: Bandit,
    plan: Plan,
    logits: FloatArray,
    snapshot: FloatArray,
    batch: tuple[FloatArray, FloatArray] | None,
) -> FloatArray:
    seen = logits if plan.samples == "corrected" else snapshot
    if batch is None:
        return bandit.field_at(seen)
    actions, advantages = batch
    policy, old = softmax(logits), softmax(snapshot)
    weight = policy / old if plan.samples == "corrected" else np.ones_like(policy)
    pull = np.zeros_like(policy)
    np.add.at(pull, actions.ravel(), (advantages * weight[actions]).ravel())
    total = (advantages * weight[actions]).sum()
    surprise = -bandit.kl_coefficient * np.log(softmax(seen))
    penalty = softmax(seen) * (surprise - softmax(seen) @ surprise)
    return (pull - total * policy) / actions.size + penalty
