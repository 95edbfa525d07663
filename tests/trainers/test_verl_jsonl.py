"""JSONL of verl's file logger and of EasyR1's: tables with groups of metrics inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.diagnosis import Card, diagnose
from advisor.runs import read_runs

TABLE = LogFormat("table")

NAMES = ("gsm8k", "math")


def row(step: int, reward: float | None, **more: Any) -> dict[str, Any]:
    data = {"actor/pg_loss": -0.01, "critic/score/mean": reward, "critic/rewards/mean": -13.0}
    return {"step": step, "data": {**data, **more}}


def write(path: Path, rows: Sequence[Any], end: str = "") -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows) + end, encoding="utf-8")
    return path


def read(path: Path) -> Logged:
    assert TABLE.claims(path)
    (run,) = TABLE.read(path)
    return run


class TestFileLogger(ReaderConformance):
    reader = TABLE.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        return write(folder / "gsm8k.jsonl", [row(n, r) for n, r in enumerate(rewards, 1)])


class TestEasyR1(ReaderConformance):
    reader = TABLE.reader
    rounds = 50

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [
            {"step": n, "actor": {"lr": 1e-6}, "critic": {"score": {"mean": r, "max": 1.0}}}
            for n, r in enumerate(rewards, 1)
        ]
        return write(folder / "experiment_log.jsonl", rows)


def test_validation_before_training_has_no_reward(tmp_path: Path) -> None:
    first = {"step": 0, "data": {"val-core/gsm8k/acc/mean@1": 0.25}}
    run = read(write(tmp_path / "a.jsonl", [first, row(1, 0.5), row(2, None), row(3, 0.75)]))
    assert run.table.column("step").tolist() == [0, 1, 2, 3]
    assert run.table.has("critic/score/mean").tolist() == [False, True, False, True]
    assert "val-core/gsm8k/acc/mean@1" in run.table.keys
    assert "data/critic/score/mean" not in run.table.keys


def test_a_batch_of_rollouts_takes_as_long_as_its_steps(tmp_path: Path) -> None:
    """verl times a batch: with K steps in it each takes a K-th, in the price as in the log."""
    rows = [row(n, 0.1 * n, **{"timing_s/step": 120.0}) for n in range(1, 9)]
    write(tmp_path / "a.jsonl", rows)
    settings = "learning_rate = 1e-6\ngroup_size = 8\nprompts_per_step = 16\n"
    settings += "minibatches_per_refresh = 4\nepochs_per_refresh = 1\n"
    (tmp_path / "pilots.toml").write_text(f"[defaults]\n{settings}", encoding="utf-8")
    (run,) = read_runs(tmp_path)
    assert run.step.tolist() == [4 * n for n in range(1, 9)]
    assert run.seconds_per_step == 30.0


def test_of_several_benchmarks_the_one_that_does_not_follow_is_named(tmp_path: Path) -> None:
    """Their mean is the held-out reward: it rises by what one of them gains."""
    rng = np.random.default_rng(0)
    gained = [np.linspace(0.2, 0.9, 120), np.full(120, 0.5)]
    gsm8k, math = (one + 0.01 * rng.standard_normal(120) for one in gained)

    def diagnosed(other: np.ndarray) -> Card:
        both = zip(gsm8k, other, strict=True)
        evaluations = [{f"val-core/{NAMES[i]}/acc/mean@1": at[i] for i in (0, 1)} for at in both]
        rows = [row(n, gsm8k[n - 1], **evaluations[n - 1]) for n in range(1, 121)]
        (run,) = read_runs(write(tmp_path / "a.jsonl", rows))
        assert run.eval_reward[-1] == (gsm8k[-1] + other[-1]) / 2
        return diagnose(run).card("reward_hacking")

    card = diagnosed(math)
    assert card.status == "INFO"
    assert "val-core/math/acc/mean@1 did not follow" in card.headline
    assert any("val-core/gsm8k/acc/mean@1 0.2" in line for line in card.witnesses)
    assert diagnosed(gsm8k - 0.1).status == "PASS"
