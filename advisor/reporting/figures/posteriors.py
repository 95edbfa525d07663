"""Figure: plateau, stiffness and curvature exponent, posterior against prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.common import counted
from advisor.findings import at_pilot, middle_pilot, prior_groups
from advisor.forecast import central
from advisor.model import LAWS, MIN_SIZES, Posterior, density
from advisor.reporting.drawing import style
from advisor.reporting.figures.figure import FigureKind
from advisor.reporting.names import left_out_note, most_piloted, settings_label, shorten
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MAX_GROUPS = 10
PRIOR_DRAWS = 4000
PRIOR_REACH = 0.9
"""Central share of the prior that the axes keep in view."""


@dataclass(frozen=True)
class Ridge:
    """Posterior and prior density of one quantity, per unit of the axis (per decade on a log one).

    ``lower`` to ``upper`` is the central 80 % of the posterior, ``prior_lower`` to
    ``prior_upper`` the central 90 % of the prior.
    """

    label: str
    value: FloatArray
    height: FloatArray
    prior_value: FloatArray
    prior_height: FloatArray
    lower: float
    median: float
    upper: float
    prior_lower: float
    prior_upper: float

    @property
    def span(self) -> str:
        """Median and interval, to the digits that the interval's width makes worth reading."""
        width = max(self.upper - self.lower, 1e-12)
        digits = max(0, 1 - math.floor(math.log10(width)))
        return f"{self.median:z.{digits}f} [{self.lower:z.{digits}f}, {self.upper:z.{digits}f}]"


@dataclass(frozen=True)
class Posteriors:
    """The whole figure; one ridge per (task, model), and the exponent of the model size.

    Plateaus are in reward units, stiffness per optimizer step, both at ``reference``, the settings
    of the pilot in the middle; ``sizes``
    counts the distinct model sizes, ``left_out`` the (task, model) pairs that are not drawn.
    """

    plateau: tuple[Ridge, ...]
    stiffness: tuple[Ridge, ...]
    curvature: Ridge
    sizes: int
    reference: str
    left_out: int

    @property
    def is_prior_dominated(self) -> bool:
        """Whether there are too few model sizes for the data to speak about the exponent."""
        return self.sizes < MIN_SIZES

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        pairs = [
            f"{plateau.label}: plateau {plateau.span}, stiffness {stiffness.span} per step."
            for plateau, stiffness in zip(self.plateau, self.stiffness, strict=True)
        ]
        curvature = f"Curvature exponent {self.curvature.span}" + (
            ", prior-dominated." if self.is_prior_dominated else "."
        )
        return " ".join(
            [f"Posterior densities against their priors, {self.reference}.", *pairs, curvature]
        )

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        return left_out_note(self.left_out)


def posteriors_info(posterior: Posterior) -> Posteriors:
    """Collect densities; the prior is simulated from the posterior's preset with a fixed seed."""
    meta = posterior.meta
    kept = [meta.groups.index(pair) for pair in most_piloted(meta, MAX_GROUPS)]
    prior = prior_groups(meta, PRIOR_DRAWS)
    labels = [" on ".join(map(shorten, meta.groups[g][::-1])) for g in kept]
    run = middle_pilot(meta)
    laws = [f"{law}.{term}" for law in ("rate", "plateau_loss") for term in LAWS[law]]
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
    return Posteriors(
        plateau=tuple(
            _ridge(label, plateau[:, g], prior_plateau[:, g])
            for label, g in zip(labels, kept, strict=True)
        ),
        stiffness=tuple(
            _ridge(label, stiffness[:, g], prior_stiffness[:, g], log=True)
            for label, g in zip(labels, kept, strict=True)
        ),
        curvature=_ridge("", posterior.flat("curvature_exponent"), prior.curvature),
        sizes=posterior.sizes,
        reference=f"at {settings_label(run.settings)}",
        left_out=len(meta.groups) - len(kept),
    )


def _ridge(label: str, draws: FloatArray, prior: FloatArray, *, log: bool = False) -> Ridge:
    lower, median, upper = central(draws)
    reach = central(prior, PRIOR_REACH)[[0, 2]]
    value, height = density(np.log10(draws) if log else draws)
    prior_value, prior_height = density(np.log10(prior) if log else prior, 512)
    return Ridge(
        label,
        10**value if log else value,
        height,
        10**prior_value if log else prior_value,
        prior_height,
        *map(float, (lower, median, upper, *reach)),
    )


PEAK, BAR = 0.55, 0.09
"""Height of a ridge above its base line and depth of its interval bar below, in rows."""


def draw_posteriors(info: Posteriors, *, is_narrow: bool = False) -> Figure:
    """Draw three panels: ridges of plateau and stiffness, and the curvature exponent."""
    from matplotlib.ticker import MaxNLocator

    rows = len(info.plateau)
    figure, (left, middle, right) = _panels(rows, is_narrow=is_narrow)
    middle.set_xscale("log")
    style.tidy(left, title="Plateau", note=info.reference, x="train reward (reward units)")
    style.tidy(middle, title="Stiffness", note=info.reference, x="stiffness k (per optimizer step)")
    style.tidy(
        right,
        title="Curvature",
        note=counted(info.sizes, "model size")
        + (f" of {MIN_SIZES}: prior-dominated" if info.is_prior_dominated else ""),
        x="exponent c (no unit)",
    )
    for axes, ridges in ((left, info.plateau), (middle, info.stiffness), (right, [info.curvature])):
        _draw_ridges(axes, ridges)
        if axes is not middle:
            axes.xaxis.set_major_locator(MaxNLocator(5))
    for axes in (left, middle) if is_narrow else (left,):
        axes.set_yticks(range(rows), [style.plain(r.label) for r in info.plateau], color=style.INK)
    style.log_ticks(middle.xaxis, *middle.get_xlim())
    right.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
    _name_curves(right, info.curvature)
    return figure


def _panels(rows: int, *, is_narrow: bool) -> tuple[Figure, list[Axes]]:
    """Axes of plateau, stiffness and curvature: side by side, or one below the other."""
    if is_narrow:
        high = max(1.6, 1.0 + 0.95 * rows)
        figure = style.new_figure(style.NARROW, 2 * high + 2.6)
        return figure, list(figure.subplots(3, 1, height_ratios=[high, high, 2.2]))
    figure = style.new_figure(10.2, max(3.0, 1.3 + 0.95 * rows))
    # The exponent has one ridge: it takes the height of three at most.
    grid = figure.add_gridspec(rows, 3, width_ratios=[1.15, 1.15, 1.0])
    tall = (rows, rows, min(rows, 3))
    return figure, [figure.add_subplot(grid[:end, at]) for at, end in enumerate(tall)]


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
        scale = PEAK / ridge.height.max()
        axes.fill_between(
            ridge.value, row, row - scale * ridge.height, color=style.SKY, alpha=0.4, linewidth=0
        )
        axes.plot(ridge.value, row - scale * ridge.height, color=style.BLUE, linewidth=1.4)
        axes.plot(
            ridge.prior_value, row - scale * ridge.prior_height, color=style.MUTED, linewidth=0.9
        )
        bar = row + BAR
        axes.plot([ridge.lower, ridge.upper], [bar, bar], color=style.BLUE, linewidth=3)
        axes.plot(ridge.median, bar, "o", color="white", markersize=3.2, mec=style.BLUE)
        place = axes.transAxes.inverted().transform(axes.transData.transform((ridge.median, 0)))[0]
        side = "right" if place > 0.8 else "left" if place < 0.2 else "center"
        end = {"right": ridge.upper, "left": ridge.lower, "center": ridge.median}[side]
        style.write(axes, ridge.span, (end, bar), (0, -5), ha=side, va="top")


def _name_curves(axes: Axes, ridge: Ridge) -> None:
    """Name posterior and prior beside their curves, each on the side where it stands alone."""
    scale = PEAK / ridge.height.max()
    is_right = ridge.median > (ridge.prior_lower + ridge.prior_upper) / 2
    for name, value, height, color, right in (
        ("posterior", ridge.value, ridge.height, style.BLUE, is_right),
        ("prior", ridge.prior_value, ridge.prior_height, style.MUTED, not is_right),
    ):
        # Two thirds up the outer flank of the curve.
        flank = np.flatnonzero(height > 0.66 * height.max())[-1 if right else 0]
        offset, side = ((6, 3), "left") if right else ((-6, 3), "right")
        style.write(
            axes, name, (value[flank], -scale * height[flank]), offset, ha=side, color=color
        )


FIGURE = FigureKind(
    "posteriors",
    "What was learned",
    "Blue is the posterior with its central 80 % interval, the thin grey line its prior. "
    "Where both agree the data said little.",
    lambda posterior, _: posteriors_info(posterior),
    draw_posteriors,
)
