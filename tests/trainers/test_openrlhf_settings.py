"""What OpenRLHF's keys and arguments mean."""

from __future__ import annotations

import pytest
from stated import arguments_in, table_of

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("OpenRLHF").keys[0]


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
