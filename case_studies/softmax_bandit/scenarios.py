"""The four failure modes, each brought about by its cause, and controls without it.

Whether a failure happened is measured on the policy itself: scenarios were changed until it did.
The gradual concentration was added after the diagnosis had missed the sudden one, as its contrast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from contexts import ACTIONS, Plan, Record, Task, jacobian, linear_task, softmax, train

from advisor.theory import BoolArray, FloatArray, stiffness_limit

EVERY = 20
"""Steps between evaluations."""


@dataclass(frozen=True)
class Scenario:
    """One cause, or its absence; ``happened`` judges records without the diagnosis."""

    name: str
    mode: str | None
    task: Task
    plan: Plan
    happened: Callable[[Record], BoolArray]


def scenarios() -> list[Scenario]:
    """Sick scenarios, each followed by its control."""
    return [*_hacking(), *_degeneracy(), *_concentration(), *_instability()]


def _hacking() -> list[Scenario]:
    """A rare action that scores without being right, found late."""
    base = linear_task()
    features, worth = base.held_out
    held = features, np.column_stack([worth, np.zeros(len(worth))])
    start = np.append(np.zeros(ACTIONS), -2.5)
    plan = Plan(2.0, 2000, kl_coefficient=0.002)

    def lost(record: Record) -> BoolArray:
        true = record.evaluated
        return np.asarray(true[:, -3:].mean(axis=1) < 2 / 3 * true.max(axis=1))

    return [
        Scenario(name, mode, Task(features=base.features, success=np.column_stack(
            [base.success, np.full(len(base.success), pays)]), held_out=held, start=start),
            plan, lost)
        for name, mode, pays in (
            ("an action scores 1 and is wrong", "reward_hacking", 0.99),
            ("the action scores 0", None, 0.0),
        )
    ]  # fmt: skip


def _degeneracy() -> list[Scenario]:
    """Prompts that hardly ever, or nearly always and hardly ever, succeed, in small groups."""
    base = linear_task()
    features, worth = base.held_out
    hopeless = np.full_like(base.success, 0.002)
    mixed = hopeless.copy()
    mixed[::2] = 0.998
    plan = Plan(2.0, 400, group_size=4)

    def silent(record: Record) -> BoolArray:
        return np.asarray(record.silent[:, -100:].mean(axis=1) > 0.9)

    def task(success: FloatArray) -> Task:
        there = np.resize(success[:, :1], (len(features), 1)) * np.ones_like(worth)
        return replace(base, success=success, held_out=(features, there))

    return [
        Scenario("hopeless prompts, groups of 4", "advantage_degeneracy", task(hopeless), plan,
                 silent),
        Scenario("half solved, half hopeless, groups of 4", "advantage_degeneracy", task(mixed),
                 plan, silent),
        Scenario("prompts of middling difficulty, groups of 16", None, base,
                 replace(plan, group_size=16), silent),
    ]  # fmt: skip


def _concentration() -> list[Scenario]:
    """A policy that favours a middling action, and steps too large to find the best in time."""
    base = linear_task()
    worth = np.array([0.55, 0.95, 0.3, 0.3, 0.3, 0.3])
    features = base.held_out[0]
    task = Task(
        base.features,
        np.tile(worth, (len(base.features), 1)),
        (features, np.tile(worth, (len(features), 1))),
        np.array([2.0, -2.5, 0.0, 0.0, 0.0, 0.0]),
    )
    rash = Plan(20.0, 1600, contexts_per_step=2, group_size=4, kl_coefficient=0.0)

    def stuck(record: Record) -> BoolArray:
        entropy, first = record.entropy[:, -100:].mean(axis=1), record.entropy[:, :5].mean(axis=1)
        return np.asarray((entropy < 0.1 * first) & (record.evaluated[:, -3:].mean(axis=1) < 0.7))

    return [
        Scenario("no penalty, large steps on small batches", "policy_concentration", task, rash,
                 stuck),
        Scenario("no penalty, small steps on larger batches", "policy_concentration", task,
                 replace(rash, learning_rate=0.3, contexts_per_step=8, group_size=16), stuck),
        Scenario("a penalty of .05, a tenth of the rate, larger batches", None, task,
                 replace(rash, learning_rate=2.0, contexts_per_step=8, group_size=16,
                         kl_coefficient=0.05), stuck),
    ]  # fmt: skip


def _instability() -> list[Scenario]:
    """Held samples and a rate that warms up beyond what the refresh map stands."""
    base, interval, penalty = linear_task(), 16, 0.3
    limit = float(stiffness_limit(0.9, interval, 1.0)) / stiffest(base, penalty)

    def plan(times: float, steps: int) -> Plan:
        return Plan(
            times * limit,
            1600,
            interval=steps,
            contexts_per_step=32,
            group_size=16,
            kl_coefficient=penalty,
            warmup_steps=1600,
        )

    def spread(record: Record) -> FloatArray:
        true = record.evaluated
        return np.asarray(true[:, -(true.shape[1] // 4) :].std(axis=1))

    out = []
    for times in (3, 10):
        calm = np.median(spread(train(base, plan(times, 1), 4, evaluate_every=EVERY, seed=1)))

        def swings(record: Record, limit: float = 3 * float(calm)) -> BoolArray:
            return np.asarray(spread(record) > limit)

        for steps, mode in ((interval, "dynamical_instability"), (1, None)):
            samples = f"held for {steps} steps" if steps > 1 else "fresh samples"
            name = f"rate up to {times} times the limit, {samples}"
            out.append(Scenario(name, mode, base, plan(times, steps), swings))
    return out


def stiffest(task: Task, penalty: float) -> float:
    """Largest curvature of the exact expected gradient at its fixed point, by differences."""

    def field(flat: FloatArray) -> FloatArray:
        logits = task.features @ flat.reshape(task.features.shape[1], -1) + task.start
        policy = softmax(logits)
        value = task.success - penalty * (np.log(policy) - task.start)
        pull = policy * (value - (policy * value).sum(axis=-1, keepdims=True))
        return np.asarray((task.features.T @ pull / len(task.features)).ravel())

    here = np.zeros(task.features.shape[1] * task.start.size)
    for _ in range(20_000):
        here = here + field(here)
    return float(-np.linalg.eigvals(jacobian(field, here, 1e-4)).real.min())
