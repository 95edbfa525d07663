"""The figure of a failure mode: what it collects, and that nothing is left out of it."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import falling, make, noise, rising

from advisor.errors import InputError
from advisor.reporting.figure import words
from advisor.reporting.figures.symptom import draw_symptom, symptom_info
from advisor.runs.diagnosis import MODES, diagnose

ROWS = 60


def symptom(run, mode):
    return symptom_info(run, diagnose(run), mode)


def names(info):
    return [[trace.name for trace in panel] for panel in info.panels]


def test_every_mode_has_its_series():
    assert set(words()["series"]) == set(MODES)
    run = make(rising(ROWS), entropy=np.full(ROWS, 0.5), completion_length=np.full(ROWS, 9.0))
    assert names(symptom(run, "policy_concentration")) == [["entropy (nats)"], ["reward"]]
    assert names(symptom(run, "truncation")) == [["completion length (tokens)"]]
    with pytest.raises(InputError, match="no failure mode 'x'"):
        symptom(run, "x")
    with pytest.raises(InputError, match="no series of 'truncation'"):
        symptom(make(rising(ROWS)), "truncation")


def test_held_out_rewards_stand_beside_the_others():
    held_out = np.where(np.arange(6) == 2, np.nan, 0.5)
    info = symptom(make(rising(ROWS), evals=held_out), "reward_hacking")
    assert names(info) == [["reward", "held-out reward"]]
    assert info.panels[0][1].value.size == 5
    assert names(symptom(make(evals=rising(ROWS)), "collapse")) == [["held-out reward"]]
    assert names(symptom(make(rising(ROWS), evals=np.full(6, np.nan)), "collapse")) == [["reward"]]


def test_every_part_is_drawn():
    parts = {f"part_{n}": rising(ROWS) + n for n in range(9)}
    figure = draw_symptom(symptom(make(rising(ROWS), parts=parts), "reward_hacking"))
    # Dots and a mean each.
    assert len(figure.axes[1].lines) == 18
    texts = {text.get_text() for text in figure.axes[1].texts}
    assert {f"part {n}" for n in range(9)} <= texts


def test_nothing_not_finite_or_too_large_is_drawn():
    odd = np.where(np.arange(ROWS) % 3 == 0, np.nan, np.where(np.arange(ROWS) % 3 == 1, 1e300, 0.1))
    (trace,) = symptom(make(odd), "collapse").panels[0]
    assert trace.value.size == 40
    assert np.isfinite(trace.value).all()
    assert trace.value.max() == 1e100


def test_a_collapse_is_marked_and_said():
    run = make(falling(ROWS, 30) + 0.02 * noise(1, ROWS))
    info = symptom(run, "collapse")
    assert info.collapse_step == pytest.approx(31, abs=2)
    assert info.text.startswith("Collapse of run: FAIL. The reward fell")
    texts = [text.get_text() for text in draw_symptom(info).axes[0].texts]
    assert any(text.startswith("collapse at 3") for text in texts)
