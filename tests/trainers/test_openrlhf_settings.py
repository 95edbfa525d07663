"""What OpenRLHF's keys and arguments mean."""

from __future__ import annotations

from typing import Any

import pytest
from stated import Derived, arguments_in, table_of

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("OpenRLHF").keys[0]

FLAT = {
    "n_samples_per_prompt": 8,
    "rollout_batch_size": 128,
    "train_batch_size": 256,
    "max_epochs": 2,
}
DOTTED = {
    "rollout.n_samples_per_prompt": 8,
    "rollout.batch_size": 128,
    "train.batch_size": 256,
    "train.max_epochs": 2,
}


def derive(**settings: Any) -> Derived:
    return KEY_TABLE.derive(settings)


def parts(**settings: Any) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    derived = derive(**settings)
    return derived.facts, derived.arithmetic, derived.assumptions


@pytest.mark.parametrize("settings", [FLAT, DOTTED, {k: str(v) for k, v in FLAT.items()}])
def test_batches(settings: dict[str, Any]) -> None:
    facts, arithmetic, assumptions = parts(**settings)
    assert facts["group_size"] == 8
    assert facts["prompts_per_step"] == 256 / 8
    assert facts["minibatches_per_refresh"] == 128 * 8 / 256
    assert facts["epochs_per_refresh"] == 2
    assert arithmetic["minibatches_per_refresh"].endswith("= 4")
    assert "256 / " in arithmetic["prompts_per_step"]
    assert not assumptions


def test_defaults_are_named_where_they_are_needed() -> None:
    facts, arithmetic, assumptions = parts(n_samples_per_prompt=4, rollout_batch_size=64)
    assert facts["prompts_per_step"] == 32
    assert facts["minibatches_per_refresh"] == 2
    assert "train_batch_size 128 (OpenRLHF's default)" in arithmetic["prompts_per_step"]
    assert "train_batch_size 128 (OpenRLHF's default)" in assumptions
    assert "max_epochs 1 (OpenRLHF's default)" in assumptions


def test_nothing_is_derived_from_nothing() -> None:
    assert derive() == Derived()
    assert derive(n_samples_per_prompt="G", rollout_batch_size=64).facts == {}


def test_batches_that_do_not_divide() -> None:
    facts, _, assumptions = parts(**{**FLAT, "train_batch_size": 300})
    assert facts["minibatches_per_refresh"] == 3
    assert any("leaves 124 samples over" in line for line in assumptions)
    facts, _, assumptions = parts(**{**FLAT, "train_batch_size": 2048})
    assert "minibatches_per_refresh" not in facts
    assert any("less than one optimizer step" in line for line in assumptions)


@pytest.mark.parametrize(
    ("settings", "lag"),
    [
        ({"async_train": False}, 0),
        ({"async_train": "True"}, 8),
        ({"train.async_enable": True, "train.async_queue_size": 3}, 24),
    ],
)
def test_lag(settings: dict[str, Any], lag: float) -> None:
    assert KEY_TABLE.derive({**FLAT, **settings}).facts["lag"] == lag


def test_lag_needs_the_refresh_interval() -> None:
    facts, _, assumptions = parts(async_train=True)
    assert "lag" not in facts
    assert any("cannot be derived" in line for line in assumptions)
    assert "lag" not in derive(**FLAT).facts


def test_optimizer() -> None:
    facts = derive(actor_learning_rate="5e-7", adam_betas="(0.9, 0.95)").facts
    assert facts == {"learning_rate": 5e-7, "optimizer": "adamw", "momentum": 0.9}
    apart = KEY_TABLE.derive({"actor.adam.lr": 1e-6, "actor.adam.betas.0": 0.8}).facts
    assert apart["momentum"] == 0.8
    muon = KEY_TABLE.derive({"actor.optim": "muon", "actor.adam.lr": 1e-6})
    assert "learning_rate" not in muon.facts
    assert "muon" in muon.assumptions[0]


def test_schedule() -> None:
    facts, _, assumptions = parts(**FLAT, lr_scheduler="cosine_with_min_lr")
    assert facts["schedule"] == "cosine"
    assert any("ends at 0.1 (OpenRLHF's default) of the peak" in line for line in assumptions)
    assert derive(lr_scheduler="constant").facts == {"schedule": "constant", "warmup_steps": 0}
    assert derive(lr_scheduler="polynomial").facts == {}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"eps_clip": 0.1}, (0.1, 0.1)),
        ({"eps_clip": 0.1, "eps_clip_low_high": "0.2 0.28"}, (0.2, 0.28)),
        ({"eps_clip": 0.1, "eps_clip_low_high": None}, (0.1, 0.1)),
        ({"actor.eps_clip_low_high.0": 0.2, "actor.eps_clip_low_high.1": 0.3}, (0.2, 0.3)),
        ({"eps_clip": 0.1, "eps_clip_low_high": 0.2}, (None, None)),
    ],
)
def test_trust_region(settings: dict[str, Any], expected: tuple[float, float]) -> None:
    facts = KEY_TABLE.derive(settings).facts
    assert (facts.get("clip_low"), facts.get("clip_high")) == expected


@pytest.mark.parametrize("prefix", ["", "actor."])
def test_flags_with_two_values(prefix: str) -> None:
    betas = "adam.betas" if prefix else "adam_betas"
    command = f"--{prefix}eps_clip_low_high 0.2 0.28 --{prefix}{betas} 0.8 0.95 --packing_samples"
    facts = KEY_TABLE.derive({**arguments_in(command.split()), "eps_clip": 0.1}).facts
    assert (facts["clip_low"], facts["clip_high"]) == (0.2, 0.28)
    rate = {"actor.adam.lr": 1e-6}
    facts = KEY_TABLE.derive({**arguments_in(command.split()), **rate}).facts
    assert facts["momentum"] == 0.8


def test_a_switch_whose_name_begins_with_no() -> None:
    settings = arguments_in(
        ["--no_advantage_std_norm", "--advantage_estimator", "reinforce_baseline"]
    )
    assert KEY_TABLE.derive(settings).facts == {"advantage_scaling": "none"}


@pytest.mark.parametrize(
    ("settings", "scaling"),
    [
        ({"advantage_estimator": "group_norm"}, "group"),
        ({"advantage_estimator": "dr_grpo"}, "none"),
        ({"advantage_estimator": "reinforce_baseline"}, "batch"),
        ({"advantage_estimator": "reinforce", "no_advantage_std_norm": True}, "none"),
        ({"advantage_estimator": "rloo"}, None),
        ({"algo.advantage.estimator": "rloo"}, "none"),
    ],
)
def test_advantage_scaling(settings: dict[str, Any], scaling: str | None) -> None:
    assert KEY_TABLE.derive(settings).facts.get("advantage_scaling") == scaling


def test_taken_over() -> None:
    facts, arithmetic, _ = parts(
        init_kl_coef="1e-3",
        lora_rank=64,
        pretrain="Qwen/Qwen2.5-7B",
        prompt_data="math",
        generate_max_len=2048,
        seed=42,
        policy_loss_type="gspo",
    )
    assert facts == {
        "kl_coefficient": 1e-3,
        "adapter": "lora",
        "adapter_rank": 64,
        "model": "Qwen/Qwen2.5-7B",
        "task": "math",
        "max_completion_length": 2048,
        "seed": 42,
        "importance_ratio": True,
    }
    assert set(arithmetic) == set(facts)
    assert derive(lora_rank=0).facts == {"adapter": "full"}


def test_arguments_as_wandb_keeps_them() -> None:
    facts = derive(
        rollout="namespace(batch_size=128, n_samples_per_prompt=8, top_p=1.0)",
        train="namespace(batch_size=1024, max_epochs=1, note='a=1, b')",
        algo="namespace(kl=namespace(init_coef=0.0, use_loss=False), gamma=1)",
    ).facts
    assert facts["minibatches_per_refresh"] == 1
    assert facts["kl_coefficient"] == 0


def test_a_kl_of_exactly_zero_is_none() -> None:
    assert KEY_TABLE.observe(table_of([{"kl": 0.0}] * 6)).facts == {"kl_coefficient": 0.0}
    assert KEY_TABLE.observe(table_of([{"kl": 0.0}] * 5 + [{"kl": 1e-9}])).facts == {}
    assert KEY_TABLE.observe(table_of([{"kl": 0.0}] * 3)).facts == {}
    assert KEY_TABLE.observe(table_of([{"reward": 0.0}] * 6)).facts == {}


def test_keys() -> None:
    assert KEY_TABLE.reward[0] == ("rollout/reward_mean",)
    named = {name for level in KEY_TABLE.reward for name in level}
    assert not named & set(KEY_TABLE.never_reward)
    for key in ("eval/eval_math_pass1", "eval_math_pass1", "group_reward_std", "global_step"):
        assert KEY_TABLE.reads(key)
    for key in ("eval_math_pass4", "return", "timing/broadcast", "total_length", "critic_lr"):
        assert KEY_TABLE.understands(key)
        assert not KEY_TABLE.reads(key)
    assert KEY_TABLE.score(["reward", "step", "loss", "kl", "ppo_kl", "learning_rate"]) == 0
    assert KEY_TABLE.score(["actor_lr", "policy_loss", "reward"]) == 1


def test_a_namespace_as_text() -> None:
    actor = "namespace(adam=namespace(lr=5e-07, betas=(0.9, 0.95)), optim='adam', x=None)"
    written = {
        "actor": actor,
        "rollout": "namespace(n_samples_per_prompt=8, batch_size=128)",
        "data": 'namespace(prompt_dataset="it\'s, a (set)", max_len=-1)',
    }
    known = {"learning_rate": 5e-07, "momentum": 0.9, "group_size": 8, "task": "it's, a (set)"}
    facts = KEY_TABLE.derive(written).facts
    assert {name: facts.get(name) for name in known} == known
    # What is cut, or no namespace, is no setting.
    for text in (actor[:-30], "print(n_samples_per_prompt=1)"):
        facts = KEY_TABLE.derive({"actor": text, "rollout": text}).facts
        assert not facts.keys() & {"learning_rate", "group_size"}
