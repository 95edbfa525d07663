"""Panels of one's own are drawn into the axes that are given, with the numbers of the figures."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from advisor.errors import InputError
from advisor.reporting import plot_ends, plot_forecast, plot_posterior, plot_stability
from advisor.reporting.figures.decision import decision_info
from advisor.reporting.figures.trajectories import trajectories_info


def axes():
    return Figure().subplots()


@pytest.mark.parametrize("plot", [plot_ends, plot_stability, plot_forecast])
def test_axes_that_are_given_are_drawn_into_and_returned(plot, posterior, advice):
    mine = axes()
    assert plot(posterior, advice, ax=mine) is mine
    assert mine.lines
    assert mine.get_xlabel()


def test_panels_show_the_numbers_of_the_figures(posterior, advice):
    said = [text.get_text() for text in plot_ends(posterior, advice, ax=axes()).texts]
    for one, text in zip(decision_info(posterior, advice).ends, said, strict=False):
        assert text == one.label.replace("$", r"\$")
    (forecast,) = [p.forecast for p in trajectories_info(posterior, advice).panels if p.forecast]
    drawn = plot_forecast(posterior, advice, ax=axes())
    assert drawn.get_ylabel() == forecast.measure
    assert any(line.get_ydata()[-1] == forecast.band[1, -1] for line in drawn.lines)


@pytest.mark.parametrize(
    ("parameter", "rows"), [("plateau", 2), ("stiffness", 2), ("curvature_exponent", 1)]
)
def test_a_posterior_has_a_ridge_for_each_model_and_task(parameter, rows, posterior):
    mine = axes()
    assert plot_posterior(posterior, parameter, ax=mine) is mine
    assert len(mine.get_yticks()) == rows
    assert (mine.get_xscale() == "log") == (parameter == "stiffness")


def test_another_parameter_is_refused_with_those_there_are(posterior):
    with pytest.raises(InputError, match="Choose among plateau"):
        plot_posterior(posterior, "momentum")


def test_without_axes_a_figure_is_made(posterior):
    from matplotlib import pyplot

    pyplot.switch_backend("Agg")
    drawn = plot_posterior(posterior, "plateau")
    assert drawn.figure.number in pyplot.get_fignums()
    pyplot.close(drawn.figure)
