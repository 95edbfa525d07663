"""The figure of what is decided: its numbers are the answer's, and its curve is P(stable)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advisor.advice import Leader, Recommendation, number
from advisor.forecast import Forecaster, stability
from advisor.model import Posterior
from advisor.reporting import FIGURES

from .conftest import Pilot

DRAWS = 1000

decision_info, draw_decision = FIGURES["decision"].info, FIGURES["decision"].draw
has_varied = FIGURES["stability"].has_meaning

Build = Callable[..., Any]


def led_by(advice: Recommendation, rate: float) -> Recommendation:
    """The same answer, where another pilot leads."""
    settings = advice.settings.model_copy(update={"learning_rate": rate})
    leader = Leader(pilot="hot", settings=settings, reward=0.9, steps=60, is_followed=False)
    best = advice.best_piloted.model_copy(update={"settings": settings, "p_beaten": 0.7})
    return advice.model_copy(update={"leader": leader, "best_piloted": best})


def test_advised_leader_and_recipe_stand_on_one_axis(
    posterior: Posterior, advice: Recommendation
) -> None:
    info = decision_info(posterior, led_by(advice, 2e-3))
    advised, leader, recipe = info.ends
    assert (advised.name, leader.name) == ("advised", "best pilot")
    assert recipe.name == max(advice.recipes, key=lambda one: one.reward).name
    low, high = number(advice, advice.reward.low), number(advice, advice.reward.high)
    assert advised.span == f"{number(advice, advice.reward.mean)} [{low}, {high}]"
    assert leader.better == "P(advice better) 70 %"
    assert advised.better == ""
    for end in info.ends:
        assert np.trapezoid(end.height, end.value) == pytest.approx(1.0, abs=0.02)
    # Control: a leader that is followed is no other run.
    alone = decision_info(posterior, advice.model_copy(update={"leader": None}))
    assert [end.name for end in alone.ends] == ["advised", recipe.name]
    assert alone.leader is None


def test_curve_is_p_stable_at_the_advised_other_settings(
    posterior: Posterior, advice: Recommendation
) -> None:
    info = decision_info(posterior, advice)
    forecaster = Forecaster(posterior, advice.target, draws=DRAWS, seed=advice.seed)
    for place in (3, 20):
        rate = float(info.learning_rate[place])
        own = advice.settings.model_copy(update={"learning_rate": rate})
        known = stability(forecaster, own, advice.steps)
        found = info.stable[:, place].tolist()
        assert found == pytest.approx([known.low, known.probability, known.high])
    assert info.stable[1, 0] > info.stable[1, -1]
    own = {run.highest_rate for run in posterior.meta.runs if run.model == advice.target.model}
    assert {rate for rate, _ in info.pilots} == own
    assert info.learning_rate[0] < min(own) < max(own) < info.learning_rate[-1]


def test_a_map_is_drawn_where_group_size_or_interval_varied(build: Build) -> None:
    assert has_varied(build([Pilot(1e-4, 8), Pilot(1e-4, 16)]))
    assert has_varied(build([Pilot(1e-4, 8, 1), Pilot(1e-4, 8, 4)]))
    assert not has_varied(build([Pilot(1e-4, 8), Pilot(3e-4, 8)]))
