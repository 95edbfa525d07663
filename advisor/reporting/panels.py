"""Single panels for figures of one's own: each draws into Axes and returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.errors import InputError
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figures.beliefs import draw_ridges, posteriors_info
from advisor.reporting.figures.decision import decision_info, draw_ends, draw_stable
from advisor.reporting.figures.trajectories import draw_forecast, rate_scale, trajectories_info

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from advisor.advice import Recommendation

PARAMETERS = ("plateau", "stiffness", "curvature_exponent")


def plot_ends(posterior: Posterior, recommendation: Recommendation, ax: Axes | None = None) -> Axes:
    """Draw the reward that the advised settings, the leader and a recipe are forecast to end with.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    ax : matplotlib Axes, optional
        By default those of a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes
    """
    drawn = _axes(ax)
    draw_ends(drawn, decision_info(posterior, recommendation))
    return drawn


def plot_stability(
    posterior: Posterior, recommendation: Recommendation, ax: Axes | None = None
) -> Axes:
    """Draw P(stable) along the learning rate, as `plot_ends` takes and returns Axes."""
    drawn = _axes(ax)
    draw_stable(drawn, decision_info(posterior, recommendation))
    return drawn


def plot_forecast(
    posterior: Posterior, recommendation: Recommendation, ax: Axes | None = None
) -> Axes:
    """Draw the advised run with its 80 % band over its pilots, as `plot_ends`."""
    info, drawn = trajectories_info(posterior, recommendation), _axes(ax)
    for panel in info.panels:
        if panel.forecast is not None:
            style.tidy(
                drawn, title=panel.forecast.label, x="optimizer step", y=panel.forecast.measure
            )
            draw_forecast(drawn, panel, panel.forecast, rate_scale(info))
    return drawn


def plot_posterior(posterior: Posterior, parameter: str, ax: Axes | None = None) -> Axes:
    """Draw a parameter's posterior over its prior, as `plot_ends`.

    ``parameter`` is "plateau" (reward units), "stiffness" (per optimizer step), both of each model
    and task, or "curvature_exponent".
    """
    if parameter not in PARAMETERS:
        raise InputError(
            f"no posterior of '{parameter}' is drawn",
            argument="parameter",
            advice=f"Choose among {', '.join(PARAMETERS)}",
        )
    info = posteriors_info(posterior)
    ridges = dict(zip(PARAMETERS, (info.plateau, info.stiffness, (info.curvature,)), strict=True))
    drawn, own = _axes(ax), ridges[parameter]
    style.tidy(drawn, title=parameter.replace("_", " ").capitalize())
    drawn.set_xscale("log" if parameter == "stiffness" else "linear")
    draw_ridges(drawn, own)
    drawn.set_yticks(range(len(own)), [style.plain(one.label) for one in own])
    return drawn


def _axes(ax: Axes | None) -> Axes:
    """Axes to draw into: those given, or of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]
