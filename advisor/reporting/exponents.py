"""Figure: exponents of the laws, posterior against prior and theory."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from advisor.findings.design import informed_share
from advisor.model.posterior import INTERVAL, Posterior
from advisor.reporting.names import share_text

LAWS: dict[str, tuple[str, dict[str, str]]] = {
    "rate": (
        "Stiffness k: exponent of",
        {
            "rate.learning_rate": "learning rate",
            "rate.group_size": "group size",
            "rate.prompts_per_step": "prompts per step",
            "curvature_exponent": "model size",
        },
    ),
    "plateau_loss": (
        "Plateau loss D: exponent of",
        {
            "plateau_loss.learning_rate": "learning rate",
            "plateau_loss.batch": "1 / completions per step",
            "plateau_loss.refresh_interval": "refresh interval",
            "plateau_loss.size": "model size",
        },
    ),
    "hazard": (
        "Collapse rate: exponent of",
        {
            "hazard.learning_rate": "learning rate",
            "hazard.batch": "1 / completions per step",
            "hazard.minibatches": "mini-batches per refresh",
            "hazard.epochs": "epochs per refresh",
            "hazard.size": "model size",
        },
    ),
}
"""Law -> title, and its exponents with what is raised to them."""

THEORY: dict[str, tuple[tuple[float, str], ...]] = {
    "rate.learning_rate": ((1.0, "SGD"),),
    "rate.group_size": ((0.0, "invariance"), (0.5, "AdamW in noise")),
    "rate.prompts_per_step": ((0.0, "invariance"), (0.5, "AdamW in noise")),
    "plateau_loss.learning_rate": ((1.0, "temperature"),),
    "plateau_loss.batch": ((0.5, "AdamW in noise"), (1.0, "SGD")),
}
"""Where the theory (sections 5 and 6) has a value: that, and what it holds for."""


@dataclass(frozen=True)
class Exponent:
    """One exponent.

    Attributes
    ----------
    key, label : str
        Name among the draws, and what is raised to the exponent.
    lower, median, upper : float
        Central 80 % interval of the posterior.
    prior_lower, prior_median, prior_upper : float
        That of the prior.
    informed : float
        Share of the prior's variance that the pilots removed; below 0 where they widened it.
    theory : tuple of (float, str)
    """

    key: str
    label: str
    lower: float
    median: float
    upper: float
    prior_lower: float
    prior_median: float
    prior_upper: float
    informed: float
    theory: tuple[tuple[float, str], ...]

    @property
    def span(self) -> str:
        """Median and interval."""
        return f"{self.median:.2f} [{self.lower:.2f}, {self.upper:.2f}]"

    @property
    def learned(self) -> str:
        """Share of the prior's variance removed."""
        return share_text(max(0.0, self.informed))


@dataclass(frozen=True)
class Exponents:
    """The whole figure: title of each law and its exponents."""

    laws: tuple[tuple[str, tuple[Exponent, ...]], ...]

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        parts = ["Exponents with central 80 % intervals, against their priors."]
        for title, rows in self.laws:
            told = "; ".join(f"{row.label} {row.span}, {row.learned} learned" for row in rows)
            parts.append(f"{title} {told}.")
        return " ".join(parts)

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        return ""


def exponents_info(posterior: Posterior) -> Exponents:
    """Collect what the figure shows.

    Parameters
    ----------
    posterior : Posterior
    """
    informed = informed_share(posterior)
    ends = [(1 - INTERVAL) / 2, 0.5, (1 + INTERVAL) / 2]

    def row(key: str, label: str) -> Exponent:
        prior = getattr(posterior.meta.priors, key.replace(".", "_"))
        spread = NormalDist(prior.mean, prior.sd)
        lower, median, upper = np.quantile(posterior.flat(key), ends)
        below, middle, above = map(spread.inv_cdf, ends)
        return Exponent(
            key,
            label,
            float(lower),
            float(median),
            float(upper),
            below,
            middle,
            above,
            informed[key],
            THEORY.get(key, ()),
        )

    return Exponents(
        tuple(
            (title, tuple(row(key, label) for key, label in terms.items()))
            for title, terms in LAWS.values()
        )
    )
