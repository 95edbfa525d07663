"""Figure: exponents of the laws, posterior against prior and theory."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from advisor.findings import informed_share
from advisor.forecast import central, ends_of
from advisor.model import INTERVAL, Posterior
from advisor.reporting.drawing import style
from advisor.reporting.figures.figure import FigureKind
from advisor.reporting.names import share_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
"""Where the theory (docs/theory, T25 and T30) has a value: that, and what it holds for."""


@dataclass(frozen=True)
class Exponent:
    """One exponent: central 80 % intervals of posterior and prior, and the theory's values.

    ``key`` names it among the draws, ``label`` what is raised to it. ``informed`` is the share of
    the prior's variance that the pilots removed, below 0 where they widened it.
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
        return f"{self.median:z.2f} [{self.lower:z.2f}, {self.upper:z.2f}]"

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
            listed = "; ".join(f"{row.label} {row.span}, {row.learned} learned" for row in rows)
            parts.append(f"{title} {listed}.")
        return " ".join(parts)

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        return ""


def exponents_info(posterior: Posterior) -> Exponents:
    """Collect intervals of the exponents, their priors', and the theory's values."""
    informed = informed_share(posterior)

    def row(key: str, label: str) -> Exponent:
        prior = getattr(posterior.meta.priors, key.replace(".", "_"))
        spread = NormalDist(prior.mean, prior.sd)
        lower, median, upper = central(posterior.flat(key))
        below, middle, above = map(spread.inv_cdf, ends_of(INTERVAL))
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


ROW, NARROW_ROW = 0.44, 0.62
"""Inches per exponent; for a phone its name and numbers stand above the bars."""

NAME_AT = -0.52
"""Place of that name above the bars, in rows."""

PRIOR_AT, THEORY_AT = 0.2, -0.24
"""Place of the prior's bar below, and of theory's mark above that of the posterior, in rows."""

NAME_WIDTH = 0.25
"""Share of the axes that a name of theory's takes."""

SPAN_AT, LEARNED_AT = 14.0, 122.0
"""Columns of text beside the axes, in points from them."""


def draw_exponents(info: Exponents, *, is_narrow: bool = False) -> Figure:
    """Draw one panel per law: the posterior's interval in blue, the prior's below in grey."""
    from matplotlib.ticker import MaxNLocator

    counts = [len(rows) for _, rows in info.laws]
    width, row_height = (style.NARROW, NARROW_ROW) if is_narrow else (8.4, ROW)
    figure = style.new_figure(width, row_height * sum(counts) + 0.8 * len(counts))
    # ArviZ's own forest has highest-density intervals in one version, and no second bar per row.
    panels = figure.subplots(len(counts), 1, height_ratios=counts, squeeze=False)[:, 0]
    for axes, (title, rows) in zip(panels, info.laws, strict=True):
        is_first, is_last = axes is panels[0], axes is panels[-1]
        style.tidy(axes, title=title, x="exponent (no unit)" if is_last else "")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rows) - 0.5, -0.75 if is_narrow else -0.6)
        labels = [] if is_narrow else [row.label for row in rows]
        axes.set_yticks(range(len(labels)), labels)
        _limit(axes, rows)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        axes.axvline(0, color=style.FAINT, linewidth=0.8, zorder=0)
        for place, row in enumerate(rows):
            _draw_row(axes, row, place)
            (_numbers_above if is_narrow else _numbers_beside)(axes, row, place)
        if is_first:
            _name_bars(axes, rows[0])
        if is_first and not is_narrow:
            _head(axes)
    return figure


def _limit(axes: Axes, rows: tuple[Exponent, ...]) -> None:
    ends = [
        value
        for row in rows
        for value in (
            row.lower,
            row.upper,
            row.prior_lower,
            row.prior_upper,
            *(at for at, _ in row.theory),
        )
    ]
    low, high = min(0.0, *ends), max(ends)
    axes.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _draw_row(axes: Axes, row: Exponent, place: int) -> None:
    axes.plot([row.lower, row.upper], [place] * 2, color=style.BLUE, linewidth=3.2)
    axes.plot(row.median, place, "o", color="white", mec=style.BLUE, mew=1.4, markersize=5.5)
    below = place + PRIOR_AT
    axes.plot([row.prior_lower, row.prior_upper], [below] * 2, color=style.MUTED, linewidth=1.0)
    axes.plot(row.prior_median, below, "|", color=style.MUTED, markersize=6)
    low, high = axes.get_xlim()
    for index, (at, name) in enumerate(row.theory):
        axes.plot([at] * 2, [place - 0.16, place + 0.3], color=style.VERMILLION, linewidth=1.2)
        # Of two names the first ends at its mark and the second begins there, unless the first
        # would run over what stands left of the axes and has room before the second.
        share = (at - low) / (high - low)
        later = [(mark - low) / (high - low) for mark, _ in row.theory[index + 1 :]]
        has_room = all(mark - share > NAME_WIDTH for mark in later)
        is_first = bool(later) and not (has_room and share < NAME_WIDTH)
        offset, side = ((2, 0), "right") if share > 0.85 or is_first else ((-2, 0), "left")
        beside: dict[str, Any] = {"ha": side, "va": "center", "color": style.ALARM}
        style.write(axes, name, (at, place + THEORY_AT), offset, **beside)


def _numbers_beside(axes: Axes, row: Exponent, place: int) -> None:
    """Numbers of an exponent in columns right of the axes."""
    for x, text, color in (
        (SPAN_AT, row.span, style.INK),
        (LEARNED_AT, row.learned, style.MUTED),
    ):
        look = {"va": "center", "fontsize": style.TICK, "color": color}
        _beside(axes, text, place, x, **look)


def _numbers_above(axes: Axes, row: Exponent, place: int) -> None:
    """Name and numbers of an exponent in a line above its bars, which leaves these the width."""
    across: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "va": "center"}
    style.write(axes, row.label, (0, place + NAME_AT), fontsize=style.TICK, **across)
    numbers = f"{row.span}, {row.learned} learned"
    style.write(axes, numbers, (1, place + NAME_AT), ha="right", color=style.MUTED, **across)


def _beside(axes: Axes, text: str, place: float, x: float, **look: Any) -> None:
    """Write right of the axes, at a row, ``x`` points from their edge."""
    right: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "annotation_clip": False}
    style.write(axes, text, (1, place), (x, 0), **right, **look)


def _head(axes: Axes) -> None:
    """Name the columns of text."""
    for x, text in ((SPAN_AT, "posterior\nmedian [80 %]"), (LEARNED_AT, "learned\nfrom pilots")):
        _beside(axes, text, -0.52, x, va="bottom", color=style.MUTED)


def _name_bars(axes: Axes, row: Exponent) -> None:
    """Name the two bars of the first row."""
    for end, prior_end, side, gap in (
        (row.lower, row.prior_lower, "right", -5),
        (row.upper, row.prior_upper, "left", 5),
    ):
        low, high = axes.get_xlim()
        if side == "right" and (min(end, prior_end) - low) / (high - low) < 0.15:
            continue
        for x, at, text, color in (
            (end, -0.02, "posterior", style.BLUE),
            (prior_end, PRIOR_AT + 0.04, "prior", style.MUTED),
        ):
            style.write(axes, text, (x, at), (gap, 0), ha=side, va="center", color=color)
        return


FIGURE = FigureKind(
    "exponents",
    "How the settings act",
    "Blue is the posterior with its central 80 % interval, thin grey below it the prior, "
    "vermillion what the theory says. Numbers: median and interval, and what was learned from the "
    "pilots, the share of the prior's variance that they removed.",
    lambda posterior, _: exponents_info(posterior),
    draw_exponents,
)
