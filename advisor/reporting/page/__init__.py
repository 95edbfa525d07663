"""The HTML report: one page with the answer, its figures, and sliders that evaluate settings."""
