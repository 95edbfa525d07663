"""Families of curves that are ranked: those of the package, and three that pin its spectrum.

The relaxation ``(1 + dispersion x^onset)^(-1/dispersion)`` holds the exponential, the stretched
exponential and the Hill curve (ScaleRL, arXiv:2510.13786) as special cases.
"""

from advisor.model import FAMILIES as OF_THE_PACKAGE
from advisor.model.priors import OSCILLATOR, Family

_ONE_SHAPE = {"log_run_shape_spread": OSCILLATOR.pins["log_run_shape_spread"]}
_NO_DISPERSION = OSCILLATOR.pins["log_dispersion"]

FAMILIES = {
    **OF_THE_PACKAGE,
    "exponential": Family(
        "exponential",
        "the exponential (the overdamped oscillator)",
        {"log_onset": 0.0, "log_dispersion": _NO_DISPERSION, **_ONE_SHAPE},
    ),
    "hill": Family("hill", "the Hill curve", {"log_dispersion": 0.0, **_ONE_SHAPE}),
    "stretched": Family(
        "stretched",
        "the stretched exponential",
        {"log_dispersion": _NO_DISPERSION, **_ONE_SHAPE},
    ),
}
"""All of them by name, in the order of the page."""
