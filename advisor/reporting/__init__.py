"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from advisor.forecast.fitted_run import fitted_curve
from advisor.reporting.convergence import convergence_info
from advisor.reporting.drawing.convergence import draw_convergence
from advisor.reporting.drawing.exponents import draw_exponents
from advisor.reporting.drawing.forecast_check import draw_forecast_check
from advisor.reporting.drawing.frontier import draw_frontier
from advisor.reporting.drawing.posteriors import draw_posteriors
from advisor.reporting.drawing.stability_map import draw_stability_map
from advisor.reporting.drawing.trajectories import draw_trajectories
from advisor.reporting.exponents import exponents_info
from advisor.reporting.forecast_check import forecast_check_info
from advisor.reporting.frontier import frontier_info
from advisor.reporting.gallery import FIGURES, draw_all, drawings
from advisor.reporting.html import report_html, write_report
from advisor.reporting.posteriors import posteriors_info
from advisor.reporting.stability_map import stability_map_info
from advisor.reporting.trajectories import trajectories_info

__all__ = [
    "FIGURES",
    "convergence_info",
    "draw_all",
    "draw_convergence",
    "draw_exponents",
    "draw_forecast_check",
    "draw_frontier",
    "draw_posteriors",
    "draw_stability_map",
    "draw_trajectories",
    "drawings",
    "exponents_info",
    "fitted_curve",
    "forecast_check_info",
    "frontier_info",
    "posteriors_info",
    "report_html",
    "stability_map_info",
    "trajectories_info",
    "write_report",
]
