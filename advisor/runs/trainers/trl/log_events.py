"""What a transformers trainer logs: train rows, evaluations, and the row that closes a run."""

from __future__ import annotations

from advisor.runs.logfiles.console_text import is_number

SUMMARY_KEY = "train_runtime"
"""Key of the row that closes a run."""

OF_SUMMARY = ("train_", "total_flos", "epoch", "step")
"""Beginnings of that row's own keys.

TRL adds to it the metrics that no other row has taken: the mean reward of fewer steps than a row
averages.
"""


COMPANIONS = frozenset({"epoch", "learning_rate", "grad_norm", "reward_std", "kl"})
"""Keys of which one stands beside the reward of a logged row, also where it has no loss."""


def is_event(cells: dict[str, str]) -> bool:
    """Whether a dict is what a trainer logs, rather than some other that was printed.

    A reward alone is no event: reward functions print what they found of a single completion.
    """
    if is_number(cells.get("loss")) or SUMMARY_KEY in cells or is_evaluation(cells):
        return True
    return is_number(cells.get("reward")) and not COMPANIONS.isdisjoint(cells)


def is_evaluation(cells: dict[str, str]) -> bool:
    """Whether a dict is what a trainer logs of an evaluation."""
    return any(key.startswith("eval_") and is_number(value) for key, value in cells.items())
