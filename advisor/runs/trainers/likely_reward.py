"""The train reward under a name that no trainer declares, told by the words it is made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|%")

REWARD = frozenset({"reward", "rewards"})
SUCCESS = frozenset(
    {"accuracy", "acc", "success", "solve", "solved", "correct", "correctness", "pass", "win"}
)
SHARE = frozenset({"rate", "ratio", "share", "fraction", "frac", "percent", "pct"})
MEAN = frozenset({"mean", "avg", "average"})
TRAIN = frozenset({"train", "training", "rollout", "rollouts", "batch", "generation"})
PLAIN = frozenset(
    {
        *("step", "episode", "per", "final", "raw", "grpo", "rl", "rlvr", "ppo", "policy", "actor"),
        *("critic", "env", "all", "overall", "total", "performance", "metrics", "stats", "log"),
        *("group", "sample", "task", "outcome", "completion", "completions", "response"),
    }
)
"""Words that leave the meaning of a reward as it is; any other may make it a part, a spread, an
evaluation or a mean over the run."""

OF_REINFORCEMENT = frozenset(
    {
        *("kl", "advantage", "advantages", "rollout", "rollouts", "completion", "completions"),
        *("grpo", "ppo", "clipfrac", "clip", "policy", "group", "groups"),
    }
)
"""Words of which one stands among the keys of a log of reinforcement learning."""


@lru_cache(maxsize=65536)
def words(key: str) -> tuple[str, ...]:
    """Words of a key in lower case: ``RL/Mean_Reward`` and ``meanReward`` have two or three."""
    return tuple(word.lower() for word in WORD.findall(key))


def likely_reward(keys: Sequence[str]) -> str | None:
    """Key that by its words is the mean reward of a step, else the share of right completions.

    Parameters
    ----------
    keys : sequence of str
        In the order of the file, none of which is declared as a reward.

    Returns
    -------
    key : str or None
        The plainest of those that qualify, a mean before a sum. A share of right completions
        counts only where it says that it is of training, and where another key is one of
        reinforcement learning: a classifier logs its accuracy too.
    """
    rewards = [key for key in keys if is_like_a_reward(key)]
    if rewards:
        return min(rewards, key=_rank)
    shares = [key for key in keys if is_success(key)]
    if shares and any(OF_REINFORCEMENT.intersection(words(key)) for key in keys):
        return min(shares, key=_rank)
    return None


@lru_cache(maxsize=65536)
def is_like_a_reward(key: str) -> bool:
    """Whether a key has the word reward, and no word that would make it something else."""
    found = words(key)
    return len(REWARD.intersection(found)) == 1 and all(
        word in REWARD or word in MEAN or word in TRAIN or word in PLAIN for word in found
    )


@lru_cache(maxsize=65536)
def is_success(key: str) -> bool:
    """Whether a key is the share of completions of a training batch that are right."""
    found = words(key)
    known = SUCCESS | SHARE | MEAN | TRAIN | PLAIN
    return (
        bool(SUCCESS.intersection(found))
        and bool(TRAIN.intersection(found))
        and all(word in known for word in found)
    )


def _rank(key: str) -> tuple[bool, bool, int]:
    found = words(key)
    return not MEAN.intersection(found), "total" in found, len(found)
