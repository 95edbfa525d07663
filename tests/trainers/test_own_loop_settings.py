"""Keys and settings of loops that people write themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reader_conformance import LogFormat
from stated import checked

from advisor.runs import KeyTable, Trainer, register, unregister

KEY_TABLE = Trainer.named("own loop").keys[0]


def test_settings_beyond_the_common_names() -> None:
    derived = KEY_TABLE.derive(
        {
            "batch": 2,
            "steps": "30",
            "lr_scheduler": "Cosine",
            "warmup_steps": 0,
            "optimizer": "AdamW",
            "kl_weight": 0.001,
            "clip_eps": 0.2,
            "epochs_per_step": 2,
            "max_gen_len": 256,
        }
    )
    assert derived.facts == {
        "prompts_per_step": 2.0,
        "planned_steps": 30,
        "schedule": "cosine",
        "warmup_steps": 0,
        "optimizer": "adamw",
        "kl_coefficient": 0.001,
        "clip_low": 0.2,
        "clip_high": 0.2,
        "epochs_per_refresh": 2,
        "max_completion_length": 256,
    }
    checked(derived)
    assert derived.assumptions == ("batch 2 taken as prompts per optimizer step (not completions)",)


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 64},
        {"epsilon": 1e-8},
        {"lr_scheduler": "wsd", "optimizer": "muon"},
        {"steps": 2.5, "batch": "auto"},
        {},
    ],
)
def test_what_cannot_be_told_is_left_out(settings: dict[str, Any]) -> None:
    assert KEY_TABLE.derive(settings).facts == {}


def test_the_tightest_bound_of_the_ratio_is_its_own() -> None:
    facts = KEY_TABLE.derive({"epsilon": 0.2, "epsilon_high": 0.28}).facts
    assert (facts["clip_low"], facts["clip_high"]) == (0.2, 0.28)


def test_keys() -> None:
    assert KEY_TABLE.score(["zvf", "gu"]) == 2
    assert "zvf" in KEY_TABLE.series["silent_group_share"]
    for key in ("reward_trace", "loss_trace", "acc", "base accuracy", "pass@3", "eval_accuracy"):
        assert KEY_TABLE.understands(key), key
    assert not KEY_TABLE.understands("peak_rewards_of_my_own")


def test_another_trainers_keys_come_first(tmp_path: Path) -> None:
    def named(other: str) -> str | None:
        path = tmp_path / "train.log"
        path.write_text("".join(f"step {n} | reward=0.{n} | {other}=1.5\n" for n in range(1, 9)))
        (run,) = LogFormat("console of a training loop").read(path)
        return run.framework

    another = Trainer("X", keys=(KeyTable("X", marks=("x/.+",)),))
    assert named("train/x/loss") == "own loop"
    register(another)
    try:
        assert named("loss") == "own loop"
        assert named("train/x/loss") is None
    finally:
        unregister(another)
