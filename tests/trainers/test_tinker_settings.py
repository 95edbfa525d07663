"""Keys and settings of Tinker and its cookbook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("Tinker").keys[0]

KEYS = (
    "step progress/batch optim/lr progress/done_frac time/run_evals env/all/ac_tokens_per_turn "
    "env/all/ob_tokens_per_turn env/all/turns_per_episode env/all/total_episodes "
    "env/all/reward/total env/all/format env/all/correct env/all/by_group/frac_mixed "
    "env/all/by_group/frac_all_good env/all/by_group/frac_all_bad time/train "
    "optim/kl_sample_train_v1 optim/kl_sample_train_v2 optim/entropy time/total "
    "test/env/all/reward/total test/env/all/correct env/gsm8k/reward/total kl_policy_base "
    "sampling_client/step_mean training_client/step time/sampling:mean rollout_errors/total"
)
ROW = KEYS.split()


def test_every_key_of_a_row_is_understood() -> None:
    assert [key for key in ROW if not KEY_TABLE.understands(key)] == []
    assert KEY_TABLE.score(ROW) >= 10


def test_a_row_is_a_batch_of_rollouts() -> None:
    assert {"step", "progress/batch", "training_client/step"} <= set(KEY_TABLE.refreshes)
    assert not KEY_TABLE.optimizer_steps


def test_the_stand_in_is_what_is_optimised() -> None:
    assert KEY_TABLE.reward[-1] == ("reward/mean",)
    assert "stand-in" in KEY_TABLE.never_reward["reward/f"]


def test_real_rows(real_logs: Path) -> None:
    path = real_logs / "arvindcr4__tinker-rl-lab" / "arithmetic_metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 100
    keys = {key for row in rows for key in row}
    assert [key for key in keys if not KEY_TABLE.understands(key)] == []
    for row in rows:
        silent = row[KEY_TABLE.series["all_right_share"][0]]
        silent += row[KEY_TABLE.series["all_wrong_share"][0]]
        assert silent == pytest.approx(1 - row["env/all/by_group/frac_mixed"])
