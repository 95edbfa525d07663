"""What trainers' keys mean: the entries of keys.yaml, and what holds for every trainer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from reader_conformance import LogFormat
from stated import checked, table_of

from advisor.runs import KeyTable, PilotRun, Trainer, read_runs, register, unregister

TABLE = yaml.safe_load(Path(__file__).with_name("keys.yaml").read_text(encoding="utf-8"))
TRL, ASYNC_TRL = Trainer.named("TRL").keys


def entries(kind: str) -> list[tuple[str, Any]]:
    """Trainers and what each has of a kind, one by one; words are parted."""
    found = ((name, entry.get(kind, [])) for name, entry in TABLE.items())
    return [
        (n, one) for n, all_ in found for one in (all_.split() if isinstance(all_, str) else all_)
    ]


@pytest.mark.parametrize("name", TABLE)
def test_no_key_is_the_reward_and_never_the_reward(name: str) -> None:
    for table in Trainer.named(name).keys:
        assert set(table.series) <= set(PilotRun.SERIES)
        assert not {key for level in table.reward for key in level} & set(table.never_reward)


@pytest.mark.parametrize("name", TABLE)
def test_keys_mean(name: str) -> None:
    table, entry = Trainer.named(name).keys[0], TABLE[name]
    of = {kind: [key for n, key in entries(kind) if n == name] for kind in entry}
    assert [key for key in of.get("read", ()) if not table.reads(key)] == []
    for kind in ("known", "unread"):
        assert [key for key in of.get(kind, ()) if table.reads(key)] == []
    for kind in ("known", "known_or_read"):
        assert [key for key in of.get(kind, ()) if not table.understands(key)] == []
    assert [key for key in of.get("unknown", ()) if table.understands(key)] == []
    assert set(of.get("refreshes", ())) <= set(table.refreshes)
    if entry.get("counts") == "refreshes alone":
        assert not table.optimizer_steps
    if "reward" in entry:
        assert table.reward[0][0] == entry["reward"]
    for key, why in entry.get("never", {}).items():
        assert why in table.never_reward[key]


def test_keys_of_single_trainers() -> None:
    tinker, cs336, loop = (Trainer.named(name).keys[0] for name in ("Tinker", "CS336", "own loop"))
    assert tinker.reward[-1] == ("reward/mean",)
    assert cs336.train_kinds[0] == "rollout"
    assert not any(re.fullmatch(pattern, "reward") for pattern in cs336.evaluations)
    assert "zvf" in loop.series["silent_group_share"]
    assert loop.understands("base accuracy")


@pytest.mark.parametrize(("name", "of_keys"), entries("score"))
def test_marks_are_its_own(name: str, of_keys: tuple[str, int]) -> None:
    keys, score = of_keys
    assert Trainer.named(name).keys[0].score(keys.split()) == score


@pytest.mark.parametrize(("name", "of_rows"), entries("observed"))
def test_rows_show(name: str, of_rows: tuple[dict[str, Any], int, dict[str, Any]]) -> None:
    cells, count, facts = of_rows
    rows = [
        {key: one[n] if isinstance(one, list) else one for key, one in cells.items()}
        for n in range(count)
    ]
    assert checked(Trainer.named(name).keys[0].observe(table_of(rows))).facts == facts
    assert (
        Trainer.named(name).keys[0].observe(table_of(rows, is_cut=True)).facts.keys()
        <= facts.keys()
    )


@pytest.mark.parametrize("kind", ["understood", "ignored"])
def test_keys_beside_those_of_trl(tmp_path: Path, kind: str) -> None:
    for key in TABLE["TRL"][kind]:
        path = tmp_path / "run.jsonl"
        row = {"reward": 0.5, "reward_std": 0.1, "frac_reward_zero_std": 0.1, key: 0.25}
        path.write_text("".join(json.dumps(row | {"step": n}) + "\n" for n in range(1, 12)))
        assert (key in read_runs(path)[0].keys_ignored) == (kind == "ignored"), key


def test_the_asynchronous_trainer_wins_its_own_logs_outright() -> None:
    """The first of equals is chosen; its KL is to the old policy."""
    new = ["loss", "reward", "frac_reward_zero_std", "clip_ratio/region_mean"]
    asynchronous = [*new, "kl", "ratio", "weight_sync_time_s", "training_tok/s"]
    assert ASYNC_TRL.score(new) == TRL.score(new)
    assert ASYNC_TRL.score(asynchronous) > TRL.score(asynchronous)
    assert (TRL.series["kl"], ASYNC_TRL.series["policy_kl"]) == (("kl",), ("kl",))
    assert "kl" not in ASYNC_TRL.series


@pytest.mark.parametrize(
    "value", [None, "None", "", "max_prompt_length", "a - b", "nan", "inf", -1, True, 0, "0"]
)
def test_what_is_no_setting_of_trl_is_left_out(value: Any) -> None:
    names = ("learning_rate", "max_completion_length", "max_steps")
    assert TRL.derive(dict.fromkeys(names, value)).facts == {}


ROWS = [
    {"type": "eval", "grpo_step": 0, "optimizer_step": 0, "reward": 0.1},
    {"type": "rollout", "grpo_step": 1, "num_rollouts": 256, "group_size": 8, "reward": 0.2},
    *(
        {"type": "train", "grpo_step": 1, "optimizer_step": step, "rollout_epoch": 1}
        | {"epochs_per_rollout_batch": 1, "num_train_batches": 4, "train_reward": 0.2}
        | {"reference_kl": None, "loss_type": "grpo_clip", "cliprange": 0.2}
        for step in range(1, 5)
    ),
]


def test_rows_of_cs336_hold_settings() -> None:
    observe = Trainer.named("CS336").keys[0].observe
    derived = checked(observe(table_of(ROWS)))
    assert derived.facts == {
        **{"group_size": 8, "minibatches_per_refresh": 4, "epochs_per_refresh": 1},
        **{"prompts_per_step": 8, "importance_ratio": True, "clip_low": 0.2, "clip_high": 0.2},
        "kl_coefficient": 0.0,
    }
    assert derived.arithmetic["prompts_per_step"] == (
        "num_rollouts 256 / num_train_batches 4 = 64 completions / group_size 8 = 8"
    )
    assert "null" in derived.arithmetic["kl_coefficient"]
    changing = [*ROWS, {**ROWS[-1], "num_train_batches": 2, "loss_type": "no_baseline"}]
    facts = observe(table_of(changing)).facts
    assert not {"minibatches_per_refresh", "importance_ratio"} & facts.keys()
    scored = [{**row, "reference_kl": 0.1} for row in ROWS]
    assert "kl_coefficient" not in observe(table_of(scored)).facts


def test_another_trainers_keys_come_before_those_of_a_loop(tmp_path: Path) -> None:
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


# Real runs -------------------------------------------------------------------------------------


def test_real_rows_of_tinker(real_logs: Path) -> None:
    table = Trainer.named("Tinker").keys[0]
    path = real_logs / "arvindcr4__tinker-rl-lab" / "arithmetic_metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 100
    keys = {key for row in rows for key in row}
    assert [key for key in keys if not table.understands(key)] == []
    assert table.score(keys) >= 10
    for row in rows:
        silent = sum(row[table.series[name][0]] for name in ("all_right_share", "all_wrong_share"))
        assert silent == pytest.approx(1 - row["env/all/by_group/frac_mixed"])
