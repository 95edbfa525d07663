"""The map of P(stable)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advisor.advice import Recommendation
from advisor.forecast import Forecaster, stability
from advisor.model import Posterior
from advisor.reporting import FIGURES

from .conftest import PILOTS, Pilot

MAX_PANELS = 4

stability_map_info, draw_stability_map = FIGURES["stability"].info, FIGURES["stability"].draw

Build = Callable[..., Any]


@pytest.fixture(scope="module")
def info(posterior: Posterior, advice: Recommendation) -> Any:
    return stability_map_info(posterior, advice)


def test_shapes_ranges_and_panels(info: Any) -> None:
    assert info.probability.shape == (
        len(info.group_size),
        len(info.interval),
        len(info.learning_rate),
    )
    assert np.all((info.probability >= 0) & (info.probability <= 1))
    assert len(info.group_size) <= MAX_PANELS
    assert info.group_size[info.advised.panel] == 8
    assert np.all(np.diff(np.log2(info.interval)) == 1)
    for pilot in PILOTS:
        assert info.learning_rate[0] < pilot.learning_rate < info.learning_rate[-1]


def test_a_cell_is_the_stability_of_its_configuration(
    info: Any, posterior: Posterior, advice: Recommendation
) -> None:
    forecaster = Forecaster(posterior, advice.target, draws=400)
    settings = advice.settings.model_copy(
        update={
            "learning_rate": float(info.learning_rate[-4]),
            "group_size": int(info.group_size[0]),
            "minibatches_per_refresh": int(info.interval[2]),
            "epochs_per_refresh": 1,
        }
    )
    expected = stability(forecaster, settings, advice.steps).probability
    assert info.probability[0, 2, -4] == pytest.approx(expected)
    assert 0.02 < expected < 0.98


def test_the_limit_is_where_the_level_is_crossed(info: Any) -> None:
    for panel in range(len(info.group_size)):
        for row in range(len(info.interval)):
            limit = info.limit[panel, row]
            probability = info.probability[panel, row]
            assert np.all(probability[info.learning_rate < limit] >= info.level)
            after = np.flatnonzero(info.learning_rate >= limit)[0]
            assert probability[after] < info.level


def test_what_is_drawn_is_the_reward_that_is_expected(
    info: Any, posterior: Posterior, advice: Recommendation
) -> None:
    assert info.reward.shape == info.probability.shape
    forecaster = Forecaster(posterior, advice.target, draws=400)
    changed = {
        "learning_rate": float(info.learning_rate[7]),
        "group_size": int(info.group_size[1]),
        "minibatches_per_refresh": int(info.interval[3]),
    }
    settings = advice.settings.model_copy(update=changed)
    expected = forecaster.outcome(settings, [advice.steps]).mean()
    assert info.reward[1, 3, 7] == pytest.approx(expected)
    figure = draw_stability_map(info)
    figure.draw_without_rendering()
    inline = [t.get_text() for axes in figure.axes for t in axes.texts]
    low, high = info.reward.min(), info.reward.max()
    lines = [float(word) for word in inline if re.fullmatch(r"-?\d\.\d+", word)]
    assert len(set(lines)) >= 3
    assert all(low < line < high for line in lines)


def test_a_pilot_of_a_distant_group_is_left_out_and_counted(build: Build, advise: Build) -> None:
    posterior = build([Pilot(1e-4, 4), Pilot(3e-4, 128)])
    found = stability_map_info(posterior, advise(posterior, Pilot(1e-4, 4)))
    assert found.pilots[1].panel == -1
    assert found.note.endswith(
        "Also offered, but not drawn: group size 32, 64, 128, 256. "
        "1 pilot of other group sizes not drawn."
    )


def test_the_drawing_has_a_titled_panel_per_group_and_names_what_is_beyond(info: Any) -> None:
    figure = draw_stability_map(info)
    panels = figure.axes[: len(info.group_size)]
    assert len(figure.axes) == len(panels)
    assert [axes.get_title(loc="left") for axes in panels] == [
        f"Group size {group}{': advised' if group == 8 else ''}" for group in info.group_size
    ]
    assert all(axes.get_xscale() == "log" for axes in panels)
    assert panels[-1].get_xlabel() == "peak learning rate"
    assert panels[0].get_ylabel() == "refresh interval K (optimizer steps)"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "expected reward after 180 steps, if stable" in labels
    assert "P(stable) = 90 %" in labels
    words = [text.get_text() for axes in panels for text in axes.texts]
    assert "beyond what was piloted" in labels
    assert "Beyond the picture: TRL defaults (lr 1e-6, G 8, K 1)" in info.note
    assert "90 %" in words


@pytest.mark.parametrize(
    ("kind", "name"), [("infeasible", "safest found"), ("next_pilot", "best pilot")]
)
def test_what_the_star_is_depends_on_the_answer(
    posterior: Posterior, advise: Build, kind: str, name: str
) -> None:
    found = stability_map_info(posterior, advise(posterior, kind=kind))
    assert found.advised.name == name
    assert found.next_pilot is not None
    labels = [text.get_text() for text in draw_stability_map(found).legends[0].get_texts()]
    assert labels[:2] == [name, "next pilot"]
