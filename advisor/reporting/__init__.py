"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from advisor.reporting.figure import Drawn, Missing, reason_of, render
from advisor.reporting.figures import FIGURES, check_format, drawings, drawings_made, plot
from advisor.reporting.figures.beliefs import draw_priors
from advisor.reporting.figures.checks import FORECAST_CHECK, forecast_check_info
from advisor.reporting.figures.symptom import draw_symptom, symptom_info
from advisor.reporting.page import report, report_html

__all__ = [
    "FIGURES",
    "FORECAST_CHECK",
    "Drawn",
    "Missing",
    "check_format",
    "draw_priors",
    "draw_symptom",
    "drawings",
    "drawings_made",
    "forecast_check_info",
    "plot",
    "reason_of",
    "render",
    "report",
    "report_html",
    "symptom_info",
]
