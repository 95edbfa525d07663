"""Keys of hand-written loops: JSON with a step log, consoles with ``reward=0.25``."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.runs.trainers.generic.settings import derive
from advisor.runs.trainers.key_table import KeyTable, plain, spellings
from advisor.runs.trainers.registry import key_tables

NAME = "own loop"

TRACES = (
    "reward_trace",
    "reward_history",
    "reward_curve",
    "mean_rewards",
    "mean_reward_history",
    "avg_rewards",
    "train_rewards",
    "rewards",
)
"""Names of a list that holds the mean reward of each step."""


def _series(*names: str) -> tuple[str, ...]:
    """Names as they stand, of lists, and with blanks as consoles print them."""
    ends = ("", "_trace", "_history", "s")
    spelled = [name + end for name in names for end in ends]
    return tuple(dict.fromkeys([*spelled, *(name.replace("_", " ") for name in spelled)]))


def unless_another(keys: Iterable[str]) -> str | None:
    """Name of the hand-written loop, unless some keys are the marks of another trainer."""
    names = [name for key in keys for name in spellings(plain(key))]
    others = (other for other in key_tables() if other.name != NAME)
    return None if any(other.score(names) for other in others) else NAME


KEY_TABLE = KeyTable(
    name=NAME,
    marks=(r"zvf(?:_trace)?", r"gu(?:_trace)?", *TRACES[:5]),
    reward=(
        ("reward",),
        ("mean_reward",),
        ("reward_mean",),
        ("avg_reward",),
        ("reward_avg",),
        ("mean reward",),
        ("avg reward",),
        ("train_reward",),
        *((name,) for name in TRACES),
    ),
    never_reward={
        "reward_sum": "it adds up a batch",
        "best_reward": "it is the best so far",
        "max_reward": "it is the best of a batch",
        "peak_reward": "it is the best of a run",
        "min_reward": "it is the worst of a batch",
        "running_reward": "it averages over many steps",
    },
    optimizer_steps=("step", "global_step", "steps", "train_step", "training_step", "update"),
    evaluations=(
        r"(?:eval|val|validation|test|held_?out)[_ ](?:mean[_ ])?reward",
        r"(?:eval|val|validation|test|held_?out)[_ ]acc(?:uracy)?",
        r"(?:eval|val|validation|test|held_?out)[_ ](?:score|pass@1)",
    ),
    series={
        "silent_group_share": _series("zvf", "zero_variance_frac", "zero_variance_fraction"),
        "reward_std_within_group": ("group_reward_std", "within_group_std", "group_std"),
        "entropy": _series("entropy", "mean_entropy"),
        "gradient_norm": _series("grad_norm", "gradient_norm"),
        "clip_share": _series("clip_frac", "clip_fraction"),
        "learning_rate": _series("lr", "learning_rate"),
        "kl": _series("kl", "mean_kl", "kl_div", "kl_ref", "kl_divergence"),
        "completion_length": _series(
            *("mean_length", "avg_length", "response_length", "completion_length", "mean_len"),
            *("avg_response_len", "avg_resp_len", "avg_len", "mean_completion_length"),
        ),
        "step_time_seconds": _series("step_time", "time_per_step"),
        "loss": (
            *_series("loss", "policy_loss", "actor_loss", "mean_loss"),
            *("losses", "loss_curve"),
        ),
    },
    understood=(
        r"gu(?:_trace|_history)?",
        r"acc(?:uracy)?(?:_trace|_history)?",
        r"(?:correct|format)(?:_trace|_history|_rate)?",
        r"(?:base )?(?:\d+ )?accuracy",
        r"(?:base )?pass@\d+",
        r"adv(?:antages?)?[_ ](?:avg|mean|std)",
        r"timestamps?|elapsed(?:_s|_sec|_time)?|time|wall_clock(?:_sec)?",
        r"epochs?",
        r"status",
    ),
    setting_marks=(
        "zero_loss_pct",
        "zero_reward_pct",
        "reward_trace",
        "step_log",
        "mu",
        "num_groups",
    ),
    derive=derive,
)
