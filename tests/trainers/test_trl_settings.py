from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stated import Derived, checked

from advisor.runs import PilotRun, Trainer, read_runs

KEY_TABLE, ASYNC_KEY_TABLE = Trainer.named("TRL").keys


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


@pytest.mark.parametrize(
    "value", [None, "None", "", "max_prompt_length", "a - b", "nan", "inf", -1, True, 0, "0"]
)
def test_what_is_no_setting_is_left_out(value: Any) -> None:
    derived = derive(learning_rate=value, max_completion_length=value, max_steps=value)
    assert derived.facts == {}


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
