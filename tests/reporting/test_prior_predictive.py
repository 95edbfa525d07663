"""The figure of a preset: labels, units, and what stands in it."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.model.presets import BANDS, prior_predictive
from advisor.model.priors import load_priors, preset_names
from advisor.reporting.figure import render
from advisor.reporting.figures.beliefs import CURVES, draw_priors


@pytest.fixture(scope="module")
def info():
    return prior_predictive(load_priors("small_models"))


def test_axes_have_units_and_titles(info):
    curves, plateau, time, _ = draw_priors(info).axes
    assert curves.get_ylabel() == "reward (share of floor to ceiling)"
    assert "small_models" in curves.get_title(loc="left")
    assert plateau.get_title(loc="left") == "Plateau"
    assert time.get_xlabel() == "optimizer steps (log scale)"
    assert curves.get_xscale() == time.get_xscale() == "log"
    assert plateau.get_ylim() == curves.get_ylim()
    assert time.get_xlim() == curves.get_xlim()


@pytest.mark.evidence
def test_curves_are_draws_and_the_median_is_of_all(info):
    curves = draw_priors(info).axes[0]
    assert len(curves.lines) == CURVES + 1
    for line, reward in zip(curves.lines[:CURVES], info.reward[:CURVES], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), reward)
    np.testing.assert_array_equal(curves.lines[-1].get_ydata(), np.median(info.reward, axis=0))


def test_bands_are_drawn_where_they_lie(info):
    _, plateau, time, legend = draw_priors(info).axes
    for line, share in zip(plateau.lines, BANDS, strict=False):
        np.testing.assert_array_equal(line.get_ydata(), info.bands("plateau")[share])
    for line, share in zip(time.lines, BANDS, strict=False):
        np.testing.assert_array_equal(line.get_xdata(), info.bands("time")[share])
    widths = [line.get_linewidth() for line in plateau.lines[:3]]
    assert widths == sorted(widths, reverse=True)
    assert [text.get_text() for text in legend.get_legend().get_texts()] == [
        "50 %",
        "80 %",
        "95 %",
        "median",
    ]


@pytest.mark.evidence
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_drawn_in_every_format(name):
    found = prior_predictive(load_priors(name), draws=500)
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for kind, start in starts.items():
        assert render(draw_priors(found), kind).startswith(start)
