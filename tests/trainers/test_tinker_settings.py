"""Keys and settings of Tinker and its cookbook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stated import checked

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("Tinker").keys[0]

CONFIG: dict[str, Any] = {
    "learning_rate": 4e-5,
    "dataset_builder.batch_size": 128,
    "dataset_builder.group_size": 16,
    "dataset_builder.seed": 0,
    "model_name": "Qwen/Qwen3-8B",
    "max_tokens": 256,
    "kl_penalty_coef": 0.0,
    "loss_fn": "importance_sampling",
    "num_substeps": 4,
    "lora_rank": 32,
    "async_config": None,
    "remove_constant_reward_groups": False,
    "max_steps": 50,
}

KEYS = (
    "step progress/batch optim/lr progress/done_frac time/run_evals env/all/ac_tokens_per_turn "
    "env/all/ob_tokens_per_turn env/all/turns_per_episode env/all/total_episodes "
    "env/all/reward/total env/all/format env/all/correct env/all/by_group/frac_mixed "
    "env/all/by_group/frac_all_good env/all/by_group/frac_all_bad time/train "
    "optim/kl_sample_train_v1 optim/kl_sample_train_v2 optim/entropy time/total "
    "test/env/all/reward/total test/env/all/correct env/gsm8k/reward/total kl_policy_base "
    "sampling_client/step_mean training_client/step time/sampling:mean rollout_errors/total"
)
ROW = KEYS.split()


def test_config_of_a_synchronous_run() -> None:
    derived = KEY_TABLE.derive(CONFIG)
    assert derived.facts == {
        "learning_rate": 4e-5,
        "group_size": 16,
        "prompts_per_step": 32,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 1,
        "lag": 0.0,
        "optimizer": "adam",
        "momentum": 0.9,
        "planned_steps": 200,
        "kl_coefficient": 0.0,
        "importance_ratio": True,
        "advantage_scaling": "none",
        "adapter": "lora",
        "adapter_rank": 32,
        "max_completion_length": 256,
        "model": "Qwen/Qwen3-8B",
        "seed": 0,
    }
    checked(derived)
    assert derived.arithmetic.keys() == derived.facts.keys()
    assert derived.arithmetic["prompts_per_step"] == (
        "dataset_builder.batch_size 128 / num_substeps 4 = 32"
    )
    (assumed,) = derived.assumptions
    assert "fixes Adam's first decay at 0.9" in assumed


def test_an_asynchronous_run_is_as_old_as_allowed() -> None:
    stated = {**CONFIG, "async_config.max_steps_off_policy": 3}
    derived = KEY_TABLE.derive(stated)
    assert derived.facts["lag"] == 12.0
    assert derived.arithmetic["lag"] == (
        "async_config.max_steps_off_policy 3 x num_substeps 4 = 12"
    )
    assert any(line.startswith("lag 12:") for line in derived.assumptions)


def test_substeps_that_are_not_stated_are_the_default_and_said() -> None:
    derived = KEY_TABLE.derive({})
    assert derived.facts == {"minibatches_per_refresh": 1, "epochs_per_refresh": 1}
    assert derived.assumptions == ("num_substeps 1 (tinker-cookbook's default)",)


def test_clipping_is_read_off_thresholds_of_the_ratio() -> None:
    stated = {
        "loss_fn": "ppo",
        "loss_fn_config.clip_low_threshold": 0.9,
        "loss_fn_config.clip_high_threshold": 1.28,
    }
    facts = KEY_TABLE.derive(stated).facts
    assert (facts["clip_low"], facts["clip_high"]) == (0.1, 0.28)
    facts = KEY_TABLE.derive({**stated, "loss_fn": "cispo"}).facts
    assert "clip_low" not in facts


def test_doubled_keys_count_where_the_plain_ones_are_absent() -> None:
    facts = KEY_TABLE.derive(
        {"X_group_size": 8, "X_learning_rate": 1e-5, "learning_rate": 2e-5}
    ).facts
    assert (facts["group_size"], facts["learning_rate"]) == (8, 2e-5)


def test_removed_groups_are_said() -> None:
    derived = KEY_TABLE.derive({**CONFIG, "remove_constant_reward_groups": True})
    assert any("groups with spread" in line for line in derived.assumptions)


@pytest.mark.parametrize("value", ["x", None, -1, 0, float("nan"), True, "max(1, 2)", 2.5])
def test_values_that_are_no_counts_are_left_out(value: Any) -> None:
    facts = KEY_TABLE.derive({"num_substeps": value, "groups_per_batch": value}).facts
    assert facts["minibatches_per_refresh"] == 1
    assert "prompts_per_step" not in facts


def test_every_key_of_a_row_is_understood() -> None:
    assert [key for key in ROW if not KEY_TABLE.understands(key)] == []
    assert KEY_TABLE.score(ROW) >= 10


def test_a_row_is_a_batch_of_rollouts() -> None:
    assert {"step", "progress/batch", "training_client/step"} <= set(KEY_TABLE.refreshes)
    assert not KEY_TABLE.optimizer_steps


def test_the_stand_in_is_what_is_optimised() -> None:
    assert KEY_TABLE.reward[-1] == ("reward/mean",)
    assert "stand-in" in KEY_TABLE.never_reward["reward/f"]


def test_real_rows(real_logs: Path) -> None:
    path = real_logs / "arvindcr4__tinker-rl-lab" / "arithmetic_metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 100
    keys = {key for row in rows for key in row}
    assert [key for key in keys if not KEY_TABLE.understands(key)] == []
    for row in rows:
        silent = row[KEY_TABLE.series["all_right_share"][0]]
        silent += row[KEY_TABLE.series["all_wrong_share"][0]]
        assert silent == pytest.approx(1 - row["env/all/by_group/frac_mixed"])
