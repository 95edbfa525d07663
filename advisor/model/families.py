"""Families of reward curves: one model, with some of its parameters pinned.

The relaxation over a spectrum of stiffness is fitted unless the closed form of arXiv:2606.30789 is
asked for: one damped mode, which overshoots when it is underdamped. Both are fitted by the same
machine code.
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.errors import InputError
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
    """A family of reward curves."""

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


SPECTRUM = Family("spectrum", "the oscillator over a spectrum of stiffness", {})

OSCILLATOR = Family(
    "oscillator",
    "the one-mode damped oscillator",
    {
        "log_onset": NO_ONSET,
        "log_dispersion": NO_DISPERSION,
        "log_run_shape_spread": NO_SPREAD,
    },
    is_oscillator=True,
)

FAMILIES = {family.name: family for family in (SPECTRUM, OSCILLATOR)}
"""All families; the first is fitted unless the other is asked for."""


def family_of(name: str) -> Family:
    """Family of a name."""
    if name not in FAMILIES:
        raise InputError(
            f"there is no family of curves '{name}'",
            argument="family",
            advice=f"Choose among {', '.join(FAMILIES)}",
        )
    return FAMILIES[name]
