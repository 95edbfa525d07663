"""Figure: what was learned, against the priors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from advisor import model
from advisor.common import counted
from advisor.findings import at_pilot, middle_pilot, prior_groups
from advisor.forecast import central
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import FigureKind, Info
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_GROUPS = 10


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
    learned: float  # share of the prior's variance that the pilots removed

    @property
    def span(self) -> str:
        """Median and interval, to the digits that the interval's width makes worth reading."""
        width = max(self.upper - self.lower, 1e-12)
        digits = max(0, 1 - math.floor(math.log10(width)))
        span = f"{self.median:z.{digits}f} [{self.lower:z.{digits}f}, {self.upper:z.{digits}f}]"
        return f"{span}, {100 * self.learned:.0f} % learned"


@dataclass(frozen=True)
class Posteriors(Info):
    """One ridge per (task, model), and the exponent of the model size."""

    name: ClassVar = "posteriors"
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


def posteriors_info(posterior: Posterior) -> Posteriors:
    """Collect densities; the prior is simulated from the posterior's preset with a fixed seed."""
    meta = posterior.meta
    kept = [meta.groups.index(pair) for pair in style.most_piloted(meta, MAX_GROUPS)]
    labels = [style.subject(*meta.groups[g][::-1]) for g in kept]
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
    own, before = (np.log10(draws), np.log10(prior)) if log else (draws, prior)
    value, height = model.density(own)
    prior_value, prior_height = model.density(before, 512)
    lower, median, upper = map(float, central(draws))
    first, last = map(float, central(prior, 0.9)[[0, 2]])
    learned = max(0.0, 1.0 - float(np.var(own) / np.var(before)))
    if log:
        value, prior_value = 10**value, 10**prior_value
    ends = lower, median, upper, first, last
    return Ridge(label, value, height, prior_value, prior_height, *ends, learned)


def draw_posteriors(info: Posteriors) -> Figure:
    """Draw three panels: ridges of plateau and stiffness, and the curvature exponent."""
    rows = len(info.plateau)
    figure = style.new_figure(10.2, max(3.2, 1.5 + 0.95 * rows))
    # The exponent has one ridge: it takes the height of three at most.
    grid = figure.add_gridspec(rows, 3, width_ratios=[1.15, 1.15, 1.0])
    tall = (rows, rows, min(rows, 3))
    left, middle, right = (figure.add_subplot(grid[:end, at]) for at, end in enumerate(tall))
    middle.set_xscale("log")
    sizes = f"{counted(info.sizes, 'model size')} piloted"
    doubt = f"; it takes {model.MIN_SIZES} to learn it" if info.is_prior_dominated else ""
    style.tidy(left, title="Plateau", note=info.reference, x="train reward (reward units)")
    style.tidy(middle, title="Stiffness", note=info.reference, x="stiffness k (per optimizer step)")
    style.tidy(right, title="Curvature", note=sizes + doubt, x="exponent c (no unit)")
    draw_ridges(left, info.plateau)
    draw_ridges(middle, info.stiffness)
    draw_ridges(right, [info.curvature])
    left.set_yticks(range(rows), [style.plain(ridge.label) for ridge in info.plateau])
    for axes in (left, right):
        axes.locator_params(axis="x", nbins=5)
    style.log_ticks(middle.xaxis, *middle.get_xlim())
    right.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
    blue, grey = {"color": style.BLUE, "linewidth": 3}, {"color": style.MUTED, "linewidth": 1}
    bars = ("posterior", blue), ("prior", grey)
    style.legend(figure, bars, loc="outside lower left", ncols=2)
    return figure


def draw_ridges(axes: Axes, ridges: Sequence[Ridge]) -> None:
    """One ridge above the other, the first on top, each scaled to its own peak or its prior's."""
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(ridges) - 0.55, -0.68)
    axes.set_xlim(
        min(min(ridge.prior_lower, ridge.value[0]) for ridge in ridges),
        max(max(ridge.prior_upper, ridge.value[-1]) for ridge in ridges),
    )
    for row, ridge in enumerate(ridges):
        scale = 0.55 / max(ridge.height.max(), ridge.prior_height.max())
        top, prior_top = row - scale * ridge.height, row - scale * ridge.prior_height
        axes.fill_between(ridge.prior_value, row, prior_top, color=style.FAINT, alpha=0.45, lw=0)
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


FIGURE = FigureKind("posteriors", lambda posterior, *_: posteriors_info(posterior), draw_posteriors)
