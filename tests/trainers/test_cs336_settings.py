"""Keys and settings of CS336's GRPO loops."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from stated import checked, table_of

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("CS336").keys[0]

CONFIG: dict[str, Any] = {
    "model": "Qwen2.5-Math-1.5B",
    "train_path": "/workspace/MATH_like/competition_math/train.jsonl",
    "n_grpo_steps": 200,
    "learning_rate": 4e-05,
    "rollout_batch_size": 256,
    "group_size": 8,
    "max_new_tokens": 1024,
    "epochs_per_rollout_batch": 2,
    "train_batch_size": 32,
    "loss_type": "grpo_clip",
    "cliprange": 0.2,
    "cliprange_low": 0.2,
    "cliprange_high": 0.28,
    "kl_coef": 0.01,
    "use_std_normalization": True,
    "seed": 0,
}


def test_settings_and_their_arithmetic() -> None:
    derived = KEY_TABLE.derive(CONFIG)
    assert derived.facts == {
        "model": "Qwen2.5-Math-1.5B",
        "task": "competition_math",
        "group_size": 8,
        "prompts_per_step": 4,
        "minibatches_per_refresh": 8,
        "epochs_per_refresh": 2,
        "planned_steps": 3200,
        "learning_rate": 4e-05,
        "max_completion_length": 1024,
        "importance_ratio": True,
        "clip_low": 0.2,
        "clip_high": 0.28,
        "advantage_scaling": "group",
        "kl_coefficient": 0.01,
        "seed": 0,
    }
    assert checked(derived).facts
    assert derived.arithmetic.keys() == derived.facts.keys()
    arithmetic = derived.arithmetic
    assert arithmetic["minibatches_per_refresh"] == (
        "rollout_batch_size 256 / train_batch_size 32 = 8"
    )
    assert arithmetic["prompts_per_step"] == "train_batch_size 32 completions / group_size 8 = 4"
    assert arithmetic["planned_steps"] == "n_grpo_steps 200 x 8 mini-batches x 2 epochs = 3200"
    assert derived.assumptions == ()


def test_settings_in_sections_and_as_text() -> None:
    nested = {f"training.{key}": str(value) for key, value in CONFIG.items()}
    assert KEY_TABLE.derive(nested).facts == KEY_TABLE.derive(CONFIG).facts


def test_a_group_may_be_spread_over_optimizer_steps() -> None:
    facts = KEY_TABLE.derive({**CONFIG, "group_size": 64}).facts
    assert facts["prompts_per_step"] == 0.5


@pytest.mark.parametrize(
    ("loss", "ratio", "clip", "scaling", "remark"),
    [
        ("grpo_clip", True, 0.2, "group", None),
        ("reinforce_with_baseline", False, None, "group", None),
        ("no_baseline", False, None, "none", "not centred"),
        ("grpo_no_clip", True, None, "group", "not clipped"),
        ("a_loss_of_my_own", None, None, "group", None),
    ],
)
def test_losses(
    loss: str, ratio: bool | None, clip: float | None, scaling: str, remark: str | None
) -> None:
    derived = KEY_TABLE.derive({**CONFIG, "loss_type": loss})
    assert derived.facts.get("importance_ratio") is ratio
    assert derived.facts.get("clip_low") == clip
    assert derived.facts["advantage_scaling"] == scaling
    assert ("".join(derived.assumptions) == "") == (remark is None)
    assert (remark or "") in "".join(derived.assumptions)


def test_names_of_the_assignment_of_2026() -> None:
    derived = KEY_TABLE.derive(
        {
            "rollout_batch_size": 256,
            "train_batch_size": 64,
            "group_size": 8,
            "num_rollout_steps": 50,
            "importance_reweighting_method": "none",
            "advantage_normalizer": "none",
            "sampling_max_tokens": 512,
            "betas.0": 0.9,
            "dataset": "gsm8k",
        }
    )
    assert derived.facts["importance_ratio"] is False
    assert derived.facts["advantage_scaling"] == "none"
    assert derived.facts["max_completion_length"] == 512
    assert derived.facts["momentum"] == 0.9
    assert derived.facts["task"] == "gsm8k"
    # The default that K needs is said twice, and said to be one.
    assert derived.facts["epochs_per_refresh"] == 1
    assert derived.facts["planned_steps"] == 200
    assert "default" in derived.arithmetic["epochs_per_refresh"]
    assert derived.assumptions == ("epochs_per_rollout_batch 1 (default of the assignment)",)
    for divisor, scaling in (("std", "group"), ("mean", None)):
        facts = KEY_TABLE.derive({"advantage_normalizer": divisor}).facts
        assert facts.get("advantage_scaling") == scaling


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"epochs_per_rollout_batch": "auto", "group_size": 0, "n_grpo_steps": 2.5},
        {"train_path": "data/train.jsonl", "model": None, "seed": True},
    ],
)
def test_what_is_no_setting_is_left_out(settings: dict[str, Any]) -> None:
    assert KEY_TABLE.derive(settings).facts == {}


def test_batches_that_do_not_divide_and_passes_of_another_kind() -> None:
    facts = KEY_TABLE.derive({**CONFIG, "train_batch_size": 100}).facts
    assert not {"minibatches_per_refresh", "planned_steps"} & facts.keys()
    without = {key: value for key, value in CONFIG.items() if key != "epochs_per_rollout_batch"}
    derived = KEY_TABLE.derive({**without, "n_train_steps_per_rollout_batch": 4})
    assert not {"epochs_per_refresh", "planned_steps"} & derived.facts.keys()
    assert derived.assumptions == ()


ROWS: list[dict[str, Any]] = [
    {"type": "eval", "grpo_step": 0, "optimizer_step": 0, "reward": 0.1},
    {"type": "rollout", "grpo_step": 1, "num_rollouts": 256, "group_size": 8, "reward": 0.2},
    *(
        {
            "type": "train",
            "grpo_step": 1,
            "optimizer_step": step,
            "rollout_epoch": 1,
            "epochs_per_rollout_batch": 1,
            "num_train_batches": 4,
            "train_reward": 0.2,
            "reference_kl": None,
            "loss_type": "grpo_clip",
            "cliprange": 0.2,
        }
        for step in range(1, 5)
    ),
]


def test_settings_in_the_rows() -> None:
    derived = KEY_TABLE.observe(table_of(ROWS))
    assert derived.facts == {
        "group_size": 8,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 1,
        "prompts_per_step": 8,
        "importance_ratio": True,
        "clip_low": 0.2,
        "clip_high": 0.2,
        "kl_coefficient": 0.0,
    }
    assert checked(derived).facts
    assert derived.arithmetic["prompts_per_step"] == (
        "num_rollouts 256 / num_train_batches 4 = 64 completions / group_size 8 = 8"
    )
    assert "null" in derived.arithmetic["kl_coefficient"]


def test_rows_that_differ_tell_nothing() -> None:
    changing = [*ROWS, {**ROWS[-1], "num_train_batches": 2, "loss_type": "no_baseline"}]
    facts = KEY_TABLE.observe(table_of(changing)).facts
    assert not {"minibatches_per_refresh", "importance_ratio"} & facts.keys()
    scored = [{**row, "reference_kl": 0.1} for row in ROWS]
    assert "kl_coefficient" not in KEY_TABLE.observe(table_of(scored)).facts
    assert KEY_TABLE.observe(table_of([{"reward": 1.0}])).facts == {}


def test_keys() -> None:
    assert KEY_TABLE.score(["grpo_step", "train_answer_accuracy", "reward"]) == 2
    assert KEY_TABLE.score(["step", "reward", "kl", "rewards/f/mean"]) == 0
    assert KEY_TABLE.refreshes[0] == "grpo_step"
    assert KEY_TABLE.train_kinds[0] == "rollout"
    names = {name for level in KEY_TABLE.reward for name in level}
    assert not names & set(KEY_TABLE.never_reward)
    assert not any(re.fullmatch(p, "reward") for p in KEY_TABLE.evaluations)
    assert not KEY_TABLE.understands("my_own_metric")


def test_real_runs(real_logs: Path) -> None:
    folder = real_logs / "ShibukiZero__assignment5-alignment"
    configs = sorted(folder.glob("*.config.json"))
    assert configs
    for path in configs:
        log = path.with_name(path.name.replace(".config.json", ".metrics.jsonl"))
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        stated = KEY_TABLE.derive(json.loads(path.read_text()))
        seen = KEY_TABLE.observe(table_of(rows))
        assert checked(stated).facts
        # What the rows show is what the config says, in every run.
        assert {key: stated.facts[key] for key in seen.facts} == seen.facts
        interval = stated.facts["minibatches_per_refresh"] * stated.facts["epochs_per_refresh"]
        updates = max(row.get("optimizer_step") or 0 for row in rows)
        assert updates == interval * max(row["grpo_step"] for row in rows)
        keys = {key for row in rows for key in row}
        assert [key for key in keys if not KEY_TABLE.understands(key)] == []
        assert KEY_TABLE.score(keys) > 3
