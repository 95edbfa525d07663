"""The bounds on work themselves: work counts, waiting does not, and a slow machine has longer."""

from __future__ import annotations

import time

import processor_time
import pytest
from processor_time import at_most


def busy() -> None:
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass


def test_work_counts_and_waiting_does_not(monkeypatch):
    monkeypatch.setattr(processor_time, "_set_work", lambda: processor_time.USUAL_SECONDS)
    refused = pytest.raises(AssertionError, match=r"s of processor time, 0\.02 s at the most")
    with refused, at_most(0.02):
        busy()
    with at_most(0.02):
        time.sleep(0.05)


@pytest.mark.parametrize(("slower", "is_enough"), [(1000.0, True), (0.001, False)])
def test_a_slower_machine_has_longer_and_a_quicker_one_not_less(monkeypatch, slower, is_enough):
    spent = processor_time.USUAL_SECONDS * slower
    monkeypatch.setattr(processor_time, "_set_work", lambda: spent)
    if is_enough:
        with at_most(0.02):
            busy()
    else:
        with pytest.raises(AssertionError, match=r"0\.02 s at the most"), at_most(0.02):
            busy()
