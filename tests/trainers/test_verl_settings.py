"""What verl's keys mean, and its settings in the package's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from reader_conformance import LogFormat
from stated import Derived, checked, overrides_in, table_of

from advisor.runs import PartialSettings, Trainer

KEY_TABLE = Trainer.named("verl").keys[0]
OBSERVED = KEY_TABLE.observed
observe = KEY_TABLE.observe

ACTOR = "actor_rollout_ref.actor."

WHOLE: dict[str, Any] = {
    "data.train_batch_size": 1024,
    "data.max_response_length": 512,
    "data.train_files": "~/data/rlhf/gsm8k/train.parquet",
    "data.seed": None,
    "actor_rollout_ref.hybrid_engine": True,
    "actor_rollout_ref.model.path": "Qwen/Qwen2.5-7B-Instruct",
    "actor_rollout_ref.model.lora_rank": 0,
    "actor_rollout_ref.rollout.n": 5,
    f"{ACTOR}ppo_mini_batch_size": 256,
    f"{ACTOR}ppo_epochs": 2,
    f"{ACTOR}clip_ratio": 0.3,
    f"{ACTOR}clip_ratio_low": 0.2,
    f"{ACTOR}clip_ratio_high": 0.28,
    f"{ACTOR}use_kl_loss": True,
    f"{ACTOR}kl_loss_coef": 0.001,
    f"{ACTOR}policy_loss.loss_mode": "vanilla",
    f"{ACTOR}optim.lr": 1e-6,
    f"{ACTOR}optim.optimizer": "AdamW",
    f"{ACTOR}optim.betas.0": 0.9,
    f"{ACTOR}optim.betas.1": 0.999,
    f"{ACTOR}optim.lr_warmup_steps": -1,
    f"{ACTOR}optim.lr_warmup_steps_ratio": 0.1,
    f"{ACTOR}optim.lr_scheduler_type": "cosine",
    f"{ACTOR}optim.warmup_style": None,
    f"{ACTOR}optim.total_training_steps": -1,
    "algorithm.adv_estimator": "grpo",
    "algorithm.norm_adv_by_std_in_grpo": True,
    "algorithm.use_kl_in_reward": False,
    "algorithm.kl_ctrl.kl_coef": 0.5,
    "trainer.total_training_steps": 435,
}


@pytest.mark.parametrize(
    ("stated", "gpus"),
    [
        ({"trainer.n_gpus_per_node": 8}, 8),
        ({"trainer.n_gpus_per_node": 8, "trainer.nnodes": 2}, 16),
        ({"trainer.n_gpus_per_node": 8, "trainer.nnodes": "${NODES}"}, None),
        ({"trainer.n_gpus_per_node": "$GPUS"}, None),
        ({"trainer.n_gpus_per_node": 8, "rollout.n_gpus_per_node": 8}, None),
        ({"trainer.nnodes": 2}, None),
    ],
)
def test_gpus_are_those_of_all_nodes_or_not_known(stated: dict[str, Any], gpus: int | None) -> None:
    assert derive({**WHOLE, **stated}).facts.get("gpus") == gpus


def derive(settings: dict[str, Any]) -> Derived:
    return checked(KEY_TABLE.derive(settings))


def test_whole_configuration() -> None:
    derived = derive(WHOLE)
    assert derived.facts == {
        "learning_rate": 1e-6,
        "group_size": 5,
        "prompts_per_step": 256,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 2,
        "lag": 0,
        "optimizer": "adamw",
        "momentum": 0.9,
        "schedule": "cosine",
        "warmup_steps": 43 * 8,
        "planned_steps": 435 * 8,
        "kl_coefficient": 0.001,
        "clip_low": 0.2,
        "clip_high": 0.28,
        "advantage_scaling": "group",
        "importance_ratio": True,
        "adapter": "full",
        "max_completion_length": 512,
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "task": "gsm8k",
    }
    assert derived.assumptions == ()
    assert derived.arithmetic["minibatches_per_refresh"] == (
        "train_batch_size 1024 / ppo_mini_batch_size 256 = 4"
    )
    assert derived.arithmetic["planned_steps"] == (
        "total_training_steps 435 x 8 optimizer steps each = 3480"
    )
    assert derived.arithmetic["warmup_steps"] == (
        "lr_warmup_steps_ratio 0.1 x 435 (total_training_steps 435) = 43 x 8 optimizer steps each "
        "= 344"
    )
    assert (
        PartialSettings(
            **{
                key: value
                for key, value in derived.facts.items()
                if key in PartialSettings.model_fields
            }
        ).refresh_interval
        == 8
    )


def test_quoted_values_give_the_same() -> None:
    quoted = {key: value if value is None else f'"{value}"' for key, value in WHOLE.items()}
    assert derive(quoted).facts == derive(WHOLE).facts
    bare = {key: str(value) for key, value in WHOLE.items()}
    assert derive(bare).facts == derive(WHOLE).facts


def test_nothing_is_derived_from_nothing() -> None:
    assert derive({}) == Derived()


def test_overrides_use_defaults_only_within_products() -> None:
    derived = derive({"data.train_batch_size": "512", "actor_rollout_ref.rollout.n": "8"})
    assert derived.facts == {
        "group_size": 8,
        "prompts_per_step": 256,
        "minibatches_per_refresh": 2,
        "epochs_per_refresh": 1,
    }
    assert "ppo_mini_batch_size 256 (verl's default)" in derived.arithmetic["prompts_per_step"]
    assert derived.assumptions == (
        "ppo_mini_batch_size 256 (verl's default)",
        "ppo_epochs 1 (verl's default)",
    )


@pytest.mark.parametrize(
    ("batch", "mini", "count", "prompts"),
    [(1024, 256, 4, 256), (512, 512, 1, 512), (2, 256, 1, 2), (100, 32, 4, 25)],
)
def test_mini_batches_count_prompts(batch: int, mini: int, count: int, prompts: float) -> None:
    settings = {**WHOLE, "data.train_batch_size": batch, f"{ACTOR}ppo_mini_batch_size": mini}
    facts = derive(settings).facts
    assert (facts["minibatches_per_refresh"], facts["prompts_per_step"]) == (count, prompts)


@pytest.mark.parametrize("bad", [0, -4, "x", "${data.y}", None, "1e40", 10**400, float("nan")])
def test_unusable_batch_sizes(bad: Any) -> None:
    derived = derive({f"{ACTOR}ppo_mini_batch_size": bad, f"{ACTOR}ppo_epochs": bad})
    assert "epochs_per_refresh" not in derived.facts
    assert "planned_steps" not in derived.facts


def test_epochs_that_are_no_count_leave_the_interval_open() -> None:
    facts = derive({**WHOLE, f"{ACTOR}ppo_epochs": 1.5}).facts
    assert facts["minibatches_per_refresh"] == 4
    assert not {"epochs_per_refresh", "planned_steps", "warmup_steps"} & facts.keys()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({f"{ACTOR}use_kl_loss": False}, 0),
        ({"algorithm.use_kl_in_reward": True}, 0.501),
        ({f"{ACTOR}use_kl_loss": False, "algorithm.use_kl_in_reward": True}, 0.5),
        ({f"{ACTOR}kl_loss_coef": None}, 0.001),
    ],
)
def test_kl(changes: dict[str, Any], expected: float) -> None:
    assert derive({**WHOLE, **changes}).facts["kl_coefficient"] == pytest.approx(expected)


def test_kl_of_versions_without_a_switch_for_the_reward() -> None:
    old = {key: value for key, value in WHOLE.items() if key != "algorithm.use_kl_in_reward"}
    assert derive(old).facts["kl_coefficient"] == 0.001
    assert derive({**old, f"{ACTOR}use_kl_loss": False}).facts["kl_coefficient"] == 0.5


def test_kl_of_overrides() -> None:
    assert "kl_coefficient" not in derive({"algorithm.kl_ctrl.kl_coef": 0.001}).facts
    on = derive({f"{ACTOR}use_kl_loss": "True"})
    assert on.facts["kl_coefficient"] == 0.001
    assert on.assumptions == ("kl_loss_coef 0.001 (verl's default)",)
    off = derive({f"{ACTOR}use_kl_loss": "False"})
    assert off.facts["kl_coefficient"] == 0
    assert off.assumptions[0].startswith("use_kl_in_reward False (verl's default)")
    changing = {"algorithm.use_kl_in_reward": True, "algorithm.kl_ctrl.type": "adaptive"}
    assert any("adaptive" in line for line in derive({**WHOLE, **changing}).assumptions)


def test_clip_ratio_alone() -> None:
    assert derive({f"{ACTOR}clip_ratio": 0.2}).facts == {"clip_low": 0.2, "clip_high": 0.2}
    unsure = derive({f"{ACTOR}clip_ratio": 0.3})
    assert unsure.facts == {}
    assert unsure.assumptions[0].startswith("clip_ratio 0.3 was left out")
    assert derive({f"{ACTOR}clip_ratio_high": 0.28}).facts == {"clip_high": 0.28}
    sides = {f"{ACTOR}clip_ratio_low": None, f"{ACTOR}clip_ratio_high": None}
    whole = derive({**WHOLE, **sides}).facts
    assert (whole["clip_low"], whole["clip_high"]) == (0.3, 0.3)


@pytest.mark.parametrize(
    ("estimator", "by_spread", "expected"),
    [
        ("grpo", True, "group"),
        ("AdvantageEstimator.GRPO", None, "group"),
        ("grpo", False, "none"),
        ("rloo", True, "none"),
        ("reinforce_plus_plus", True, "batch"),
        ("gae", True, "batch"),
        ("gpg", True, None),
    ],
)
def test_advantages(estimator: str, by_spread: bool | None, expected: str | None) -> None:
    name = "algorithm.norm_adv_by_std_in_grpo"
    derived = derive({**WHOLE, "algorithm.adv_estimator": estimator, name: by_spread})
    assert derived.facts.get("advantage_scaling") == expected
    assert any("not GRPO" in line for line in derived.warnings) == (estimator == "gae")
    assert any("verl's default" in line for line in derived.assumptions) == (by_spread is None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"optim.warmup_style": "constant"}, "constant"),
        ({"optim.lr_scheduler_type": None, "optim.lr_decay_style": "linear"}, "linear"),
        ({"optim.lr_scheduler_type": "inverse-square-root"}, None),
    ],
)
def test_schedule(changes: dict[str, Any], expected: str | None) -> None:
    settings = {**WHOLE, **{ACTOR + key: value for key, value in changes.items()}}
    assert derive(settings).facts.get("schedule") == expected


@pytest.mark.parametrize(
    ("steps", "ratio", "expected"),
    [
        (10, 0.5, 80),
        (0, 0.0, 0),
        (-1, 0.0, 0),
        (None, 0.2, 87 * 8),
        (-1, None, 0),
        (None, None, None),
    ],
)
def test_warmup_counts_batches_of_rollouts(
    steps: int | None, ratio: float | None, expected: int | None
) -> None:
    names = (f"{ACTOR}optim.lr_warmup_steps", f"{ACTOR}optim.lr_warmup_steps_ratio")
    settings = {**WHOLE, names[0]: steps, names[1]: ratio}
    assert derive(settings).facts.get("warmup_steps") == expected


def test_plan_that_verl_filled_in() -> None:
    settings = {**WHOLE, "trainer.total_training_steps": None}
    assert "planned_steps" not in derive(settings).facts
    assert "warmup_steps" not in derive(settings).facts
    filled = {**settings, f"{ACTOR}optim.total_training_steps": 100}
    assert derive(filled).facts["planned_steps"] == 800


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("AdamW8bit", "adamw"), ("_AdamW", "adamw"), ("adam", "adam"), ("SGD", "sgd"), ("muon", None)],
)
def test_optimizers(name: str, optimizer: str | None) -> None:
    derived = derive({**WHOLE, f"{ACTOR}optim.optimizer": name})
    assert derived.facts.get("optimizer") == optimizer
    assert any(name in line for line in derived.assumptions) == (optimizer is None)


@pytest.mark.parametrize("written", ["[0.95, 0.999]", "(0.95,0.999)"])
def test_momentum_of_a_list(written: str) -> None:
    assert derive({f"{ACTOR}optim.betas": written}).facts == {"momentum": 0.95}


@pytest.mark.parametrize(
    ("name", "override", "momentum"),
    [
        ("SGD", {}, None),
        ("SGD", {"momentum": 0.8}, 0.8),
        ("SGD", {"nesterov": True}, None),
        ("sgd", {}, 0.9),
        ("sgd", {"sgd_momentum": 0.5}, 0.5),
        ("AdamW", {"betas.0": 0.7, "betas.1": 0.99}, 0.7),
        ("AdamW", {"momentum": 0.8}, 0.9),
    ],
)
def test_momentum_by_optimizer(name: str, override: dict[str, Any], momentum: float | None) -> None:
    further = {f"{ACTOR}optim.override_optimizer_config.{key}": override[key] for key in override}
    derived = derive({**WHOLE, f"{ACTOR}optim.optimizer": name, **further})
    assert derived.facts.get("momentum") == momentum
    is_default = (name, override) == ("sgd", {})
    assert any("Megatron's default" in line for line in derived.assumptions) == is_default


def test_momentum_of_an_override() -> None:
    optim = f"{ACTOR}optim."
    written = f"+{optim}override_optimizer_config={{momentum:0.8}}"
    settings = overrides_in([f"{optim}optimizer=SGD", written])
    assert derive(settings).facts == {"optimizer": "sgd", "momentum": 0.8}


def test_lora() -> None:
    facts = derive({**WHOLE, "actor_rollout_ref.model.lora_rank": 32}).facts
    assert (facts["adapter"], facts["adapter_rank"]) == ("lora", 32)
    megatron = derive({**WHOLE, "actor_rollout_ref.model.lora.rank": 16}).facts
    assert (megatron["adapter"], megatron["adapter_rank"]) == ("lora", 16)


FULLY_ASYNC = {
    **WHOLE,
    "data.train_batch_size": 0,
    "actor_rollout_ref.hybrid_engine": False,
    "async_training.staleness_threshold": 0.5,
    "async_training.trigger_parameter_sync_step": 4,
    "async_training.require_batches": 2,
    "rollout.nnodes": 1,
    "rollout.total_rollout_steps": 512 * 100,
    f"{ACTOR}ppo_mini_batch_size": 32,
    f"{ACTOR}ppo_epochs": 1,
    f"{ACTOR}optim.lr_warmup_steps": 10,
    "trainer.total_training_steps": 7,
}


def test_fully_asynchronous() -> None:
    derived = derive(FULLY_ASYNC)
    assert derived.facts["prompts_per_step"] == 32
    assert derived.facts["minibatches_per_refresh"] == 8
    assert derived.facts["lag"] == 4
    # 51,200 prompts make 200 synchronisations of 256; each has 4 local updates of 2 steps.
    assert derived.facts["planned_steps"] == 1600
    assert derived.facts["warmup_steps"] == 20
    assert any("one synchronisation old" in line for line in derived.assumptions)
    on_time = {**FULLY_ASYNC, "async_training.staleness_threshold": 0}
    assert derive(on_time).facts["lag"] == 0


def test_one_step_off() -> None:
    settings = {**WHOLE, "actor_rollout_ref.hybrid_engine": False, "rollout.nnodes": 1}
    derived = derive(settings)
    assert derived.facts["lag"] == 8
    assert any("one_step_off" in line for line in derived.assumptions)


@pytest.mark.parametrize(
    ("mode", "lag", "planned"),
    [("sync", 0, 3480), ("colocate_async", 16, 3480), ("separate_async", 16, 3480)],
)
def test_modes_of_the_newer_trainer(mode: str, lag: float, planned: int) -> None:
    settings = {
        **WHOLE,
        "trainer.use_v1": True,
        "trainer.v1.trainer_mode": mode,
        f"trainer.v1.{mode}.num_warmup_batches": 2,
    }
    derived = derive(settings)
    assert (derived.facts["lag"], derived.facts["planned_steps"]) == (lag, planned)
    older = derive({**settings, "trainer.use_v1": False})
    assert older.facts["lag"] == 0


def test_lag_of_overrides_is_open() -> None:
    assert "lag" not in derive({f"{ACTOR}ppo_mini_batch_size": 32}).facts


def test_easyr1() -> None:
    derived = derive(
        {
            "data.rollout_batch_size": 512,
            "data.train_files": "hiyouga/math12k@train",
            "worker.actor.global_batch_size": 128,
            "worker.actor.optim.lr": 1e-6,
            "worker.actor.optim.strategy": "adamw",
            "worker.actor.optim.lr_warmup_ratio": 0.0,
            "worker.actor.model.model_path": "Qwen/Qwen2.5-7B-Instruct",
            "worker.actor.model.lora.rank": 0,
            "worker.rollout.n": 5,
            "algorithm.adv_estimator": "grpo",
            "algorithm.use_kl_loss": True,
            "algorithm.kl_coef": 0.01,
            "algorithm.disable_kl": False,
            "trainer.max_steps": 60,
        }
    )
    expected = {
        "learning_rate": 1e-6,
        "group_size": 5,
        "prompts_per_step": 128,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 1,
        "planned_steps": 240,
        "warmup_steps": 0,
        "kl_coefficient": 0.01,
        "optimizer": "adamw",
        "adapter": "full",
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "task": "hiyouga/math12k",
    }
    assert expected.items() <= derived.facts.items()
    assert derived.arithmetic["minibatches_per_refresh"] == (
        "rollout_batch_size 512 / global_batch_size 128 = 4"
    )
    off = derive({"worker.rollout.n": 5, "algorithm.kl_coef": 0.01, "algorithm.disable_kl": True})
    assert off.facts["kl_coefficient"] == 0


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B"),
        ("~/models/deepseek-llm-7b-chat", "deepseek-llm-7b-chat"),
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/9c92", "Qwen/Qwen3-8B"),
        ("/ckpts/my-run/global_step_100/actor/huggingface", "my-run"),
        ("data/gsm8k/train.parquet", "gsm8k"),
        ("math/train.parquet", "math"),
        ("/data/dapo-math-17k.parquet", "dapo-math-17k"),
        ("/data/train.parquet", "/data/train.parquet"),
        ("s3\\deep\\gsm8k\\test-00000-of-00001.parquet", "gsm8k"),
    ],
)
def test_names_out_of_paths(path: str, name: str) -> None:
    derived = derive({"actor_rollout_ref.model.path": path, "data.train_files": path})
    assert (derived.facts["model"], derived.facts["task"]) == (name, name)


def test_several_train_files() -> None:
    files = {"data.train_files.0": "/d/gsm8k/train.parquet", "data.train_files.1": "/d/math/a.json"}
    assert derive(files).facts["task"] == "gsm8k+a"
    as_text = {"data.train_files": "['/d/gsm8k/train.parquet','/d/gsm8k/train.parquet']"}
    assert derive(as_text).facts["task"] == "gsm8k"


def test_public_run_agrees_with_its_log(real_logs: Path) -> None:
    folder = real_logs / "uqcxu9__qwen2.5_300step_NEW_CONSIS_RESULT"
    lines = yaml.safe_load(
        (folder / "RL__outputs__2025-12-18__11-25-06__overrides.yaml").read_text(encoding="utf-8")
    )
    facts = derive(dict(line.split("=", 1) for line in lines)).facts
    assert facts["group_size"] == 4
    assert facts["prompts_per_step"] == 2
    assert facts["minibatches_per_refresh"] == facts["epochs_per_refresh"] == 1
    assert facts["planned_steps"] == 700


UPDATE = {"actor/pg_loss": 0.1, "actor/ppo_kl": 0, "actor/pg_clipfrac": 0, "actor/grad_norm": 1}


def test_rows_tell_the_kl_coefficient() -> None:
    rows = [{**UPDATE, "actor/kl_coef": 0.0010000000000000005, "actor/kl_loss": 0.1}] * 3
    assert observe(table_of(rows)).facts == {"kl_coefficient": 0.001}
    changing = [{**UPDATE, "actor/reward_kl_penalty_coeff": value} for value in (0.1, 0.2)]
    assert observe(table_of(changing)).facts == {}


def test_rows_without_a_kl_term_tell_that_there_is_none() -> None:
    derived = observe(table_of([UPDATE] * 3))
    assert derived.facts == {"kl_coefficient": 0}
    assert derived.arithmetic.keys() == derived.facts.keys()
    assert observe(table_of([{"critic/score/mean": 0.5}])).facts == {}
    assert observe(table_of([{"actor/pg_loss": 0.1}])).facts == {}
    assert observe(table_of([UPDATE], is_cut=True)).facts == {}
    assert observe(table_of([{**UPDATE, "actor/kl_loss": 0.1}])).facts == {}


def test_rows_tell_that_rollouts_are_fresh() -> None:
    fresh = observe(table_of([{OBSERVED[-1]: 0.0}] * 2)).facts
    assert fresh == {"lag": 0}
    assert observe(table_of([{OBSERVED[-1]: 0.5}, {OBSERVED[-1]: 0.0}])).facts == {}


def test_reward_is_never_the_one_with_the_penalty() -> None:
    names = [name for level in KEY_TABLE.reward for name in level]
    assert names[0] == "critic/score/mean"
    assert not set(names) & set(KEY_TABLE.never_reward)
    assert "KL penalty" in KEY_TABLE.never_reward["critic/rewards/mean"]


def test_both_counters_count_refreshes() -> None:
    assert KEY_TABLE.optimizer_steps == ()
    assert {"step", "training/global_step"} <= set(KEY_TABLE.refreshes)


@pytest.mark.parametrize(
    "key",
    [
        "val-core/openai/gsm8k/acc/mean@1",
        "val-core/openai/gsm8k/acc/mean_at_8",
        "val-core/math/reward/mean@16",
        "val/test_score/logic",
        "val/reward_score",
    ],
)
def test_evaluations_are_read(key: str) -> None:
    assert KEY_TABLE.reads(key)


@pytest.mark.parametrize(
    "key",
    [
        "val-core/aime/acc/best@8/mean",
        "val-core/aime/acc/maj@8/mean",
        "val-aux/num_turns/mean",
        "critic/rewards/mean",
        "actor/pg_clipfrac_lower",
        "actor/lr(1e-4)",
    ],
)
def test_known_keys_that_are_not_used(key: str) -> None:
    assert KEY_TABLE.understands(key)
    assert not KEY_TABLE.reads(key)


def test_unknown_keys_stay_unknown() -> None:
    assert not KEY_TABLE.understands("actor/token_kl/mean")
    assert not KEY_TABLE.understands("wlx_reward/gold_rate")


@pytest.mark.parametrize("key", ["step", "loss", "reward", "grad_norm", "train/loss", "kl"])
def test_marks_are_its_own(key: str) -> None:
    assert KEY_TABLE.score([key]) == 0


def test_parts_of_the_reward() -> None:
    assert KEY_TABLE.reads("reward/accuracy")
    assert KEY_TABLE.reads("gdpo/format/mean")
    for key in ("reward/all_correct_ratio", "reward/score/max", "gdpo/format/std"):
        assert not KEY_TABLE.reads(key)


def test_every_key_of_the_public_logs_is_understood(real_logs: Path) -> None:
    for folder in ("uqcxu9__qwen2.5_300step_NEW_CONSIS_RESULT", "zhiyuanhubj__logic-rl-formula"):
        for path in sorted((real_logs / folder).glob("*.log")):
            (run,) = LogFormat("verl console").read(path)
            assert [key for key in run.table.keys if not KEY_TABLE.understands(key)] == []
            assert np.isfinite(run.table.column("step")).all()


@pytest.mark.parametrize(
    ("key", "value", "setting", "expected"),
    [
        ("actor_rollout_ref.actor.loss_agg_mode", "token-mean", "loss_averaging", "token"),
        (
            "actor_rollout_ref.actor.loss_agg_mode",
            "seq-mean-token-sum-norm",
            "loss_averaging",
            "fixed_length",
        ),
        ("actor_rollout_ref.actor.loss_agg_mode", "token-sum", "loss_averaging", None),
        ("actor_rollout_ref.actor.fsdp_config.dtype", "bfloat16", "precision", "bf16"),
        (
            "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype",
            "fp16",
            "precision",
            "fp16",
        ),
        ("data.max_prompt_length", 2048, "max_prompt_length", 2048),
        ("actor_rollout_ref.model.lora_alpha", 64, "adapter_alpha", None),
        ("actor_rollout_ref.model.target_modules", "all-linear", "adapter_targets", None),
    ],
)
def test_what_an_export_repeats(key: str, value: Any, setting: str, expected: Any) -> None:
    """Alpha and modules stand in every configuration, also where no adapter is trained."""
    assert derive({**WHOLE, key: value}).facts.get(setting) == expected


def test_shape_of_the_adapter() -> None:
    model = "actor_rollout_ref.model."
    settings = {**WHOLE, f"{model}lora_rank": 32, f"{model}lora_alpha": 64}
    facts = derive({**settings, f"{model}target_modules": "[q_proj, v_proj]"}).facts
    assert (facts["adapter_alpha"], facts["adapter_targets"]) == (64, "q_proj,v_proj")
    listed = {f"{model}target_modules.0": "q_proj", f"{model}target_modules.1": "o_proj"}
    assert derive({**settings, **listed}).facts["adapter_targets"] == "q_proj,o_proj"


def test_a_launch_without_an_adapter_tunes_all_parameters():
    launched = {
        "actor_rollout_ref.model.path": "Qwen/Qwen2.5-7B",
        "actor_rollout_ref.actor.optim.lr": 1e-4,
    }
    assert derive(launched).facts["adapter"] == "full"
    assert "adapter" not in derive({"actor_rollout_ref.actor.optim.lr": 1e-4}).facts
    assert derive({**launched, "actor_rollout_ref.model.lora_rank": 8}).facts["adapter"] == "lora"
    # A name of a fork, whose meaning is not known.
    assert "adapter" not in derive({**launched, "actor_rollout_ref.model.lora.r": 8}).facts
