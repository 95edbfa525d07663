"""Common defaults, evaluated under the user's own posterior as reference points."""

from __future__ import annotations

RECIPES: dict[str, dict[str, float | int]] = {
    "TRL defaults": {
        "learning_rate": 1e-6,
        "group_size": 8,
        "minibatches_per_refresh": 1,
        "epochs_per_refresh": 1,
    },
    "verl example scripts": {
        "learning_rate": 1e-6,
        "group_size": 5,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 1,
    },
}
"""TRL 1.x ``GRPOConfig`` and verl's GRPO example scripts (``rollout.n`` 5, 1024/256 prompts)."""
