"""Loops that people write themselves: JSON with a step log, consoles with ``reward=0.25``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from advisor.trainers.derived import Derived
from advisor.trainers.key_table import KeyTable, plain, spellings
from advisor.trainers.registry import key_tables
from advisor.trainers.settings_extractor import Taking

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

PROMPTS = (
    "batch",
    "prompts_per_step",
    "prompts_per_batch",
    "num_prompts",
    "questions_per_step",
    "n_prompts",
)
"""Prompts of one step; ``batch_size`` is not among them: it counts completions as often."""

STEPS = ("steps", "max_steps", "num_steps", "n_steps", "total_steps", "n_grpo_steps")
SCHEDULES = ("lr_scheduler_type", "lr_scheduler", "lr_schedule", "schedule", "scheduler")
KINDS = {
    "constant": "constant",
    "none": "constant",
    "linear": "linear",
    "cosine": "cosine",
}
LEAST_CLIP = 0.01
"""Below it an ``epsilon`` is Adam's, not a trust region."""

BOTH_CLIPS = ("clip_eps", "clip_epsilon", "eps_clip", "epsilon", "cliprange", "clip_range")


def _series(*names: str) -> tuple[str, ...]:
    """Names as they stand, of lists, and with blanks as consoles print them."""
    ends = ("", "_trace", "_history", "s")
    spelled = [name + end for name in names for end in ends]
    return tuple(dict.fromkeys([*spelled, *(name.replace("_", " ") for name in spelled)]))


def unless_another(keys: Iterable[str]) -> str | None:
    """Name of the hand-written loop, unless some keys are the marks of another trainer.

    Parameters
    ----------
    keys : iterable of str
        Keys of a log whose format does not tell the trainer.

    Returns
    -------
    name : str or None
    """
    names = [name for key in keys for name in spellings(plain(key))]
    others = (other for other in key_tables() if other.name != NAME)
    return None if any(other.score(names) for other in others) else NAME


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a hand-written loop, beyond the names that many loops share.

    Parameters
    ----------
    settings : mapping of str to object

    Returns
    -------
    derived : Derived
    """
    taking = Taking(settings)
    prompts = taking.amount(PROMPTS)
    if prompts is not None and prompts[1] > 0:
        taking.keep("prompts_per_step", prompts[1], f"{prompts[1]:g} prompts a step ({prompts[0]})")
        if prompts[0] == "batch":
            taking.assumptions.append(
                f"batch {prompts[1]:g} taken as prompts per optimizer step (not completions)"
            )
    taking.keep_count("planned_steps", STEPS)
    taking.keep_count("warmup_steps", ("warmup_steps", "lr_warmup_steps", "num_warmup_steps"), 0)
    taking.keep_count(
        "epochs_per_refresh",
        ("num_iterations", "ppo_epochs", "inner_epochs", "epochs_per_step", "mu"),
    )
    taking.keep_amount(
        "kl_coefficient", ("kl_coefficient", "kl_coef", "kl_weight", "beta_kl", "kl_beta", "beta")
    )
    schedule = taking.text(SCHEDULES)
    kind = KINDS.get(str(schedule.value).lower()) if schedule is not None else None
    if schedule is not None and kind is not None:
        taking.keep("schedule", kind, f"schedule {schedule.value} ({schedule.key})")
    optimizer = taking.text(("optimizer", "optim"))
    if optimizer is not None and str(optimizer.value).lower() in ("adamw", "adam", "sgd"):
        name = str(optimizer.value).lower()
        taking.keep("optimizer", name, f"optimizer {optimizer.value} ({optimizer.key})")
    taking.keep_count("max_completion_length", ("max_gen_len", "max_response_length", "max_new"))
    for ours, own in (("clip_low", "epsilon_low"), ("clip_high", "epsilon_high")):
        bound = taking.amount((own, ours, *BOTH_CLIPS))
        if bound is not None and bound[1] >= LEAST_CLIP:
            taking.keep(ours, bound[1], f"{ours} {bound[1]:g} ({bound[0]})")
    return taking.derived()


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
    setting_marks=("zero_loss_pct", "zero_reward_pct", "reward_trace", "step_log"),
    derive=derive,
)
