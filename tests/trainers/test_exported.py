"""Configurations for prime-rl, NeMo-RL and ms-swift: what they say, and what they refuse."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from launched import ADAPTED, STEPS, changed, words_of

from advisor.errors import InputError
from advisor.runs import Trainer

CARRIED: dict[str, Any] = {
    **ADAPTED,
    "loss_averaging": "token",
    "precision": "bf16",
    "max_prompt_length": 300,
    "max_completion_length": 512,
}
ONCE = {"epochs_per_refresh": 1}
FRESH = {**ONCE, "minibatches_per_refresh": 1, "advantage_scaling": "none"}


def overrides(framework, folder, **updates):
    """Overrides of a script, by key."""
    script = Trainer.export_config(changed(**updates), STEPS, framework, devices=2)
    words = words_of(script, folder)
    return dict(word.split("=", 1) for word in words if "=" in word)


def flags(folder, **updates):
    """Arguments of ms-swift's script."""
    words = words_of(
        Trainer.export_config(changed(**updates), STEPS, "ms-swift", devices=2), folder
    )
    assert words[0] == "rlhf"
    found: dict[str, list[str]] = {}
    for word in words[1:]:
        if word.startswith("--"):
            found[word[2:]] = last = []
        else:
            last.append(word)
    return {name: " ".join(values) for name, values in found.items()}


def table(steps=STEPS, devices=2, **updates):
    return tomllib.loads(
        Trainer.export_config(changed(**{**FRESH, **updates}), steps, "prime-rl", devices=devices)
    )


def test_ms_swift_has_the_batches_of_trl(tmp_path):
    found = flags(tmp_path, **CARRIED, kl_coefficient=0.01, clip_high=0.28, warmup_steps=5)
    batch, rounds = int(found["per_device_train_batch_size"]), int(found["steps_per_generation"])
    accumulation = int(found["gradient_accumulation_steps"])
    assert batch * accumulation * 2 == 6 * 8
    assert rounds == 4 * accumulation
    assert (found["num_generations"], found["num_iterations"], found["max_steps"]) == (
        "8",
        "2",
        "200",
    )
    assert float(found["learning_rate"]) == 2.1544346900318822e-06
    assert (found["beta"], found["epsilon"], found["epsilon_high"]) == ("0.01", "0.2", "0.28")
    assert (found["loss_type"], found["scale_rewards"]) == ("dapo", "group")
    assert (found["tuner_type"], found["lora_rank"], found["lora_alpha"]) == ("lora", "16", "32")
    assert found["target_modules"] == "q_proj v_proj"
    assert (found["torch_dtype"], found["max_length"]) == ("bfloat16", "300")
    assert (found["lr_scheduler_type"], found["warmup_steps"]) == ("constant_with_warmup", "5")
    assert "weight_decay" not in found


def test_nemo_rl_counts_batches_of_rollouts(tmp_path):
    found = overrides("nemo-rl", tmp_path, **CARRIED, **ONCE, clip_high=0.28, kl_coefficient=0.01)
    prompts = int(found["grpo.num_prompts_per_step"])
    group = int(found["grpo.num_generations_per_prompt"])
    assert prompts * group == 4 * int(found["policy.train_global_batch_size"]) == 4 * 48
    assert int(found["grpo.max_num_steps"]) * 4 == STEPS
    assert found["grpo.normalize_rewards"] == "true"
    assert found["grpo.use_leave_one_out_baseline"] == "false"
    assert float(found["policy.optimizer.kwargs.lr"]) == 2.1544346900318822e-06
    assert found["policy.optimizer.kwargs.betas"] == "[0.9,0.999]"
    assert found["loss_fn.reference_policy_kl_penalty"] == "0.01"
    assert (found["loss_fn.ratio_clip_min"], found["loss_fn.ratio_clip_max"]) == ("0.2", "0.28")
    assert found["loss_fn.token_level_loss"] == "true"
    assert found["policy.max_total_sequence_length"] == "812"
    assert found["policy.generation.max_new_tokens"] == "512"
    assert found["policy.dtensor_cfg.lora_cfg.enabled"] == "true"
    assert found["policy.dtensor_cfg.lora_cfg.dim"] == "16"
    assert found["policy.dtensor_cfg.lora_cfg.target_modules"] == "[q_proj,v_proj]"
    assert found["policy.dtensor_cfg.lora_cfg.match_all_linear"] == "false"
    other = overrides("nemo-rl", tmp_path, **ONCE, advantage_scaling="none", importance_ratio=False)
    assert other["grpo.normalize_rewards"] == "false"
    assert other["loss_fn.disable_ppo_ratio"] == "true"
    assert other["policy.dtensor_cfg.lora_cfg.enabled"] == "false"
    assert not [name for name in other if name.endswith((".dim", "target_modules"))]


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 8])
def test_schedules_of_nemo_rl_follow_one_another(schedule, warmup, tmp_path):
    found = overrides("nemo-rl", tmp_path, **ONCE, schedule=schedule, warmup_steps=4 * warmup)
    text = found["policy.scheduler"]
    names = [part.split(",")[0] for part in text.split("lr_scheduler.")[1:]]
    last = {"constant": "ConstantLR", "linear": "LinearLR", "cosine": "CosineAnnealingLR"}[schedule]
    assert names == (["LinearLR", last] if warmup else [last])
    # SequentialLR takes one milestone less than schedulers.
    assert text.endswith(f"{{milestones:[{warmup or ''}]}}]")
    assert f"{50 - warmup}}}" in text


def test_prime_rl_takes_one_step_for_a_batch():
    found = table(**CARRIED, lag=2.0)
    assert found["max_steps"] == STEPS
    assert found["seq_len"] == 812
    own = found["orchestrator"]
    assert (own["batch_size"], own["group_size"], own["max_off_policy_steps"]) == (48, 8, 2)
    assert own["train"]["sampling"]["max_completion_tokens"] == 512
    trainer = found["trainer"]
    assert trainer["optim"] == {"type": "adamw", "lr": 2.1544346900318822e-06, "betas1": 0.9}
    assert trainer["model"]["optimization_dtype"] == "bfloat16"
    lora = {"rank": 16, "alpha": 32, "target_modules": ["q_proj", "v_proj"]}
    assert trainer["model"]["lora"] == lora
    assert found["inference"]["vllm"]["enable_lora"] is True
    assert found["deployment"] == {"num_train_gpus": 2}


def test_prime_rl_has_a_node_for_inference_where_training_fills_its_own():
    found = table(devices=16)["deployment"]
    whole = {"num_train_nodes": 2, "num_infer_nodes": 1, "gpus_per_node": 8}
    assert found == {"type": "multi_node", **whole}


@pytest.mark.parametrize(
    ("updates", "scheduler"),
    [
        ({}, {"type": "constant"}),
        ({"warmup_steps": 8}, {"type": "linear", "warmup_steps": 8, "decay_steps": 0}),
        (
            {"schedule": "linear", "warmup_steps": 8},
            {"type": "linear", "warmup_steps": 8, "decay_steps": 192},
        ),
        ({"schedule": "cosine"}, {"type": "cosine", "warmup_steps": 0}),
    ],
)
def test_schedules_of_prime_rl(updates, scheduler):
    assert table(**updates)["trainer"]["scheduler"] == scheduler


def test_a_model_of_prime_rl_arrives_as_it_was_named():
    for name in ("org/m", 'a "b"', "it's\\mine"):
        text = Trainer.export_config(changed(**FRESH), STEPS, "prime-rl", model=name)
        assert tomllib.loads(text)["model"]["name"] == name == json.loads(json.dumps(name))


@pytest.mark.parametrize(
    ("framework", "updates", "says"),
    [
        ("prime-rl", {**FRESH, "minibatches_per_refresh": 4}, "used for 4 optimizer steps"),
        ("prime-rl", {**FRESH, "advantage_scaling": "group"}, "spread of the group"),
        ("prime-rl", {**FRESH, "kl_coefficient": 0.01}, "KL term of weight 0.01"),
        ("prime-rl", {**FRESH, "lag": 0.5}, "a lag of 0.5 steps"),
        ("prime-rl", {**FRESH, "lag": 1.0, "importance_ratio": False}, "importance ratio"),
        ("nemo-rl", {}, "used 2 times"),
        ("nemo-rl", {**ONCE, "advantage_scaling": "batch"}, "spread of the batch"),
        ("nemo-rl", {**ONCE, "optimizer": "sgd"}, "AdamW"),
        ("nemo-rl", {**ONCE, "lag": 4.0}, "4 steps old"),
        ("nemo-rl", {**ONCE, "warmup_steps": 6}, "6 steps of warm-up"),
    ],
)
def test_what_one_cannot_run_is_refused(framework, updates, says):
    with pytest.raises(InputError, match=says):
        Trainer.export_config(changed(**updates), STEPS, framework)
    # What is refused is that alone.
    Trainer.export_config(changed(**(FRESH if framework == "prime-rl" else ONCE)), STEPS, framework)
