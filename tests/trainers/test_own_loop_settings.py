"""Keys and settings of loops that people write themselves."""

from __future__ import annotations

from pathlib import Path

from reader_conformance import LogFormat

from advisor.runs import KeyTable, Trainer, register, unregister

KEY_TABLE = Trainer.named("own loop").keys[0]


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
