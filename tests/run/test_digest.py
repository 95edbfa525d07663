"""A run's digest turns on all that it tells, and on nothing beside it."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, rising


def run():
    return Plan().run(rising(), "a").with_updates(path="folder/a.jsonl")


@pytest.mark.parametrize(
    "change",
    [
        {"step": np.arange(2.0, 62.0)},
        {"series": {"reward": rising() + 1e-12}},
        {"series": {"reward": rising(), "entropy": rising()}},
        {"parts": {"format": rising()}},
        {"eval_step": np.array([1.0]), "eval_reward": np.array([0.5])},
        {"hyperparameters": Plan(learning_rate=1e-3).settings},
        {"id": "b"},
        {"task": "mod"},
        {"parameters": 2e5},
        {"reward_ceiling": 2.0},
        {"path": "folder/b.jsonl"},
    ],
)
def test_another_row_setting_or_name_is_another_digest(change):
    assert run().with_updates(**change).digest != run().digest


@pytest.mark.parametrize(
    "change", [{"path": "moved/a.jsonl"}, {"warnings": ("odd",)}, {"keys_ignored": ("x",)}]
)
def test_where_it_lies_and_what_the_reader_noted_do_not_count(change):
    assert run().with_updates(**change).digest == run().digest
