"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from advisor.report.convergence import convergence_info
from advisor.report.drawing.convergence import draw_convergence
from advisor.report.drawing.exponents import draw_exponents
from advisor.report.drawing.forecast_check import draw_forecast_check
from advisor.report.drawing.frontier import draw_frontier
from advisor.report.drawing.posteriors import draw_posteriors
from advisor.report.drawing.stability_map import draw_stability_map
from advisor.report.drawing.trajectories import draw_trajectories
from advisor.report.exponents import exponents_info
from advisor.report.fitted import fitted_curve
from advisor.report.forecast_check import forecast_check_info
from advisor.report.frontier import frontier_info
from advisor.report.gallery import FIGURES, draw_all, drawings
from advisor.report.html import report_html, write_report
from advisor.report.posteriors import posteriors_info
from advisor.report.stability_map import stability_map_info
from advisor.report.trajectories import trajectories_info

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
