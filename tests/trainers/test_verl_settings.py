"""What verl's keys mean, and its settings in the package's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from reader_conformance import LogFormat
from stated import Derived, checked, overrides_in, table_of

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("verl").keys[0]
OBSERVED = KEY_TABLE.observed
observe = KEY_TABLE.observe

ACTOR = "actor_rollout_ref.actor."


def derive(settings: dict[str, Any]) -> Derived:
    return checked(KEY_TABLE.derive(settings))


def test_momentum_of_an_override() -> None:
    optim = f"{ACTOR}optim."
    written = f"+{optim}override_optimizer_config={{momentum:0.8}}"
    settings = overrides_in([f"{optim}optimizer=SGD", written])
    assert derive(settings).facts == {"optimizer": "sgd", "momentum": 0.8}


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
