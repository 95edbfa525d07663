"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from advisor.reporting.figure import Missing as Missing
from advisor.reporting.figure import reason_of as reason_of
from advisor.reporting.figure import render as render
from advisor.reporting.figures import FIGURES as FIGURES
from advisor.reporting.figures import check_figures as check_figures
from advisor.reporting.figures import check_format as check_format
from advisor.reporting.figures import drawings as drawings
from advisor.reporting.figures import drawings_made as drawings_made
from advisor.reporting.figures import plot as plot
from advisor.reporting.figures.beliefs import draw_priors as draw_priors
from advisor.reporting.figures.symptom import draw_symptom as draw_symptom
from advisor.reporting.figures.symptom import symptom_info as symptom_info
from advisor.reporting.page import report as report
from advisor.reporting.page import report_html as report_html
