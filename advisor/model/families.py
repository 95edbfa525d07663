"""Families of reward curves: one model, with some of its parameters pinned.

The relaxation ``(1 + dispersion x^onset)^(-1/dispersion)`` holds the exponential, the stretched
exponential and the Hill curve (ScaleRL, arXiv:2510.13786) as special cases; the oscillator of
arXiv:2606.30789 has a curve of its own, which overshoots when it is underdamped. So every family is
fitted by the same machine code, and draws of different families live side by side.
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.model.priors import Priors
from advisor.model.priors.loader import NormalPrior

PINNED_SD = 0.01
"""Standard deviation of a pinned logarithm: 1 %."""

NO_DISPERSION = -6.0
"""Log dispersion of a curve without one; it differs by less than 0.001 from the limit 0."""

NO_SPREAD = -4.0
"""Log run-to-run spread of a shape that all runs share: 2 %."""

NO_ONSET = 0.0
"""Log onset exponent of a curve that starts at full slope."""


class Family(NamedTuple):
    """A family of reward curves.

    Attributes
    ----------
    name : str
    title : str
        As a sentence would call it.
    pins : dict of str to float
        Prior entry and the value it is pinned to.
    is_oscillator : bool
        Whether the curve is that of a single mode with mass.
    """

    name: str
    title: str
    pins: dict[str, float]
    is_oscillator: bool = False

    def priors(self, preset: Priors) -> Priors:
        """Preset with this family's parameters pinned."""
        pinned = {
            name: NormalPrior(mean=mean, sd=PINNED_SD, source=f"{self.title}, by definition")
            for name, mean in self.pins.items()
        }
        return preset.model_copy(update=pinned)


_ONE_SHAPE = {"log_run_shape_spread": NO_SPREAD}

SPECTRUM = Family("spectrum", "the oscillator over a spectrum of stiffness", {})

FAMILIES = {
    family.name: family
    for family in (
        SPECTRUM,
        Family(
            "oscillator",
            "the one-mode damped oscillator",
            {"log_onset": NO_ONSET, "log_dispersion": NO_DISPERSION, **_ONE_SHAPE},
            is_oscillator=True,
        ),
        Family(
            "exponential",
            "the exponential (the overdamped oscillator)",
            {"log_onset": NO_ONSET, "log_dispersion": NO_DISPERSION, **_ONE_SHAPE},
        ),
        Family("hill", "the Hill curve", {"log_dispersion": 0.0, **_ONE_SHAPE}),
        Family(
            "stretched",
            "the stretched exponential",
            {"log_dispersion": NO_DISPERSION, **_ONE_SHAPE},
        ),
    )
}
"""All families; the first is fitted unless others are asked for."""
