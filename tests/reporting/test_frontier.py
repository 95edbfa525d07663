"""Reward against price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from advisor.advice import Recommendation
from advisor.advice.answer_fields import Alternative
from advisor.model.posterior import Posterior
from advisor.reporting import style
from advisor.reporting.figures.frontier import _best, draw_frontier, frontier_info

from .conftest import PILOTS

Build = Callable[..., Any]


def like(of: Recommendation, name: str, group: int, cost: float, reward: float, p: float) -> Any:
    """Alternative with made-up merits."""
    return Alternative(
        name=name,
        settings=of.settings.model_copy(update={"group_size": group}),
        reward=reward,
        stability=of.stability.model_copy(update={"probability": p, "by_model": p}),
        cost=of.cost.model_copy(update={"completions": cost}),
        steps_to_95=None,
    )


@pytest.fixture
def answer(advice: Recommendation) -> Recommendation:
    cost = advice.cost.completions
    frontier = (
        like(advice, "frontier", 2, cost / 8, 0.3, 0.95),
        like(advice, "frontier", 4, cost / 4, 0.7, 0.4),
        like(advice, "frontier", 16, cost * 2, advice.reward.mean + 0.01, 0.97),
    )
    same = like(advice, "cheaper", 4, cost / 2, 0.6, 0.99)
    also = same.model_copy(update={"name": "faster"})
    return advice.model_copy(update={"frontier": frontier, "alternatives": (same, also)})


def test_numbers_are_those_of_the_answer(posterior: Posterior, answer: Recommendation) -> None:
    info = frontier_info(posterior, answer)
    assert info.cost.tolist() == [one.cost.paid for one in answer.frontier]
    assert info.reward.tolist() == [one.reward for one in answer.frontier]
    assert info.probability.tolist() == [0.95, 0.4, 0.97]
    advised = info.named[0]
    assert advised.names[0] == "advised"
    assert (advised.cost, advised.reward) == (answer.cost.paid, answer.reward.mean)
    assert info.unit == "generated completions"
    assert info.note == (
        "1 of 3 configurations of the frontier stay below P(stable) = 90 %. "
        "2 of 3 configurations of the frontier lie beyond what was piloted, where the prior "
        "decides."
    )


def test_one_configuration_has_all_its_names(posterior: Posterior, answer: Recommendation) -> None:
    names = [one.names for one in frontier_info(posterior, answer).named]
    assert ("cheaper", "faster") in names
    # The best pilot of this made-up answer is what is advised.
    assert names[0] == ("advised", "best pilot")
    assert len(names) == 2 + len(answer.recipes)


def test_the_line_rises_and_holds_what_is_stable_enough(
    posterior: Posterior, answer: Recommendation
) -> None:
    info = frontier_info(posterior, answer)
    assert np.all(np.diff(info.best_cost) > 0)
    assert np.all(np.diff(info.best_reward) > 0)
    assert 0.7 not in info.best_reward
    assert info.best_reward[-1] == answer.reward.mean + 0.01


def test_no_line_where_nothing_is_stable_enough() -> None:
    assert _best([(1.0, 0.5, 0.2)], 0.9).shape == (0, 2)


def test_what_is_not_stable_enough_is_hollow(posterior: Posterior, answer: Recommendation) -> None:
    axes = draw_frontier(frontier_info(posterior, answer)).axes[0]
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [0.7] in [list(line.get_ydata()) for line in hollow]


def test_labels_and_units(posterior: Posterior, answer: Recommendation) -> None:
    axes = draw_frontier(frontier_info(posterior, answer)).axes[0]
    words = {text.get_text() for text in axes.texts}
    # No pilot ran a group of four, nor so low a rate; all other settings were piloted.
    assert "cheaper, faster\nlr 3e-4, G 4*, K 8" in words
    assert any(word.startswith("TRL defaults\nlr 1e-6*") for word in words)
    assert "advised, best pilot\nlr 3e-4, G 8, K 8" in words
    assert axes.get_xlabel() == "price of the run (generated completions)"
    assert axes.get_ylabel() == "expected train reward at the last step (range 0 to 1)"


def test_what_no_pilot_ran_is_grey(posterior: Posterior, answer: Recommendation) -> None:
    info = frontier_info(posterior, answer)
    assert info.piloted.tolist() == [False, False, True]
    axes = draw_frontier(info).axes[0]
    grey = [line for line in axes.lines if line.get_markerfacecolor() == style.FAINT]
    assert [list(line.get_ydata()) for line in grey] == [[0.3]]
    assert any("no pilot ran" in text.get_text() for text in axes.texts)


@pytest.mark.parametrize(
    ("hours", "unit", "shown"),
    [(0.001, "GPU-seconds", 3.6), (0.05, "GPU-minutes", 3.0), (8.0, "GPU-hours", 8.0)],
)
def test_prices_have_a_unit_that_a_person_uses(
    posterior: Posterior, answer: Recommendation, hours: float, unit: str, shown: float
) -> None:
    cost = answer.cost.model_copy(update={"gpu_hours": hours})
    frontier = [one.model_copy(update={"cost": cost}) for one in answer.frontier]
    parts = {"cost": cost, "frontier": tuple(frontier), "alternatives": ()}
    info = frontier_info(posterior, answer.model_copy(update=parts))
    assert info.unit == unit
    assert info.named[0].cost == pytest.approx(shown)
    assert info.cost.tolist() == pytest.approx([shown] * 3)
    assert draw_frontier(info).axes[0].get_xlabel() == f"price of the run ({unit})"


def test_labels_keep_clear_of_each_other(posterior: Posterior, answer: Recommendation) -> None:
    figure = draw_frontier(frontier_info(posterior, answer))
    figure.draw_without_rendering()
    axes = figure.axes[0]
    # Of the words: an annotation's own extent holds the line to its point as well.
    named = [text for text in axes.texts if "\nlr" in text.get_text()]
    boxes = [Text.get_window_extent(text) for text in named]
    assert len(boxes) == len(frontier_info(posterior, answer).named)
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:index])
        assert axes.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize(("kind", "name"), [("infeasible", "safest found"), ("next_pilot", "best")])
def test_an_answer_without_frontier_can_be_drawn(
    posterior: Posterior, advise: Build, kind: str, name: str
) -> None:
    info = frontier_info(posterior, advise(posterior, PILOTS[1], kind=kind, level=0.999999))
    assert info.cost.size == 0
    assert info.named[0].names[0].startswith(name)
    draw_frontier(info).draw_without_rendering()
