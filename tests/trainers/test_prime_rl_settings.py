"""Keys and settings of prime-rl."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.runs.logs.stated_settings import check_settings
from advisor.runs.trainers.derived import read_data
from advisor.runs.trainers.tables_only import PRIME_RL as TRAINER

KEY_TABLE = TRAINER.keys[0]

KEY_TABLE = KEY_TABLE

NEW: dict[str, Any] = {
    "max_steps": 200,
    "model.name": "Qwen/Qwen3-4B",
    "trainer.optim.lr": 5e-5,
    "trainer.optim.type": "adamw",
    "trainer.optim.betas1": 0.95,
    "trainer.scheduler.type": "cosine",
    "trainer.scheduler.warmup_steps": 10,
    "trainer.model.lora.rank": 8,
    "orchestrator.batch_size": 512,
    "orchestrator.group_size": 16,
    "orchestrator.max_off_policy_steps": 8,
    "orchestrator.train.sampling.max_completion_tokens": 1024,
    "orchestrator.train.source.0.name": "wordle",
}

OLD: dict[str, Any] = {
    "batch_size": 128,
    "rollouts_per_example": 8,
    "async_level": 2,
    "seed": 42,
    "optim.lr": 1e-6,
    "loss.mask_ratio_low": 0.125,
    "loss.mask_ratio_high": 8.0,
    "sampling.max_tokens": 2048,
}


def test_one_file_for_all() -> None:
    derived = KEY_TABLE.derive(NEW)
    assert derived.facts == {
        "minibatches_per_refresh": 1,
        "epochs_per_refresh": 1,
        "importance_ratio": True,
        "group_size": 16,
        "prompts_per_step": 32,
        "lag": 1.0,
        "learning_rate": 5e-5,
        "optimizer": "adamw",
        "momentum": 0.95,
        "planned_steps": 200,
        "warmup_steps": 10,
        "schedule": "cosine",
        "advantage_scaling": "none",
        "adapter_rank": 8,
        "adapter": "lora",
        "max_completion_length": 1024,
        "model": "Qwen/Qwen3-4B",
        "task": "wordle",
    }
    check_settings(derived.facts)
    assert derived.arithmetic.keys() == derived.facts.keys()
    assert derived.arithmetic["prompts_per_step"] == (
        "orchestrator.batch_size 512 completions / orchestrator.group_size 16 = 32"
    )
    assert any("max_async_level 1" in line for line in derived.assumptions)


def test_names_of_2025() -> None:
    derived = KEY_TABLE.derive(OLD)
    check_settings(derived.facts)
    assert derived.facts["prompts_per_step"] == 16
    assert derived.facts["lag"] == 2.0
    assert derived.facts["clip_low"] == 0.875
    assert derived.facts["clip_high"] == 7.0
    assert derived.facts["max_completion_length"] == 2048
    assert any("ahead as allowed" in line for line in derived.assumptions)


@pytest.mark.parametrize(
    ("stated", "lag", "is_said"),
    [
        ({"max_async_level": 0}, 0.0, False),
        ({"max_async_level": 3, "strict_async_level": True}, 3.0, False),
        ({"orchestrator.max_async_level": "3"}, 3.0, True),
        ({}, 1.0, True),
    ],
)
def test_lag(stated: dict[str, Any], lag: float, is_said: bool) -> None:
    derived = KEY_TABLE.derive(stated)
    assert derived.facts["lag"] == lag
    said = [
        line
        for line in derived.assumptions
        if line != read_data("prime_rl")["assumptions"]["structure"]
    ]
    assert bool(said) is is_said


@pytest.mark.parametrize(
    ("decay", "schedule"), [(0, "constant"), (90, "linear"), (10, None), (None, None)]
)
def test_linear_falls_over_the_last_steps_only(decay: int | None, schedule: str | None) -> None:
    stated = {
        "max_steps": 100,
        "trainer.scheduler.type": "linear",
        "trainer.scheduler.warmup_steps": 10,
        "trainer.scheduler.decay_steps": decay,
    }
    facts = KEY_TABLE.derive(stated).facts
    assert facts.get("schedule") == schedule
    assert facts["warmup_steps"] == 10


def test_optimizers_that_are_not_adam() -> None:
    stated = {"optim.type": "sgd", "optim.momentum": 0.8, "optim.betas1": 0.9}
    assert KEY_TABLE.derive(stated).facts["momentum"] == 0.8
    unstated = KEY_TABLE.derive({"optim.type": "sgd", "optim.betas1": 0.8})
    assert unstated.facts["momentum"] == 0.9
    assert "momentum 0.9 (prime-rl's default for SGD)" in unstated.assumptions
    facts = KEY_TABLE.derive({**stated, "optim.type": "muon"}).facts
    assert "optimizer" not in facts
    assert "momentum" not in facts


def test_scaling_by_the_spread_of_a_group() -> None:
    assert KEY_TABLE.derive({"advantage.std_norm": True}).facts["advantage_scaling"] == "group"
    assert "advantage_scaling" not in KEY_TABLE.derive({"orchestrator.algo.type": "rae"}).facts


def test_tokens_per_batch_tell_no_prompts() -> None:
    stated = {"orchestrator.token_batch_size": 10_000, "orchestrator.group_size": 8}
    assert "prompts_per_step" not in KEY_TABLE.derive(stated).facts


@pytest.mark.parametrize(
    "keys",
    [
        "step time reward/mean batch/solve_none batch/solve_all batch/effective_batch_size "
        "seq_len/mean seq_len/max prompt_len/mean completion_len/mean is_truncated/mean "
        "perf/throughput progress/ckpt_step progress/total_tokens batch/async_level "
        "batch/off_policy_level/mean time/step val_reward/mean metrics/exact",
        "step optim/lr optim/grad_norm entropy/mean loss/mean mismatch_kl/mean is_masked/mean "
        "is_masked_low/mean masked_mismatch_kl/mean unmasked_mismatch_kl/max kl_ent_ratio/mean",
        "step reward/all/mean reward/all/max solve_none/all solve_all/gsm8k decode_len/all/mean "
        "effective_batch_size/all stop_condition/all/length entropy/all/mean eval/aime/avg@8",
        "step train/agg/effective/agent/reward/mean train/agg/all/agent/solved_none "
        "train/wordle/all/player/num_turns/p90 train/agg/effective/num_total_tokens/mean "
        "off_policy/in_queue/mean eval/aime24/effective/agent/avg@4 event_loop_lag/mean",
    ],
)
def test_keys_of_four_ages_are_understood(keys: str) -> None:
    bare = [key.removeprefix("train/") for key in keys.split()]
    assert [key for key in bare if not KEY_TABLE.understands(key)] == []
    assert KEY_TABLE.score(bare) >= 1
