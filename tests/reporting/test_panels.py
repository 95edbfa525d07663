"""Panels of one's own are drawn into the axes that are given, with the numbers of the figures."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from advisor.reporting import plot_ends, plot_forecast, plot_posterior, plot_stability


def axes():
    return Figure().subplots()


@pytest.mark.parametrize("plot", [plot_ends, plot_stability, plot_forecast])
def test_axes_that_are_given_are_drawn_into_and_returned(plot, posterior, advice):
    mine = axes()
    assert plot(posterior, advice, ax=mine) is mine
    assert mine.lines
    assert mine.get_xlabel()


@pytest.mark.parametrize(
    ("parameter", "rows"), [("plateau", 2), ("stiffness", 2), ("curvature_exponent", 1)]
)
def test_a_posterior_has_a_ridge_for_each_model_and_task(parameter, rows, posterior):
    mine = axes()
    assert plot_posterior(posterior, parameter, ax=mine) is mine
    assert len(mine.get_yticks()) == rows
    assert (mine.get_xscale() == "log") == (parameter == "stiffness")
