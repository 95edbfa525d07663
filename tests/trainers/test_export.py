"""What every export refuses, and what all of them share."""

from __future__ import annotations

import re

import pytest
import yaml
from launched import ADAPTED, STEPS, changed, run_script, words_of

from advisor.errors import InputError
from advisor.runs import Trainer

SCRIPTS = ("verl", "openrlhf")
EVERY = ("trl", *SCRIPTS, "ms-swift")
"""Trainers that can run any refresh interval; of the others tests/trainers/test_exported.py."""


@pytest.mark.parametrize("framework", EVERY)
@pytest.mark.parametrize(
    ("updates", "steps", "devices", "problem", "key", "advice"),
    [
        (
            {"prompts_per_step": 10.5},
            STEPS,
            1,
            "10.5 prompts per step is no",
            "prompts_per_step",
            "",
        ),
        ({"group_size": 1}, STEPS, 1, "a group of 1", "group_size", "at least 2"),
        ({}, STEPS, 0, "0 devices", "devices", "at least 1"),
        ({}, 0, 1, "0 steps", "steps", "at least 1"),
        ({}, STEPS, 5, "6 prompts x 8 completions = 48", "devices", "divides 48, such as 4"),
        (
            {"schedule": "cosine", "planned_steps": 400},
            STEPS,
            1,
            "planned over 400 steps and the run over 200",
            "planned_steps",
            "over 200 steps",
        ),
    ],
)
def test_what_is_missing_or_does_not_divide(
    framework, updates, steps, devices, problem, key, advice
):
    with pytest.raises(InputError) as refused:
        Trainer.export_config(changed(**updates), steps, framework, devices=devices)
    assert problem in refused.value.problem
    assert (refused.value.key or refused.value.argument) == key
    assert refused.value.advice is not None
    assert advice in refused.value.advice


@pytest.mark.parametrize(
    ("framework", "updates", "steps", "problem", "key", "advice"),
    [
        ("verl", {}, 197, "197 optimizer steps are no whole number", "steps", "192 or 200 steps"),
        ("openrlhf", {}, 197, "are no whole number", "steps", "192 or 200 steps"),
        ("openrlhf", {}, 5, "last 8 each", "steps", "Plan 8 steps"),
        ("verl", {"warmup_steps": 12}, 200, "12 steps of warm-up", "warmup_steps", "8 or 16"),
        ("verl", {"schedule": "linear"}, 200, "no linear schedule", "schedule", "trl or openrlhf"),
        ("openrlhf", {"optimizer": "sgd"}, 200, "has no SGD", "optimizer", "adamw"),
        ("trl", {"lag": 8.0}, 200, "8 steps old", "lag", "lag = 0"),
        ("verl", {"lag": 8.0}, 200, "8 steps old", "lag", "lag = 0"),
        ("ms-swift", {"lag": 8.0}, 200, "8 steps old", "lag", "lag = 0"),
        ("openrlhf", {"lag": 3.0}, 200, "a lag of 3 steps", "lag", "that 8 divides"),
        ("trl", {"importance_ratio": False}, 200, "importance ratio", "importance_ratio", "verl"),
        ("openrlhf", {"importance_ratio": False}, 200, "K = 8", "importance_ratio", "verl"),
        ("slime", {}, 200, "'slime' is none", "trainer", "trl, verl, openrlhf"),
    ],
)
def test_what_one_trainer_cannot_be_told(framework, updates, steps, problem, key, advice):
    with pytest.raises(InputError) as refused:
        Trainer.export_config(changed(**updates), steps, framework)
    assert problem in refused.value.problem
    assert (refused.value.key or refused.value.argument) == key
    assert advice in str(refused.value.advice)


@pytest.mark.parametrize("framework", EVERY)
def test_a_fresh_sample_needs_no_importance_ratio(framework):
    fresh = changed(minibatches_per_refresh=1, epochs_per_refresh=1, importance_ratio=False)
    assert Trainer.export_config(fresh, STEPS, framework)


@pytest.mark.parametrize(
    ("framework", "variable"),
    [
        *(("verl", name) for name in ("MODEL", "TRAIN_FILES", "VAL_FILES")),
        *(("openrlhf", name) for name in ("MODEL", "PROMPT_DATA", "REWARD")),
        *(("ms-swift", name) for name in ("MODEL", "DATASET", "REWARD")),
    ],
)
def test_a_script_says_which_variable_it_lacks(framework, variable, tmp_path):
    done = run_script(
        Trainer.export_config(changed(), STEPS, framework), tmp_path, without=variable
    )
    assert done.returncode != 0
    assert f"set {variable} to" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 6, 8, 12, 16, 24, 48])
def test_micro_steps_fill_one_optimizer_step(devices):
    found = yaml.safe_load(Trainer.export_config(changed(), STEPS, "trl", devices=devices))
    batch, accumulation = (
        found[name] for name in ("per_device_train_batch_size", "gradient_accumulation_steps")
    )
    assert batch * accumulation * devices == 6 * 8
    assert batch <= 8
    if 6 % devices == 0:
        assert batch == 8  # whole groups where the devices allow it


ALL = {
    **ADAPTED,
    "loss_averaging": "sequence",
    "precision": "bf16",
    "max_prompt_length": 300,
    "max_completion_length": 512,
}
ASKED = {
    "trl": {
        "loss_averaging": "loss_type: LOSS",
        "precision": "bf16: SWITCH",
        "max_completion_length": "max_completion_length: TOKENS",
        "adapter_alpha": "--lora_alpha ALPHA",
        "adapter_targets": "--lora_target_modules MODULES",
    },
    "verl": {
        "loss_averaging": "actor_rollout_ref.actor.loss_agg_mode=MODE",
        "precision": "actor_rollout_ref.actor.fsdp_config.dtype=TYPE",
        "max_prompt_length": "data.max_prompt_length=TOKENS",
        "max_completion_length": "data.max_response_length=TOKENS",
        "adapter_alpha": "actor_rollout_ref.model.lora_alpha=ALPHA",
        "adapter_targets": "actor_rollout_ref.model.target_modules=[NAMES]",
    },
    "openrlhf": {
        "loss_averaging": "--actor.loss_agg_mode MODE",
        "precision": "--ds.param_dtype TYPE",
        "max_prompt_length": "--data.max_len TOKENS",
        "max_completion_length": "--rollout.max_new_tokens TOKENS",
        "adapter_alpha": "--ds.lora.alpha ALPHA",
        "adapter_targets": "--ds.lora.target_modules MODULES",
    },
    "ms-swift": {
        "loss_averaging": "--loss_type LOSS",
        "precision": "--torch_dtype TYPE",
        "max_prompt_length": "--max_length TOKENS",
        "max_completion_length": "--max_completion_length TOKENS",
        "adapter_alpha": "--lora_alpha ALPHA",
        "adapter_targets": "--target_modules MODULES",
    },
}


def asking_lines(text: str) -> list[str]:
    """Lines behind those that count, commented out."""
    lines = [line.strip() for line in text.splitlines()]
    heads = [n for n, line in enumerate(lines) if line.startswith("# Not told by the pilots")]
    return [line for line in lines[heads[0] + 1 :] if line.startswith("#")] if heads else []


@pytest.mark.parametrize(
    ("framework", "setting", "line"),
    [(name, setting, line) for name, lines in ASKED.items() for setting, line in lines.items()],
)
def test_what_the_pilots_do_not_tell_is_asked_for_and_not_made_up(
    framework, setting, line, tmp_path
):
    text = Trainer.export_config(changed(**{**ALL, setting: None}), STEPS, framework)
    asked = asking_lines(text)
    assert [each.startswith(f"# {line}") for each in asked].count(True) == 1
    assert all("default: " in each for each in asked)
    name = re.split(r"[=: ]", line)[0]
    if framework != "trl":
        words = words_of(text, tmp_path)
        assert not [word for word in words if word.partition("=")[0] == name]
    else:
        assert name not in yaml.safe_load(text)


@pytest.mark.parametrize("framework", EVERY)
def test_full_fine_tuning_is_not_asked_about_adapters(framework):
    plain = changed(**{**dict.fromkeys(ALL), "adapter": "full"})
    asked = asking_lines(Trainer.export_config(plain, STEPS, framework))
    assert asked
    assert not [line for line in asked if "lora" in line]


@pytest.mark.parametrize(
    ("framework", "updates"),
    [
        ("trl", {"loss_averaging": "sequence_sum"}),
        ("verl", {"loss_averaging": "local_token"}),
        ("openrlhf", {"loss_averaging": "fixed_length"}),
        ("openrlhf", {"precision": "fp32"}),
    ],
)
def test_a_choice_that_a_trainer_lacks_is_said(framework, updates):
    text = Trainer.export_config(changed(**{**ALL, **updates}), STEPS, framework)
    (line,) = asking_lines(text)
    assert f"no word for the pilots' {next(iter(updates.values()))}" in line


SAVED = {
    "trl": "save_steps: {steps}\n",
    "verl": "trainer.save_freq={batches}\n",
    "openrlhf": "--ckpt.save_steps {batches}\n",
    "ms-swift": "--save_steps {steps}\n",
}


@pytest.mark.parametrize("framework", EVERY)
@pytest.mark.parametrize(("steps", "every"), [(200, 200), (160, 40), (96, 24), (8, 8)])
def test_a_run_is_saved_at_its_end_and_between_batches_of_rollouts(framework, steps, every):
    text = Trainer.export_config(changed(), steps, framework)
    assert SAVED[framework].format(steps=every, batches=every // 8) in text
