"""The preset of runs for which none was named."""

from __future__ import annotations

import pytest
from cohorts import simulated

from advisor.model import SMALL, preset_for, preset_names
from advisor.runs import PartialSettings


def runs(*kinds):
    """Runs of (adapter, parameters)."""
    base = simulated("one group").runs[0]
    return [
        base.with_updates(
            id=f"run{at}", parameters=size, hyperparameters=PartialSettings(adapter=adapter)
        )
        for at, (adapter, size) in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        ([("lora", 7e9), ("lora", 1e5)], "lora"),
        ([("lora", 7e9), ("full", 7e9)], "full_finetuning"),
        ([("full", 3e4), (None, 1e6)], "small_models"),
        ([("full", 3e4), ("full", SMALL)], "full_finetuning"),
        ([("full", 3e4), ("full", None)], "full_finetuning"),
        ([], "full_finetuning"),
        ([("lora", 7e9), (None, 7e9), ("lora", 7e9)], "lora"),
        ([("lora", 7e9), ("full", 7e9), ("lora", 7e9)], "lora"),
        ([("full", 7e9), (None, 7e9), ("lora", 7e9), ("full", 7e9)], "full_finetuning"),
    ],
)
def test_preset_is_the_one_whose_evidence_the_runs_lie_in(kinds, wanted):
    name, reason = preset_for(runs(*kinds))
    assert name == wanted
    assert name in preset_names()
    assert reason
