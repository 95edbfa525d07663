"""Keys of Tinker and its cookbook in ``metrics.jsonl``."""

from __future__ import annotations

from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.tinker.settings import MARKS, derive

KEY_TABLE = KeyTable(
    name="Tinker",
    marks=(
        r"env/all/.+",
        r"progress/(?:batch|done_frac)",
        r"optim/kl_sample_train_v[12]",
        r"(?:sampling|training)_client/step.*",
        r"reward/g_minus_f",
    ),
    reward=(("env/all/reward/total",), ("reward/total",), ("reward/mean",)),
    never_reward={
        "reward/f": "it is the true goal, and the run may optimise a stand-in (reward/mean)",
        "reward/g": "it is one part of what is optimised (reward/mean)",
        "reward/g_minus_f": "it is a difference of two rewards",
    },
    refreshes=("step", "progress/batch", "training_client/step", "progress/step"),
    evaluations=(
        r"(?!env/)(?:[^/]+/)+env/all/reward/total",
        r"(?!env/)(?:[^/]+/)+env/all/(?:correct|accuracy)",
        r"test/reward/(?:mean|total)",
    ),
    series={
        "entropy": ("optim/entropy", "policy/entropy"),
        "learning_rate": ("optim/lr",),
        "kl": ("kl_policy_base",),
        "policy_kl": ("kl_pre_post_v1",),
        "mismatch_kl": ("optim/kl_sample_train_v1", "optim/kl_sample_train_v2"),
        "completion_length": ("env/all/ac_tokens_per_turn",),
        "all_right_share": ("env/all/by_group/frac_all_good",),
        "all_wrong_share": ("env/all/by_group/frac_all_bad",),
        "step_time_seconds": ("time/total",),
    },
    parts=r"(?:env/all|reward)/(?P<name>correct|format|f|g)",
    understood=(
        r"env/.+",
        r"(?:[^/]+/)+env/.+",
        r"test/.+",
        r"time/.+",
        r"progress/.+",
        r"optim/.+",
        r"(?:sampling|training)_client/.+",
        r"rollout_errors/.+",
        r"(?:test|eval)/rollout_errors/.+",
        r"kl_(?:policy_base|pre_post_v[12])",
        r"timestamp",
    ),
    setting_marks=MARKS,
    derive=derive,
)
