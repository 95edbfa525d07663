"""What keys that no trainer declares may hold, by the words of their names.

A loop that optimises a stand-in often logs the truth too, under a name of its own:
``correctness_true``, ``ndcg``, ``g_minus_f``. Which of them is the truth is for behaviour, and for
the user, to say; here they are only not thrown away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from advisor.runs.trainers.derived import read_data

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|%")
WORDS = {name: frozenset(listed) for name, listed in read_data("common")["words"].items()}
SUCCESS, EVALUATION = WORDS["success"], WORDS["evaluation"]
PLAIN = WORDS["mean"] | WORDS["train"] | WORDS["plain"]
"""Words that leave the meaning of a reward as it is."""
LIKE_A_SCORE = WORDS["score"] | WORDS["gap"] | EVALUATION | WORDS["named_like_a_score"]


@lru_cache(maxsize=65536)
def words(key: str) -> tuple[str, ...]:
    """Words of a key in lower case: ``RL/Mean_Reward`` and ``meanReward`` have two or three."""
    return tuple(word.lower() for word in WORD.findall(key))


def likely_reward(keys: Sequence[str]) -> str | None:
    """Key that by its words is the mean reward of a step, else the share of right completions."""
    rewards = [key for key in keys if is_like_a_reward(key)]
    if rewards:
        return min(rewards, key=_rank)
    shares = [key for key in keys if is_success(key)]
    if shares and any(WORDS["reinforcement"].intersection(words(key)) for key in keys):
        return min(shares, key=_rank)
    return None


@lru_cache(maxsize=65536)
def is_like_a_reward(key: str) -> bool:
    """Whether a key has the word reward, and no word that would make it something else."""
    found = words(key)
    rewards = WORDS["reward"].intersection(found)
    return len(rewards) == 1 and all(word in PLAIN or word in WORDS["reward"] for word in found)


@lru_cache(maxsize=65536)
def is_success(key: str) -> bool:
    """Whether a key is the share of completions of a training batch that are right."""
    found = words(key)
    known = SUCCESS | WORDS["share"] | PLAIN
    return (
        bool(SUCCESS.intersection(found))
        and bool(WORDS["train"].intersection(found))
        and all(word in known for word in found)
    )


def _rank(key: str) -> tuple[bool, bool, int]:
    found = words(key)
    return not WORDS["mean"].intersection(found), "total" in found, len(found)


@lru_cache(maxsize=65536)
def counts_evaluations(key: str) -> bool:
    """Whether a key counts or times what was evaluated."""
    found = words(key)
    return not EVALUATION.isdisjoint(found) and not WORDS["count"].isdisjoint(found)


@lru_cache(maxsize=65536)
def is_like_a_score(key: str) -> bool:
    """Whether a key may be the mean of a measure of answers, or of its gap to the reward."""
    if len(key) > 80:  # a sentence
        return False
    found = frozenset(words(key))
    if not WORDS["no_mean"].isdisjoint(found):
        return False
    is_score = key.lower() in WORDS["named_like_a_score"] or is_gap(key)
    return is_score or not WORDS["score"].isdisjoint(found)


@lru_cache(maxsize=65536)
def is_gap(key: str) -> bool:
    """Whether a key is the difference between what is optimised and what is meant."""
    return not WORDS["gap"].isdisjoint(words(key))
