"""Figures: what was learned, against prior and theory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor import model
from advisor.common import counted
from advisor.findings import at_pilot, middle_pilot, prior_groups
from advisor.forecast import central, ends_of
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import FigureKind, words
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_GROUPS = 10

BARS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("posterior", {"color": style.BLUE, "linewidth": 3}),
    ("prior", {"color": style.MUTED, "linewidth": 1}),
)
"""Entries of the legends."""


@dataclass(frozen=True)
class Ridge:
    """Posterior and prior density of one quantity, per unit of the axis or decade of a log one."""

    label: str
    value: FloatArray
    height: FloatArray
    prior_value: FloatArray
    prior_height: FloatArray
    lower: float  # of the central 80 % of the posterior
    median: float
    upper: float
    prior_lower: float  # of the central 90 % of the prior
    prior_upper: float

    @property
    def span(self) -> str:
        """Median and interval, to the digits that the interval's width makes worth reading."""
        width = max(self.upper - self.lower, 1e-12)
        digits = max(0, 1 - math.floor(math.log10(width)))
        return f"{self.median:z.{digits}f} [{self.lower:z.{digits}f}, {self.upper:z.{digits}f}]"


@dataclass(frozen=True)
class Posteriors:
    """One ridge per (task, model), and the exponent of the model size."""

    plateau: tuple[Ridge, ...]  # in reward units
    stiffness: tuple[Ridge, ...]  # per optimizer step
    curvature: Ridge
    sizes: int  # distinct model sizes
    reference: str  # settings of the pilot in the middle, of plateaus and stiffness
    left_out: int

    @property
    def is_prior_dominated(self) -> bool:
        """Whether there are too few model sizes for the data to speak about the exponent."""
        return self.sizes < model.MIN_SIZES

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        plateaus = "; ".join(f"{one.label} {one.span}" for one in self.plateau)
        doubt = ", prior-dominated" if self.is_prior_dominated else ""
        return (
            f"Posterior densities against their priors, {self.reference}. Plateau: {plateaus}. "
            f"Curvature exponent {self.curvature.span}{doubt}."
        )

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        return style.left_out_note(self.left_out)


def posteriors_info(posterior: Posterior) -> Posteriors:
    """Collect densities; the prior is simulated from the posterior's preset with a fixed seed."""
    meta = posterior.meta
    kept = [meta.groups.index(pair) for pair in style.most_piloted(meta, MAX_GROUPS)]
    labels = [" on ".join(map(style.shorten, meta.groups[g][::-1])) for g in kept]
    run, prior = middle_pilot(meta), prior_groups(meta, 4000)
    laws = [f"{law}.{term}" for law in ("rate", "plateau_loss") for term in model.LAWS[law]]
    plateau, stiffness = at_pilot(
        meta,
        run,
        {name: posterior.flat(name) for name in laws},
        posterior.flat("plateau"),
        posterior.flat("stiffness"),
    )
    prior_plateau, prior_stiffness = at_pilot(
        meta, run, prior.population, prior.plateau, prior.stiffness
    )
    named = list(zip(labels, kept, strict=True))
    return Posteriors(
        tuple(_ridge(label, plateau[:, g], prior_plateau[:, g]) for label, g in named),
        tuple(
            _ridge(label, stiffness[:, g], prior_stiffness[:, g], log=True) for label, g in named
        ),
        _ridge("", posterior.flat("curvature_exponent"), prior.curvature),
        posterior.sizes,
        f"at {style.settings_label(run.settings)}",
        len(meta.groups) - len(kept),
    )


def _ridge(label: str, draws: FloatArray, prior: FloatArray, *, log: bool = False) -> Ridge:
    value, height = model.density(np.log10(draws) if log else draws)
    prior_value, prior_height = model.density(np.log10(prior) if log else prior, 512)
    ends = (*central(draws), *central(prior, 0.9)[[0, 2]])
    if log:
        value, prior_value = 10**value, 10**prior_value
    return Ridge(label, value, height, prior_value, prior_height, *map(float, ends))


def draw_posteriors(info: Posteriors) -> Figure:
    """Draw three panels: ridges of plateau and stiffness, and the curvature exponent."""
    rows = len(info.plateau)
    figure = style.new_figure(10.2, max(3.2, 1.5 + 0.95 * rows))
    # The exponent has one ridge: it takes the height of three at most.
    grid = figure.add_gridspec(rows, 3, width_ratios=[1.15, 1.15, 1.0])
    tall = (rows, rows, min(rows, 3))
    left, middle, right = (figure.add_subplot(grid[:end, at]) for at, end in enumerate(tall))
    middle.set_xscale("log")
    sizes = counted(info.sizes, "model size")
    doubt = f" of {model.MIN_SIZES}: prior-dominated" if info.is_prior_dominated else ""
    style.tidy(left, title="Plateau", note=info.reference, x="train reward (reward units)")
    style.tidy(middle, title="Stiffness", note=info.reference, x="stiffness k (per optimizer step)")
    style.tidy(right, title="Curvature", note=sizes + doubt, x="exponent c (no unit)")
    _draw_ridges(left, info.plateau)
    _draw_ridges(middle, info.stiffness)
    _draw_ridges(right, [info.curvature])
    left.set_yticks(range(rows), [style.plain(ridge.label) for ridge in info.plateau])
    for axes in (left, right):
        axes.locator_params(axis="x", nbins=5)
    style.log_ticks(middle.xaxis, *middle.get_xlim())
    right.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
    style.legend(figure, BARS, loc="outside lower left", ncols=2)
    return figure


def _draw_ridges(axes: Axes, ridges: Sequence[Ridge]) -> None:
    """One ridge above the other, the first on top, each scaled to its own posterior's peak."""
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(ridges) - 0.55, -0.68)
    axes.set_xlim(
        min(min(ridge.prior_lower, ridge.value[0]) for ridge in ridges),
        max(max(ridge.prior_upper, ridge.value[-1]) for ridge in ridges),
    )
    for row, ridge in enumerate(ridges):
        scale = 0.55 / ridge.height.max()
        top, prior_top = row - scale * ridge.height, row - scale * ridge.prior_height
        axes.fill_between(ridge.value, row, top, color=style.SKY, alpha=0.4, linewidth=0)
        axes.plot(ridge.value, top, color=style.BLUE, linewidth=1.4)
        axes.plot(ridge.prior_value, prior_top, color=style.MUTED, linewidth=0.9)
        bar = row + 0.09
        axes.plot([ridge.lower, ridge.upper], [bar, bar], color=style.BLUE, linewidth=3)
        axes.plot(ridge.median, bar, "o", color="white", markersize=3.2, mec=style.BLUE)
        place = axes.transAxes.inverted().transform(axes.transData.transform((ridge.median, 0)))[0]
        side = "right" if place > 0.8 else "left" if place < 0.2 else "center"
        end = {"right": ridge.upper, "left": ridge.lower, "center": ridge.median}[side]
        style.write(axes, ridge.span, (end, bar), (0, -5), ha=side, va="top")


# How the settings act ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Exponent:
    """One exponent: central 80 % intervals of posterior and prior, and the theory's values."""

    key: str  # among the draws
    label: str  # what is raised to it
    theory: str
    informed: float  # share of the prior's variance that the pilots removed; negative if widened
    lower: float
    median: float
    upper: float
    prior_lower: float
    prior_median: float
    prior_upper: float

    @property
    def span(self) -> str:
        """Median and interval."""
        return f"{self.median:z.2f} [{self.lower:z.2f}, {self.upper:z.2f}]"

    @property
    def learned(self) -> str:
        """Share of the prior's variance removed."""
        return style.share_text(max(0.0, self.informed))


@dataclass(frozen=True)
class Exponents:
    """The whole figure: title of each law and its exponents."""

    laws: tuple[tuple[str, tuple[Exponent, ...]], ...]
    note: str = ""

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        laws = (
            f"{title} " + "; ".join(f"{row.label} {row.span}" for row in rows)
            for title, rows in self.laws
        )
        return f"Exponents with central 80 % intervals, against their priors. {'. '.join(laws)}."


def exponents_info(posterior: Posterior) -> Exponents:
    """Collect intervals of the exponents, their priors', and the theory's values."""
    informed = model.informed_share(posterior)

    def row(key: str, label: str, theory: str) -> Exponent:
        prior = getattr(posterior.meta.priors, key.replace(".", "_"))
        spread = NormalDist(prior.mean, prior.sd)
        ends = (*central(posterior.flat(key)), *map(spread.inv_cdf, ends_of(model.INTERVAL)))
        return Exponent(key, label, theory, informed[key], *map(float, ends))

    return Exponents(
        tuple(
            (title, tuple(row(key, *texts) for key, texts in terms.items()))
            for title, terms in words()["terms"].items()
        )
    )


def draw_exponents(info: Exponents) -> Figure:
    """Draw one panel per law: the posterior's interval in blue, the prior's below in grey."""
    counts = [len(rows) for _, rows in info.laws]
    figure = style.new_figure(10.2, 0.44 * sum(counts) + 0.8 * len(counts))
    # ArviZ's own forest has highest-density intervals in one version, and no second bar per row.
    panels = figure.subplots(len(counts), 1, height_ratios=counts)
    for axes, (title, rows) in zip(panels, info.laws, strict=True):
        style.tidy(axes, title=title, x="exponent (no unit)" if axes is panels[-1] else "")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rows) - 0.5, -0.6)
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
        for place, row in enumerate(rows):
            _draw_row(axes, row, place)
    margin: dict[str, Any] = {"xycoords": panels[0].get_yaxis_transform(), "annotation_clip": False}
    heads = ("posterior\nmedian [80 %]", "learned\nfrom pilots", "\ntheory")
    for x, text in zip(COLUMNS, heads, strict=True):
        style.write(panels[0], text, (1, -0.52), (x, 0), va="bottom", color=style.MUTED, **margin)
    style.legend(figure, BARS, loc="outside lower left", ncols=2)
    return figure


COLUMNS = (14.0, 122.0, 186.0)
"""Columns of text beside the axes, in points from them."""


def _draw_row(axes: Axes, row: Exponent, place: int) -> None:
    """Two bars and the marks of theory, and what they say beside them."""
    axes.plot([row.lower, row.upper], [place] * 2, color=style.BLUE, linewidth=3.2)
    axes.plot(row.median, place, "o", color="white", mec=style.BLUE, mew=1.4, markersize=5.5)
    below = place + 0.2
    axes.plot([row.prior_lower, row.prior_upper], [below] * 2, color=style.MUTED, linewidth=1.0)
    axes.plot(row.prior_median, below, "|", color=style.MUTED, markersize=6)
    for at in (float(part.split()[0]) for part in row.theory.split(", ") if part):
        axes.plot([at] * 2, [place - 0.2, place + 0.3], color=style.VERMILLION, linewidth=1.4)
    margin: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "annotation_clip": False}
    colors = (style.INK, style.MUTED, style.ALARM)
    for x, text, color in zip(COLUMNS, (row.span, row.learned, row.theory), colors, strict=True):
        style.write(axes, text, (1, place), (x, 0), va="center", color=color, **margin)


POSTERIORS = FigureKind(
    "posteriors", lambda posterior, _: posteriors_info(posterior), draw_posteriors
)

EXPONENTS = FigureKind("exponents", lambda posterior, _: exponents_info(posterior), draw_exponents)
