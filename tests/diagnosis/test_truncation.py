"""Truncation: how many completions are cut, and whether the reward fell with them."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import COLOURS, MOST_FALSE, falling, make, noise, rate, rising

from advisor.diagnosis import JUDGES

truncation = JUDGES["truncation"]


ROWS = 80


@pytest.mark.parametrize(
    ("share", "status"), [(0.02, "PASS"), (0.3, "INFO"), (0.7, "WARNING"), (0.97, "WARNING")]
)
def test_by_share(share, status):
    card = truncation(make(rising(ROWS), truncated_share=np.full(ROWS, share)))
    assert card.status == status
    assert card.number == pytest.approx(share)


def cut(from_row, before=0.1, after=0.97, seed=1):
    share = np.where(np.arange(ROWS) < from_row, before, after)
    return np.clip(share + 0.02 * noise(seed, ROWS), 0, 1)


def test_a_rise_fails_beside_a_collapse_only():
    fallen = falling(ROWS, 45) + 0.02 * noise(2, ROWS)
    card = truncation(make(fallen, truncated_share=cut(40)))
    assert card.status == "FAIL"
    assert card.steps == (pytest.approx(40, abs=3), 80)
    assert truncation(make(rising(ROWS), truncated_share=cut(40))).status == "WARNING"
    # What was cut all along did not make it fall.
    always = truncation(make(fallen, truncated_share=cut(0)))
    assert always.status == "WARNING"
    assert truncation(make(fallen, truncated_share=cut(40, before=0.75))).status == "WARNING"


def test_length_beside_its_limit_will_do():
    length = np.where(np.arange(ROWS) < 40, 300.0, 1000.0)
    run = make(rising(ROWS), completion_length=length, max_completion_length=1024)
    assert truncation(run).status == "WARNING"
    assert truncation(make(rising(ROWS), completion_length=length)).status == "NOT APPLICABLE"
    assert truncation(make(rising(ROWS), max_completion_length=9)).status == "NOT APPLICABLE"


@pytest.mark.parametrize(("length", "status"), [(620.0, "WARNING"), (500.0, "PASS")])
def test_no_completion_can_be_longer_than_its_limit(length, status):
    series = {"truncated_share": np.zeros(ROWS), "completion_length": np.full(ROWS, length)}
    card = truncation(make(rising(ROWS), max_completion_length=512, **series))
    assert card.status == status
    assert ("their mean length, 620, is above the limit of 512" in card.headline) is (length > 512)


@pytest.mark.parametrize("colour", COLOURS)
def test_noise_does_not_fail(colour):
    def fails(seed):
        share = np.clip(0.6 + 0.4 * noise(seed, ROWS, COLOURS[colour]), 0, 1)
        reward = np.maximum(0, 0.3 + 0.1 * noise(seed + 500, ROWS, COLOURS[colour]))
        return truncation(make(reward, truncated_share=share)).status == "FAIL"

    assert rate(fails) <= MOST_FALSE


def test_in_the_same_noise_it_is_found():
    def fails(seed):
        share = np.clip(0.2 + 0.9 * (np.arange(ROWS) >= 40) + 0.1 * noise(seed, ROWS), 0, 1)
        reward = np.maximum(0, falling(ROWS, 45) + 0.1 * noise(seed + 500, ROWS))
        return truncation(make(reward, truncated_share=share)).status == "FAIL"

    assert rate(fails, range(60)) >= 0.95
