"""Tables with a row per value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor import InputError, read_runs
from advisor.runs.logfiles.log_file import on_disk
from advisor.runs.logs.tables import table
from advisor.testing.reader_conformance import ReaderConformance


def saved(folder: Path, lines: Sequence[str], header: str = "run_name,metric,step,value") -> Path:
    path = folder / "metrics.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


class TestLongTable(ReaderConformance):
    reader = table.LONG

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        lines = [
            f"only,{name},{n},{value}"
            for n, reward in enumerate(rewards, start=1)
            for name, value in (("reward", reward), ("loss", 0.1), ("kl", 0.01))
        ]
        return saved(folder, lines)


def test_runs_and_metrics_come_apart(tmp_path: Path) -> None:
    lines = [
        f"{run},{name},{n},{value}"
        for name in ("loss", "reward", "notes")
        for run, level in (("a", 0.2), ("b", 0.4))
        for n, value in ((m, level + 0.01 * m if name == "reward" else 0.5) for m in range(1, 21))
    ]
    runs = read_runs(saved(tmp_path, lines))
    assert [run.id.rpartition(":")[2] for run in runs] == ["a", "b"]
    for run, level in zip(runs, (0.2, 0.4), strict=True):
        assert run.reward.tolist() == [level + 0.01 * n for n in range(1, 21)]
        assert "loss" in run.series


def test_a_long_table_of_other_things_is_none(tmp_path: Path) -> None:
    path = saved(tmp_path, [f"a,temperature,{n},20.5" for n in range(30)])
    assert not table.is_long(on_disk(path))
    with pytest.raises(InputError, match="no log was found"):
        read_runs(tmp_path)
