"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from advisor.reporting.figure import FORMATS, Drawn, Missing, reason_of, render
from advisor.reporting.figures.convergence import convergence_info, draw_convergence
from advisor.reporting.figures.forecast_check import FIGURE as FORECAST_CHECK
from advisor.reporting.figures.forecast_check import draw_forecast_check, forecast_check_info
from advisor.reporting.figures.frontier import draw_frontier, frontier_info
from advisor.reporting.figures.posteriors import (
    draw_exponents,
    draw_posteriors,
    exponents_info,
    posteriors_info,
)
from advisor.reporting.figures.prior_predictive import draw_priors
from advisor.reporting.figures.stability_map import draw_stability_map, stability_map_info
from advisor.reporting.figures.symptom import draw_symptom, symptom_info
from advisor.reporting.figures.trajectories import draw_trajectories, trajectories_info
from advisor.reporting.gallery import FIGURES, check_format, drawings, drawings_made, plot
from advisor.reporting.page.html import report, report_html

__all__ = [
    "FIGURES",
    "FORECAST_CHECK",
    "FORMATS",
    "Drawn",
    "Missing",
    "check_format",
    "convergence_info",
    "draw_convergence",
    "draw_exponents",
    "draw_forecast_check",
    "draw_frontier",
    "draw_posteriors",
    "draw_priors",
    "draw_stability_map",
    "draw_symptom",
    "draw_trajectories",
    "drawings",
    "drawings_made",
    "exponents_info",
    "forecast_check_info",
    "frontier_info",
    "plot",
    "posteriors_info",
    "reason_of",
    "render",
    "report",
    "report_html",
    "stability_map_info",
    "symptom_info",
    "trajectories_info",
]
