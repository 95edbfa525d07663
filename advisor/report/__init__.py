"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from advisor.report.drawing.posteriors import draw_posteriors
from advisor.report.drawing.stability_map import draw_stability_map
from advisor.report.drawing.trajectories import draw_trajectories
from advisor.report.fitted import fitted_curve
from advisor.report.gallery import FIGURES, draw_all
from advisor.report.html import report_html, write_report
from advisor.report.posteriors import posteriors_info
from advisor.report.stability_map import stability_map_info
from advisor.report.trajectories import trajectories_info

__all__ = [
    "FIGURES",
    "draw_all",
    "draw_posteriors",
    "draw_stability_map",
    "draw_trajectories",
    "fitted_curve",
    "posteriors_info",
    "report_html",
    "stability_map_info",
    "trajectories_info",
    "write_report",
]
