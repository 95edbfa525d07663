"""Keys and settings of CS336's GRPO loops."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stated import checked, table_of

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("CS336").keys[0]

ROWS: list[dict[str, Any]] = [
    {"type": "eval", "grpo_step": 0, "optimizer_step": 0, "reward": 0.1},
    {"type": "rollout", "grpo_step": 1, "num_rollouts": 256, "group_size": 8, "reward": 0.2},
    *(
        {
            "type": "train",
            "grpo_step": 1,
            "optimizer_step": step,
            "rollout_epoch": 1,
            "epochs_per_rollout_batch": 1,
            "num_train_batches": 4,
            "train_reward": 0.2,
            "reference_kl": None,
            "loss_type": "grpo_clip",
            "cliprange": 0.2,
        }
        for step in range(1, 5)
    ),
]


def test_settings_in_the_rows() -> None:
    derived = KEY_TABLE.observe(table_of(ROWS))
    assert derived.facts == {
        "group_size": 8,
        "minibatches_per_refresh": 4,
        "epochs_per_refresh": 1,
        "prompts_per_step": 8,
        "importance_ratio": True,
        "clip_low": 0.2,
        "clip_high": 0.2,
        "kl_coefficient": 0.0,
    }
    assert checked(derived).facts
    assert derived.arithmetic["prompts_per_step"] == (
        "num_rollouts 256 / num_train_batches 4 = 64 completions / group_size 8 = 8"
    )
    assert "null" in derived.arithmetic["kl_coefficient"]


def test_rows_that_differ_tell_nothing() -> None:
    changing = [*ROWS, {**ROWS[-1], "num_train_batches": 2, "loss_type": "no_baseline"}]
    facts = KEY_TABLE.observe(table_of(changing)).facts
    assert not {"minibatches_per_refresh", "importance_ratio"} & facts.keys()
    scored = [{**row, "reference_kl": 0.1} for row in ROWS]
    assert "kl_coefficient" not in KEY_TABLE.observe(table_of(scored)).facts
    assert KEY_TABLE.observe(table_of([{"reward": 1.0}])).facts == {}


def test_keys() -> None:
    assert KEY_TABLE.score(["grpo_step", "train_answer_accuracy", "reward"]) == 2
    assert KEY_TABLE.score(["step", "reward", "kl", "rewards/f/mean"]) == 0
    assert KEY_TABLE.refreshes[0] == "grpo_step"
    assert KEY_TABLE.train_kinds[0] == "rollout"
    names = {name for level in KEY_TABLE.reward for name in level}
    assert not names & set(KEY_TABLE.never_reward)
    assert not any(re.fullmatch(p, "reward") for p in KEY_TABLE.evaluations)
    assert not KEY_TABLE.understands("my_own_metric")


def test_real_runs(real_logs: Path) -> None:
    folder = real_logs / "ShibukiZero__assignment5-alignment"
    configs = sorted(folder.glob("*.config.json"))
    assert configs
    for path in configs:
        log = path.with_name(path.name.replace(".config.json", ".metrics.jsonl"))
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        stated = KEY_TABLE.derive(json.loads(path.read_text()))
        seen = KEY_TABLE.observe(table_of(rows))
        assert checked(stated).facts
        # What the rows show is what the config says, in every run.
        assert {key: stated.facts[key] for key in seen.facts} == seen.facts
        interval = stated.facts["minibatches_per_refresh"] * stated.facts["epochs_per_refresh"]
        updates = max(row.get("optimizer_step") or 0 for row in rows)
        assert updates == interval * max(row["grpo_step"] for row in rows)
        keys = {key for row in rows for key in row}
        assert [key for key in keys if not KEY_TABLE.understands(key)] == []
        assert KEY_TABLE.score(keys) > 3
