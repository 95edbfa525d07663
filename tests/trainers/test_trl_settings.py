from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stated import Derived, checked

from advisor.runs import PilotRun, Trainer, read_runs

KEY_TABLE, ASYNC_KEY_TABLE = Trainer.named("TRL").keys

BATCH = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 4, "num_generations": 8}


def derive(**settings: Any) -> Derived:
    return checked(KEY_TABLE.derive({k.replace("__", "."): v for k, v in settings.items()}))


def understands(key: str, folder: Path) -> bool:
    """Whether a key beside those of TRL is one whose meaning is known."""
    path = folder / "run.jsonl"
    row = {"reward": 0.5, "reward_std": 0.1, "frac_reward_zero_std": 0.1, key: 0.25}
    path.write_text("".join(json.dumps(row | {"step": n}) + "\n" for n in range(1, 12)))
    return key not in read_runs(path)[0].keys_ignored


def test_names_of_series_are_the_package_s() -> None:
    assert set(KEY_TABLE.series) <= set(PilotRun.SERIES)
    assert set(ASYNC_KEY_TABLE.series) <= set(PilotRun.SERIES)


@pytest.mark.parametrize(
    "key",
    [
        # TRL 0.14, 0.17, 1.9, from its log_history, from W&B and from a notebook.
        "completion_length",
        "rewards/exact",
        "rewards/exact/mean",
        "rewards/exact/std",
        "train/rewards/exact/mean",
        "rewards / exact / mean",
        "completions / mean_terminated_length",
        "clip_ratio/high_max",
        "sampling/sampling_logp_difference/mean",
        "tools/call_frequency",
        "eval_completions/mean_length",
        "eval/rewards/exact/std",
        "entropy_coef",
        "num_tokens",
        "Training Loss",
        "train_steps_per_second",
        "profiling/Time taken: UnslothGRPOTrainer.vLLM.generate",
        # ms-swift, and Megatron below it.
        "entropy/max",
        "memory(GiB)",
        "train_speed(iter/s)",
        "elapsed time per iteration (ms)",
        "rollout_correction/k3_kl",
        "number of skipped iterations",
    ],
)
def test_keys_that_are_understood(tmp_path: Path, key: str) -> None:
    assert understands(key, tmp_path)


@pytest.mark.parametrize("key", ["my_metric", "reward_hacking_score", "step:1", "actor/lr"])
def test_keys_that_are_not(tmp_path: Path, key: str) -> None:
    assert not understands(key, tmp_path)


def test_marks_tell_trl_from_others() -> None:
    old = ["loss", "kl", "reward", "reward_std", "completion_length", "rewards/exact", "step"]
    new = ["loss", "reward", "frac_reward_zero_std", "clip_ratio/region_mean"]
    other = ["step", "reward", "loss", "critic/score/mean", "actor/lr", "response_length/mean"]
    assert KEY_TABLE.score(old) == 2
    assert KEY_TABLE.score(new) == 2
    assert KEY_TABLE.score(other) == 0
    # The first of equals is chosen, so the asynchronous trainer must win its own logs outright.
    asynchronous = [*new, "kl", "ratio", "weight_sync_time_s", "training_tok/s"]
    assert ASYNC_KEY_TABLE.score(new) == KEY_TABLE.score(new)
    assert ASYNC_KEY_TABLE.score(asynchronous) > KEY_TABLE.score(asynchronous)


def test_kl_of_the_asynchronous_trainer_is_to_the_old_policy() -> None:
    assert KEY_TABLE.series["kl"] == ("kl",)
    assert "kl" not in ASYNC_KEY_TABLE.series
    assert ASYNC_KEY_TABLE.series["policy_kl"] == ("kl",)


def test_values_taken_over() -> None:
    derived = derive(
        learning_rate="5e-6",
        num_generations=8,
        beta=0,
        max_completion_length="736",
        max_steps="250",
        seed="0",
        model_name_or_path="Qwen/Qwen3-4B",
        dataset_name="openai/gsm8k",
        model_num_parameters=1,
        optim='"paged_adamw_8bit"',
        adam_beta1="0.95",
        lr_scheduler_type='"cosine"',
        logging_steps=5,
        fp16="not is_bfloat16_supported()",
    )
    assert derived.facts == {
        "learning_rate": 5e-06,
        "group_size": 8,
        "kl_coefficient": 0.0,
        "max_completion_length": 736,
        "planned_steps": 250,
        "seed": 0,
        "model": "Qwen/Qwen3-4B",
        "task": "openai/gsm8k",
        "optimizer": "adamw",
        "momentum": 0.95,
        "schedule": "cosine",
        "logging_steps": 5,
    }
    assert derived.arithmetic["learning_rate"] == "learning_rate 5e-06 (learning_rate)"
    assert derived.arithmetic["kl_coefficient"] == "kl_coefficient 0 (beta)"
    assert derived.assumptions == ()


@pytest.mark.parametrize(
    "value", [None, "None", "", "max_prompt_length", "a - b", "nan", "inf", -1, True, 0, "0"]
)
def test_what_is_no_setting_is_left_out(value: Any) -> None:
    derived = derive(learning_rate=value, max_completion_length=value, max_steps=value)
    assert derived.facts == {}


def test_a_setting_of_the_run_comes_before_one_nested_deeper() -> None:
    settings = {"model.dual.learning_rate": 1.0, "args.learning_rate": 2.0}
    assert KEY_TABLE.derive(settings).facts["learning_rate"] == 2.0
    settings = {"model/num_parameters": 3e9, "peft_config.default.r": 16, "x.r": 4}
    facts = KEY_TABLE.derive(settings).facts
    assert facts == {"parameters": 3e9, "adapter": "lora", "adapter_rank": 16}


def test_prompts_per_step() -> None:
    derived = derive(**BATCH, num_processes=2)
    assert derived.facts["prompts_per_step"] == 8
    assert derived.arithmetic["prompts_per_step"] == (
        "per_device_train_batch_size 8 x gradient_accumulation_steps 4 x 2 devices / "
        "num_generations 8 = 8"
    )
    assert len(derived.assumptions) == 1
    assert "would make 64 prompts" in derived.assumptions[0]
    assert "minibatches_per_refresh" not in derived.facts


@pytest.mark.parametrize(
    ("settings", "prompts"),
    [
        ({}, 4),
        ({"world_size": "4"}, 16),
        ({"n_gpu": 2}, 8),
        ({"_n_gpu": 1}, 4),
        ({"_n_gpu": 2}, 8),
        ({"global_world_size": 3}, 12),
        ({"total_train_batch_size": 64}, 8),
        ({"num_generations": 16}, 2),
        ({"num_generations": None}, None),
        ({"per_device_train_batch_size": None}, None),
        ({"steps_per_generation": 1, "num_generations": 64}, 0.5),
    ],
)
def test_prompts_by_devices_and_groups(settings: dict[str, Any], prompts: float | None) -> None:
    assert derive(**{**BATCH, **settings}).facts.get("prompts_per_step") == prompts


def test_what_is_assumed_of_the_batch_is_said() -> None:
    derived = derive(per_device_train_batch_size=8, num_generations=8)
    assert derived.facts["prompts_per_step"] == 1
    assert "trained on 1 device (the settings do not say on how many)" in derived.assumptions
    assert "gradient_accumulation_steps 1 (transformers' default)" in derived.assumptions


def test_a_batch_that_no_group_fits_counts_prompts() -> None:
    one = {**BATCH, "per_device_train_batch_size": 1, "gradient_accumulation_steps": 2}
    derived = derive(**one, world_size=1)
    assert derived.facts["prompts_per_step"] == 2
    assert "counted in prompts = 2" in derived.arithmetic["prompts_per_step"]
    assert "TRL 0.14" in derived.assumptions[0]
    derived = derive(**{**one, "per_device_train_batch_size": 3}, world_size=1)
    assert "prompts_per_step" not in derived.facts
    assert "TRL 0.14, 6 prompts" in derived.assumptions[0]
    assert "Unsloth, 2 prompts" in derived.assumptions[0]


def test_unsloth_may_have_raised_a_batch_that_fits() -> None:
    batch = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 4}
    derived = derive(**batch, num_generations=4, world_size=1)
    assert derived.facts["prompts_per_step"] == 1
    assert "raises it to num_generations 4: 4 prompts" in derived.assumptions[0]
    told = derive(**batch, num_generations=4, total_train_batch_size=4)
    assert "Unsloth" not in told.assumptions[0]


@pytest.mark.parametrize(
    ("settings", "minibatches", "passes"),
    [
        ({"steps_per_generation": 16}, 4, None),
        ({"steps_per_generation": 4, "num_iterations": 2}, 1, 2),
        ({"generation_batch_size": 128, "world_size": 1}, 4, None),
        ({"generation_batch_size": 128, "world_size": 2}, 2, None),
        ({"num_iterations": "4"}, None, 4),
        ({"steps_per_generation": 2}, 1, None),
        ({"steps_per_generation": 2, "num_iterations": 2}, None, None),
        ({"steps_per_generation": 6, "num_iterations": 2}, None, None),
    ],
)
def test_refresh_interval(
    settings: dict[str, Any], minibatches: int | None, passes: int | None
) -> None:
    derived = derive(**BATCH, **settings)
    assert derived.facts.get("minibatches_per_refresh") == minibatches
    assert derived.facts.get("epochs_per_refresh") == passes
    left_out = any("refresh interval was left out" in line for line in derived.assumptions)
    assert left_out == (minibatches is None and passes is None)


def test_megatron_counts_in_global_batches() -> None:
    derived = derive(global_batch_size=64, num_generations=8, steps_per_generation=4)
    assert derived.facts["prompts_per_step"] == 8
    assert derived.facts["minibatches_per_refresh"] == 4
    assert derived.assumptions == ()


def test_lag() -> None:
    derived = derive(max_staleness=4)
    assert derived.facts["lag"] == 4
    assert derived.arithmetic["lag"] == "max_staleness 4 x weight_sync_steps 1 (TRL's default) = 4"
    assert "weight_sync_steps 1 (TRL's default)" in derived.assumptions
    assert derive(max_staleness=0, weight_sync_steps=2).facts["lag"] == 0
    derived = derive(**BATCH, steps_per_generation=8, num_iterations=2, async_generate="True")
    assert derived.facts["lag"] == 4
    assert "lag" not in derive(**BATCH, async_generate=False).facts


@pytest.mark.parametrize(
    ("settings", "schedule", "warmup"),
    [
        ({"lr_scheduler_type": "linear", "warmup_ratio": 0.1, "max_steps": 205}, "linear", 21),
        ({"lr_scheduler_type": "SchedulerType.COSINE", "warmup_steps": 7}, "cosine", 7),
        ({"lr_scheduler_type": "cosine", "warmup_ratio": 0.1}, "cosine", None),
        ({"lr_scheduler_type": "constant", "warmup_ratio": 0.1, "max_steps": 9}, "constant", 0),
        ({"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 5}, "constant", 5),
        ({"lr_scheduler_type": "cosine_with_min_lr", "warmup_steps": 5}, None, 5),
        ({"warmup_steps": 0.05, "max_steps": 200}, None, 10),
        ({"warmup_steps": 0, "warmup_ratio": 0.1, "max_steps": 200}, None, 20),
        ({"warmup_steps": 3, "warmup_ratio": 0.1, "max_steps": 200}, None, 3),
        ({"warmup_ratio": 0.1, "max_steps": -1, "total_optimization_steps": 90}, None, 9),
        ({"warmup_steps": 0}, None, 0),
        ({"warmup_ratio": 0.1, "max_steps": -1}, None, None),
    ],
)
def test_schedule(settings: dict[str, Any], schedule: str | None, warmup: int | None) -> None:
    facts = derive(**settings).facts
    assert facts.get("schedule") == schedule
    assert facts.get("warmup_steps") == warmup


@pytest.mark.parametrize(
    ("settings", "momentum"),
    [
        ({}, None),
        ({"optim_args": None}, None),
        ({"optim_args": "momentum=0.8"}, 0.8),
        ({"optim_args": "weight_decay=0.1, momentum=0.8,nesterov=True"}, 0.8),
        ({"optim_args": "'momentum=0.8'"}, 0.8),
        ({"optim_args": "nesterov_momentum=0.8"}, None),
        ({"optim_args": "momentum=high"}, None),
    ],
)
@pytest.mark.parametrize("optim", ["sgd", "OptimizerNames.SGD"])
def test_momentum_of_sgd(optim: str, settings: dict[str, Any], momentum: float | None) -> None:
    derived = derive(optim=optim, adam_beta1=0.9, **settings)
    assert derived.facts["optimizer"] == "sgd"
    assert derived.facts.get("momentum") == momentum
    assert any("5.3 or later" in line for line in derived.assumptions) == bool(momentum)


def test_what_only_adamw_reads_of_the_optimizer() -> None:
    facts = derive(optim="adamw_torch", adam_beta1=0.95, optim_args="momentum=0.8").facts
    assert facts == {"optimizer": "adamw", "momentum": 0.95}
    averaging = derive(optim="schedule_free_sgd", optim_args="momentum=0.8")
    assert averaging.facts == {}
    assert "schedule_free_sgd" in averaging.assumptions[0]


@pytest.mark.parametrize(
    ("settings", "low", "high"),
    [
        ({"epsilon": 0.2}, 0.2, 0.2),
        ({"epsilon": 0.2, "epsilon_high": 0.28}, 0.2, 0.28),
        ({"epsilon": "0.2", "epsilon_high": None}, 0.2, 0.2),
        ({"epsilon_high": 5.0, "loss_type": "cispo"}, None, 5.0),
        ({"epsilon": 0.2, "loss_type": "sapo"}, None, None),
    ],
)
def test_clipping(settings: dict[str, Any], low: float | None, high: float | None) -> None:
    facts = derive(**settings).facts
    assert (facts.get("clip_low"), facts.get("clip_high")) == (low, high)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "group"),
        ("True", "group"),
        ('"group"', "group"),
        ("batch", "batch"),
        (False, "none"),
        ("none", "none"),
        (None, None),
        ("gdpo", None),
    ],
)
def test_scaling_of_advantages(value: Any, kind: str | None) -> None:
    assert derive(scale_rewards=value).facts.get("advantage_scaling") == kind


@pytest.mark.parametrize(
    ("settings", "adapter", "rank"),
    [
        ({"lora_r": 16}, "lora", 16),
        ({"_lora_rank": "32"}, "lora", 32),
        ({"lora_r": 16, "use_peft": False}, "full", None),
        ({"lora_r": 16, "use_peft": True}, "lora", 16),
        ({"lora_rank": 8, "train_type": "full"}, "full", None),
        ({"lora_rank": 8, "tuner_type": "lora"}, "lora", 8),
        ({"train_type": "longlora"}, "lora", None),
        ({"train_type": "adalora_x", "lora_rank": 4}, "lora", 4),
        ({"trained_percent": "2.94"}, "lora", None),
        ({"trained_percent": "2.94", "full_finetuning": True}, "full", None),
        ({"trained_percent": "99.1"}, None, None),
        ({"train_type": "boft", "lora_rank": 4}, None, None),
        ({"lora_r": 0}, None, None),
        ({"full_finetuning": True, "lora_r": 16}, "full", None),
    ],
)
def test_adapter(settings: dict[str, Any], adapter: str | None, rank: int | None) -> None:
    facts = derive(**settings).facts
    assert (facts.get("adapter"), facts.get("adapter_rank")) == (adapter, rank)


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"logging_steps": 0.05, "max_steps": 210}, 11),
        ({"logging_steps": 0.05}, None),
        ({"logging_steps": 500, "logging_strategy": "epoch"}, None),
        ({"logging_steps": 10, "logging_strategy": "IntervalStrategy.STEPS"}, 10),
    ],
)
def test_logging_steps(settings: dict[str, Any], steps: int | None) -> None:
    assert derive(**settings).facts.get("logging_steps") == steps


def test_kl_within_the_reward_is_said() -> None:
    assert "KL penalty" in derive(kl_in_reward=True, beta=0.04).assumptions[0]
    assert derive(kl_in_reward=True, beta=0).assumptions == ()
    assert derive(kl_in_reward=False).assumptions == ()


def test_a_list_of_one_data_set_names_the_task() -> None:
    assert KEY_TABLE.derive({"dataset.0": "a/b"}).facts == {"task": "a/b"}
    assert KEY_TABLE.derive({"dataset.0": "a/b", "dataset.1": "c/d"}).facts == {}


def test_hyperparameters_beside_real_tables(real_logs: Path) -> None:
    files = sorted(real_logs.rglob("*hparams*.json"))
    assert len(files) > 20
    for path in files:
        settings = json.loads(path.read_text(encoding="utf-8"))
        derived = derive(**settings)
        assert derived.facts["group_size"] == int(settings["num_generations"]), path
        assert derived.facts["learning_rate"] == float(settings["learning_rate"]), path
        assert derived.facts["prompts_per_step"] >= 1, path
        assert derived.facts["optimizer"] == "adamw", path
        text = str(settings.get("max_completion_length"))
        expected = int(text) if text.isdigit() else None
        assert derived.facts.get("max_completion_length") == expected, path


@pytest.mark.parametrize(
    ("loss_type", "averaging"),
    [
        ("grpo", "sequence"),
        ("bnpo", "local_token"),
        ("dapo", "token"),
        ("dr_grpo", "fixed_length"),
        ("cispo", None),
    ],
)
def test_what_the_loss_is_a_mean_over(loss_type: str, averaging: str | None) -> None:
    assert derive(loss_type=loss_type).facts.get("loss_averaging") == averaging


@pytest.mark.parametrize(
    ("switches", "precision"),
    [
        ({"bf16": True, "fp16": False}, "bf16"),
        ({"bf16": "False", "fp16": "True"}, "fp16"),
        ({"bf16": False, "fp16": False}, "fp32"),
        ({"fp16": False}, None),
        ({"bf16": "is_bfloat16_supported()"}, None),
    ],
)
def test_precision_is_told_by_both_switches(switches: dict[str, Any], precision: str) -> None:
    assert derive(**switches).facts.get("precision") == precision


@pytest.mark.parametrize(
    ("settings", "alpha", "targets"),
    [
        (
            {
                "peft_config.default.r": 16,
                "peft_config.default.lora_alpha": 32,
                "peft_config.default.target_modules.0": "q_proj",
                "peft_config.default.target_modules.1": "v_proj",
            },
            32,
            "q_proj,v_proj",
        ),
        ({"use_peft": True, "lora_r": 8, "lora_target_modules": "['k', 'o']"}, None, "k,o"),
        ({"lora_r": 8, "lora_target_modules": "all-linear"}, None, "all-linear"),
        # An expression over names is none of them.
        ({"lora_r": 8, "target_modules": r"(?:.*?(?:language).*?)"}, None, None),
        ({"use_peft": False, "lora_r": 8, "lora_alpha": 32}, None, None),
    ],
)
def test_shape_of_the_adapter(settings: dict[str, Any], alpha: int, targets: str) -> None:
    facts = KEY_TABLE.derive(settings).facts
    assert (facts.get("adapter_alpha"), facts.get("adapter_targets")) == (alpha, targets)
