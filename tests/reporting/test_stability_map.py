"""The map of P(stable)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from processor_time import at_most

from advisor.advice import Recommendation
from advisor.forecast import Forecaster, Target, stability
from advisor.model import Posterior
from advisor.reporting import FIGURES, style
from advisor.reporting.figures.stability_map import _limit

from .conftest import PILOTS, Pilot

MAX_PANELS = 4

stability_map_info, draw_stability_map = FIGURES["stability"].info, FIGURES["stability"].draw

Build = Callable[..., Any]
RATES = np.geomspace(1e-5, 1e-1, 5)


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
            "learning_rate": float(info.learning_rate[12]),
            "group_size": int(info.group_size[0]),
            "minibatches_per_refresh": int(info.interval[2]),
            "epochs_per_refresh": 1,
        }
    )
    expected = stability(forecaster, settings, advice.steps).least
    assert info.probability[0, 2, 12] == pytest.approx(expected)
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


def test_the_limit_falls_with_the_refresh_interval_and_rises_with_the_group(info: Any) -> None:
    # The prior means say so: mini-batches are hotter, batches are cooler.
    assert np.all(np.diff(info.limit, axis=1) < 0)
    assert np.all(np.diff(info.limit[:, 0]) > 0)


def test_the_limit_does_not_fall_where_nothing_makes_it(build: Build, advise: Build) -> None:
    posterior = build()
    posterior.draws["log_misfit"][:] = -20.0  # nor does the fluctuation
    posterior.draws["hazard.minibatches"][:] = 0.0
    posterior.draws["hazard.batch"][:] = 0.0
    posterior.draws["log_slope"][:] = -12.0  # too soft for staleness to matter
    flat = stability_map_info(posterior, advise(posterior))
    assert np.ptp(np.log(flat.limit)) < 1e-6


def test_a_higher_level_allows_less(posterior: Posterior, advise: Build, info: Any) -> None:
    strict = stability_map_info(posterior, advise(posterior, level=0.99))
    assert np.all(strict.limit < info.limit)
    assert "99 %" in strict.text


@pytest.mark.parametrize(
    ("probability", "expected"),
    [
        ([1.0, 1.0, 0.95, 0.85, 0.0], 10**-2.5),
        ([0.8, 0.95, 0.95, 0.95, 0.95], np.nan),
        ([1.0, 1.0, 1.0, 1.0, 0.9], np.inf),
        ([1.0, 0.0, 1.0, 1.0, 1.0], 10**-4.9),
    ],
)
def test_limit_of_one_row(probability: list[float], expected: float) -> None:
    assert _limit(np.array(probability), RATES, 0.9) == pytest.approx(expected, nan_ok=True)


def test_pilots_stand_in_the_panel_of_their_group(info: Any) -> None:
    shown = [info.group_size[dot.panel] if dot.panel >= 0 else None for dot in info.pilots]
    offered = set(info.group_size.tolist())
    assert shown == [p.group_size if p.group_size in offered else None for p in PILOTS]
    assert [dot.has_collapsed for dot in info.pilots] == [False, False, True, False, False]
    assert [dot.is_own for dot in info.pilots] == [True, True, True, False, False]
    assert [dot.interval for dot in info.pilots] == [2, 8, 2, 2, 4]


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


def test_recipes_within_the_axes_are_named_at_their_place(build: Build, advise: Build) -> None:
    posterior = build([Pilot(3e-7, 8), Pilot(3e-6, 8)], moved={"hazard.level": -4.0})
    found = stability_map_info(posterior, advise(posterior, Pilot(1e-6, 8)))
    words = [t.get_text() for axes in draw_stability_map(found).axes for t in axes.texts]
    assert "TRL defaults" in words
    assert "verl example scripts, G 5" in words


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


def test_of_dead_pilots_none_is_the_best(build: Build, advise: Build) -> None:
    posterior = build([Pilot(3e-4, 8, 8, collapse=7), Pilot(1e-3, collapse=9)])
    found = stability_map_info(posterior, advise(posterior, Pilot(3e-4, 8, 8), kind="next_pilot"))
    assert found.advised.name == "gentlest pilot"


@pytest.mark.evidence
def test_nowhere_stable_is_said_and_drawn(build: Build, advise: Build) -> None:
    posterior = build(moved={"hazard.level": 40.0})
    found = stability_map_info(posterior, advise(posterior, kind="infeasible"))
    assert np.all(np.isnan(found.limit))
    assert "below 90 % at every learning rate" in found.text
    draw_stability_map(found).draw_without_rendering()


@pytest.mark.evidence
def test_everywhere_stable_is_said_and_drawn(build: Build, advise: Build) -> None:
    # At the highest rates the line of the preset doubts what the model says.
    posterior = build(moved={"hazard.level": -60.0, "log_slope": -20.0, "log_misfit": -20.0})
    found = stability_map_info(posterior, advise(posterior, level=0.05))
    assert np.all(np.isinf(found.limit))
    assert "at least 5 % at every learning rate drawn" in found.text
    figure = draw_stability_map(found)
    figure.draw_without_rendering()
    # No line of a level that nothing crosses, in no panel and not in the legend.
    assert "there is no line" in found.note
    assert not any("P(stable)" in text.get_text() for text in figure.legends[0].get_texts())
    assert not any("5 %" in text.get_text() for axes in figure.axes for text in axes.texts)


def test_pilots_of_one_setting_are_counted_above_the_star(build: Build, advise: Build) -> None:
    posterior = build([Pilot(3e-4, 8, 8)] * 3)
    found = stability_map_info(posterior, advise(posterior, Pilot(3e-4, 8, 8)))
    (axes,) = [a for a in draw_stability_map(found).axes if "advised" in a.get_title(loc="left")]
    assert "3 pilots" in {text.get_text() for text in axes.texts}
    star, pilot = (
        next(line for line in axes.lines if line.get_marker() == marker) for marker in "*o"
    )
    assert pilot.get_zorder() > star.get_zorder()
    assert pilot.get_markersize() < star.get_markersize()
    # Their count stands clear of the star's tip.
    (count,) = [text for text in axes.texts if text.get_text() == "3 pilots"]
    axes.figure.draw_without_rendering()
    tip = star.get_transform().transform(star.get_xydata())[0, 1]
    tip += star.get_markersize() / 2 * axes.figure.dpi / 72
    assert count.get_window_extent().y0 >= tip - 1


def test_a_star_is_seen_under_the_pilot_that_lies_on_it(build: Build, advise: Build) -> None:
    """Most of what is blue of a star without a pilot is blue of one with a pilot as well."""

    def blue(pilots: list[Pilot]) -> int:
        posterior = build(pilots)
        info = stability_map_info(posterior, advise(posterior, Pilot(1e-4)))
        figure = draw_stability_map(info)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        (axes,) = [one for one in figure.axes if "advised" in one.get_title(loc="left")]
        x, y = axes.transData.transform(info.advised.place)
        pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3].astype(int)
        near = pixels[int(y) - 22 : int(y) + 22, int(x) - 22 : int(x) + 22]
        return int(np.sum(np.abs(near - np.array(to_rgb(style.BLUE)) * 255).sum(axis=2) < 12))

    alone = blue([Pilot(1e-4, 8, 4), Pilot(3e-4)])
    assert alone > 50
    assert blue([Pilot(1e-4), Pilot(3e-4)]) > 0.7 * alone


def test_epochs_are_those_advised_and_lower_intervals_stay_empty(
    posterior: Posterior, advise: Build
) -> None:
    advice = advise(posterior, Pilot(3e-4, 16, 2, 4))
    found = stability_map_info(posterior, advice)
    assert found.interval[0] == 4
    forecaster = Forecaster(posterior, advice.target, draws=400)
    panel = found.group_size.tolist().index(16)
    at = advice.settings.model_copy(update={"learning_rate": float(found.learning_rate[10])})
    assert at.refresh_interval == found.interval[1]
    expected = stability(forecaster, at, advice.steps).least
    assert found.probability[panel, 1, 10] == pytest.approx(expected)
    axes = draw_stability_map(found).axes[0]
    assert axes.get_ylim()[0] < 2
    said = {text.get_text() for text in axes.texts}
    assert "fewer epochs than advised: not drawn" in said


def test_an_unpiloted_target_can_be_mapped(posterior: Posterior, advise: Build) -> None:
    found = stability_map_info(posterior, advise(posterior, target=Target("sort", "huge", 7e9)))
    assert not any(dot.is_own for dot in found.pilots)


def test_the_map_takes_less_than_three_seconds(
    posterior: Posterior, advice: Recommendation
) -> None:
    with at_most(3):
        stability_map_info(posterior, advice)


def test_panels_are_the_group_sizes_that_could_be_chosen(
    posterior: Posterior, advise: Build
) -> None:
    advice = advise(posterior).model_copy(update={"choices": {"group_size": (4.0, 8.0)}})
    found = stability_map_info(posterior, advice)
    assert found.group_size.tolist() == [4, 8]
    assert found.other_groups == ()


def test_the_legend_of_a_single_panel_lies_within_the_drawing(build: Build, advise: Build) -> None:
    kinds = [(name, collapse) for name in ("tiny-s", "tiny-m") for collapse in (None, 7)]
    posterior = build([Pilot(3e-4, 8, 2, model=name, collapse=at) for name, at in kinds])
    advice = advise(posterior)
    one_group = {**advice.choices, "group_size": (advice.settings.group_size,)}
    found = stability_map_info(posterior, advice.model_copy(update={"choices": one_group}))
    assert len(found.group_size) == 1
    figure = draw_stability_map(found)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert "pilot of another model or task, collapsed" in {t.get_text() for t in legend.get_texts()}
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
