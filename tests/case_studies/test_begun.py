"""Begun runs of the language-model study: who is asked, after which rows, and how it is scored."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from simulated_runs import Plan, rising

sys.path.append(str(Path(__file__).parents[2] / "case_studies" / "language_model"))

import begun


def rewards(seed=0):
    return np.clip(rising(60) + 0.05 * np.random.default_rng(seed).standard_normal(60), 0, 1)


def test_long_runs_are_asked_until_they_fall_and_only_of_rows_that_were_seen():
    lived, fallen, short = rewards(), rewards(1), rewards(2)[:40]
    fallen[14:] = 0.01
    runs = [
        Plan(steps=reward.size).run(reward, name)
        for name, reward in (("lived", lived), ("fallen", fallen), ("short", short))
    ]
    found = list(begun.asked("sums", runs))
    asked = [("lived", share) for share in begun.SHARES] + [("fallen", 0.1), ("fallen", 0.2)]
    assert [(one["run"], one["seen"]) for one in found] == asked
    assert [one["lived"] for one in found] == [name == "lived" for name, _ in asked]
    assert found[0]["came"] == pytest.approx(lived[-6:].mean(), abs=1e-5)
    assert all(set(one["said"]) == set(begun.METHODS) for one in found)
    # Rows beyond half of the run change what came, and nothing of what was forecast.
    later = np.where(np.arange(60) < 30, lived, lived - 0.1)
    other = list(begun.asked("sums", [Plan(steps=60).run(later, "lived")]))
    assert [one["said"] for one in other] == [one["said"] for one in found[:4]]
    assert other[0]["came"] == pytest.approx(found[0]["came"] - 0.1, abs=2e-5)


def test_tasks_count_alike_and_adapters_apart():
    def each(task, run, came, adapter=False, lived=True):
        said = {method: [0.5] * 50 for method in begun.METHODS}
        own = {"task": task, "run": run, "adapter": adapter, "lived": lived}
        return [own | {"came": came, "said": said, "seen": share} for share in begun.SHARES]

    found = each("sums", "a", 0.6) + each("sums", "b", 0.6) + each("tags", "a", 0.8)
    found += each("sums", "c", 0.6, lived=False)
    told = begun.summary(found + each("tags", "b", 0.9, adapter=True))
    assert told["tasks"] == 2
    assert set(told["full"]) == {"0.1", "0.2", "0.35", "0.5", "those that lived"}
    assert told["full"]["0.2"]["advisor"]["mae"] == pytest.approx(0.2)
    assert told["full"]["0.2"]["advisor"]["n"] == 4
    assert told["full"]["those that lived"]["0.2"]["advisor"]["n"] == 3
    assert told["adapters"]["0.2"]["last rows"]["mae"] == pytest.approx(0.4)
