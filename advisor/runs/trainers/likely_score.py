"""Columns that may score what is meant by a reward, told by the words of their names.

A loop that optimises a stand-in often logs the truth beside it, under a name of its own:
``correctness_true``, ``ndcg``, ``g_minus_f``. Which of them is the truth is for behaviour, and for
the user, to say; here they are only not thrown away.
"""

from __future__ import annotations

from functools import lru_cache

from advisor.runs.trainers.likely_reward import words

SCORE = frozenset(
    {
        *("correct", "correctness", "accuracy", "acc", "true", "truth", "gold", "golden"),
        *("success", "succeeded", "solve", "solved", "pass", "passed", "win", "wins", "won"),
        *("exact", "em", "match", "ndcg", "mrr", "recall", "precision", "bleu", "rouge"),
        *("reward", "rewards", "score", "scores", "judge", "quality", "utility", "verified"),
        *("oracle", "holdout", "hidden", "real", "groundtruth", "gt", "human", "preference"),
    }
)
"""Words of a measure of answers."""

NAMED_LIKE_IT = frozenset({"f1", "r_true", "y_true"})

GAP = frozenset({"minus", "gap"})
"""Words of the difference between what is optimised and what is meant."""

NO_MEAN = frozenset(
    {
        *("std", "var", "min", "max", "median", "sum", "count", "num", "best", "total", "loss"),
        *("advantage", "advantages", "kl", "clip", "time", "sec", "seconds", "weight", "weights"),
        *("length", "len", "tokens", "token", "coef", "penalty", "zero", "zeros", "range", "scale"),
        *("std_dev", "spread", "entropy", "lr", "norm", "grad", "baseline", "threshold", "log"),
        *("logprob", "prob", "ratio", "rejected", "chosen", "margins", "error", "errors", "memory"),
        *("variance", "deviation", "quantile", "percentile", "running", "ema", "parse", "all"),
        *(
            "timing",
            "turns",
            "steps",
            "critic",
            "replay",
            "per",
            "groups",
            "group",
            "target",
            "goal",
            "value",
            "values",
            "mask",
            "prefix",
            "shaped",
        ),
    }
)
"""Words of a spread, an extreme, a sum, a cost or a setting."""

EVALUATION = frozenset({"eval", "val", "valid", "validation", "test", "evaluation", "heldout"})


OF_A_COUNT = frozenset(
    {"num", "n", "count", "seconds", "sec", "time", "examples", "samples", "prompts", "size"}
)
"""Words of how much was evaluated, or how long it took."""


@lru_cache(maxsize=65536)
def counts_evaluations(key: str) -> bool:
    """Whether a key counts or times what was evaluated."""
    found = words(key)
    return not EVALUATION.isdisjoint(found) and not OF_A_COUNT.isdisjoint(found)


@lru_cache(maxsize=65536)
def is_like_a_score(key: str) -> bool:
    """Whether a key may be the mean of a measure of answers, or of its gap to the reward."""
    if len(key) > MOST_LETTERS:
        return False
    found = frozenset(words(key))
    if not NO_MEAN.isdisjoint(found):
        return False
    return not SCORE.isdisjoint(found) or is_gap(key) or key.lower() in NAMED_LIKE_IT


@lru_cache(maxsize=65536)
def is_gap(key: str) -> bool:
    """Whether a key is the difference between what is optimised and what is meant."""
    return not GAP.isdisjoint(words(key))


MOST_LETTERS = 80
"""Longer names are sentences."""
