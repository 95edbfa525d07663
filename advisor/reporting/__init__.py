"""Figures and the HTML report. Importing this is cheap: matplotlib loads with the first figure."""

from advisor.reporting.figures import FIGURES as FIGURES
from advisor.reporting.figures import check_figures as check_figures
from advisor.reporting.figures import check_format as check_format
from advisor.reporting.figures import drawings as drawings
from advisor.reporting.figures import drawings_made as drawings_made
from advisor.reporting.figures import plot as plot
from advisor.reporting.page import report as report
from advisor.reporting.page import report_html as report_html
