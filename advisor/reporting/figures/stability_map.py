"""Figure: where a run stays stable, over learning rate, refresh interval and group size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice.candidates import default_lattice
from advisor.advice.wording import level_text
from advisor.forecast.forecaster import Forecaster
from advisor.forecast.stability import stability
from advisor.model.posterior import Posterior
from advisor.reporting.drawing import style
from advisor.reporting.figures.figure import FigureKind
from advisor.reporting.names import ROLES, scientific
from advisor.run.settings import Settings
from advisor.theory.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from advisor.advice import Recommendation


MAP_DRAWS = 400
"""Draws behind the map: Monte Carlo error of a probability is at most 0.025."""

RATES = 25
MIN_ROWS, MAX_ROWS = 4, 8
MAX_PANELS = 4

RATE_PAD = 1.3
"""Factor by which the axis reaches beyond all rates offered and piloted."""

SAME_GROUP = 2**0.5
"""A mark stands in a panel when its group size is within this factor of the panel's."""


@dataclass(frozen=True)
class Mark:
    """A named point: K in optimizer steps, and the panel with the nearest group size."""

    name: str
    learning_rate: float
    interval: int
    group_size: int
    panel: int


@dataclass(frozen=True)
class StabilityMap:
    """The whole figure.

    ``probability`` has shape (panels, intervals, rates): P(stable) by the planned step. ``limit``
    is the learning rate at which it first falls below ``level``; NaN where it is below everywhere,
    the last rate where it never falls. Pilots are those of every model and task, since all inform
    the map; their panel is -1 where none has their group size. ``other_groups`` are offered
    without a panel.
    """

    learning_rate: FloatArray
    interval: IntArray
    group_size: IntArray
    probability: FloatArray
    level: float
    limit: FloatArray
    steps: int
    epochs: int
    advised: Mark
    next_pilot: Mark | None
    recipes: tuple[Mark, ...]
    pilot_rate: FloatArray
    pilot_interval: FloatArray
    pilot_panel: IntArray
    pilot_collapsed: BoolArray
    pilot_of_target: BoolArray
    other_groups: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        parts = [
            f"Probability that a run stays stable for {self.steps} steps, over learning rate and "
            f"refresh interval K, one panel per group size."
        ]
        row = int(np.argmin(np.abs(self.interval - self.advised.interval)))
        for group, limits in zip(self.group_size, self.limit, strict=True):
            end = limits[row]
            if np.isnan(end):
                found = f"below {level_text(self.level)} at every learning rate"
            elif end >= self.learning_rate[-1]:
                found = f"at least {level_text(self.level)} at every learning rate drawn"
            else:
                found = f"at least {level_text(self.level)} up to learning rate {scientific(end)}"
            parts.append(f"Group size {group}, K {self.interval[row]}: {found}.")
        star = self.advised
        parts.append(
            f"{star.name.capitalize()}: learning rate {scientific(star.learning_rate)}, "
            f"group size {star.group_size}, K {star.interval}."
        )
        return " ".join(parts)

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        hidden = int(np.sum(self.pilot_panel < 0))
        parts = []
        if self.other_groups:
            sizes = ", ".join(map(str, self.other_groups))
            parts.append(f"Also offered, but not drawn: group size {sizes}.")
        if hidden:
            parts.append(
                f"{hidden} pilot{'s' if hidden > 1 else ''} of other group sizes not drawn."
            )
        return " ".join(parts)


def stability_map_info(
    posterior: Posterior, recommendation: Recommendation, *, draws: int = MAP_DRAWS
) -> StabilityMap:
    """Evaluate P(stable) around a recommendation, with its target, steps, level and epochs.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
    draws : int
        Thinned evenly out of the posterior; the same for all configurations.

    Returns
    -------
    info : StabilityMap
        The advised group size and its neighbours among those that could be chosen.
    """
    settings, meta = recommendation.settings, posterior.meta
    lattice = default_lattice(posterior, settings)
    epochs = settings.epochs_per_refresh
    sizes = recommendation.choices.get("group_size", lattice.axes["group_size"])
    offered = {*map(int, sizes), settings.group_size}
    groups = _around(sorted(offered), settings.group_size)
    pilots = [run.settings for run in meta.runs]
    pilot_rate = np.array([run.learning_rate for run in pilots], dtype=float)
    pilot_interval = np.array([run.refresh_interval for run in pilots], dtype=float)
    blue = [settings, *([recommendation.next_pilot.settings] if recommendation.next_pilot else [])]
    reach = [*pilot_rate, *lattice.axes["learning_rate"], *(s.learning_rate for s in blue)]
    rates = np.geomspace(min(reach) / RATE_PAD, max(reach) * RATE_PAD, RATES)
    highest = max(*pilot_interval, *(s.refresh_interval for s in blue))
    rows = int(np.clip(np.ceil(np.log2(highest / epochs)) + 2, MIN_ROWS, MAX_ROWS))
    minibatches = 2 ** np.arange(rows)
    forecaster = Forecaster(posterior, recommendation.target, draws=draws)
    probability = np.array(
        [
            [
                [
                    _stable(forecaster, recommendation, group, int(count), float(rate))
                    for rate in rates
                ]
                for count in minibatches
            ]
            for group in groups
        ]
    )
    pilot = recommendation.next_pilot
    target = (recommendation.target.task, recommendation.target.model)
    panels = [_panel(groups, run.group_size) for run in pilots]
    return StabilityMap(
        learning_rate=rates,
        interval=minibatches * epochs,
        group_size=np.array(groups),
        probability=probability,
        level=recommendation.level,
        limit=np.apply_along_axis(_limit, 2, probability, rates, recommendation.level),
        steps=recommendation.steps,
        epochs=epochs,
        advised=_mark(ROLES[recommendation.kind], settings, groups),
        next_pilot=None if pilot is None else _mark("next pilot", pilot.settings, groups),
        recipes=tuple(_mark(r.name, r.settings, groups) for r in recommendation.recipes),
        pilot_rate=pilot_rate,
        pilot_interval=pilot_interval,
        pilot_panel=np.array(
            [
                panel if _is_near(groups[panel], run.group_size) else -1
                for panel, run in zip(panels, pilots, strict=True)
            ]
        ),
        pilot_collapsed=np.array([run.collapse_step is not None for run in meta.runs]),
        pilot_of_target=np.array([(run.task, run.model) == target for run in meta.runs]),
        other_groups=tuple(sorted(offered - set(groups))),
    )


def _stable(
    forecaster: Forecaster, advice: Recommendation, group: int, minibatches: int, rate: float
) -> float:
    """P(stable) that decides, with the advised settings but for these three."""
    changed = {
        "learning_rate": rate,
        "group_size": group,
        "minibatches_per_refresh": minibatches,
    }
    settings = advice.settings.model_copy(update=changed)
    return stability(forecaster, settings, advice.steps).least


def _around(offered: list[int], group: int) -> list[int]:
    """At most ``MAX_PANELS`` neighbours of a group size, itself among them."""
    index = offered.index(group)
    first = max(0, min(index - 1, len(offered) - MAX_PANELS))
    return offered[first : first + MAX_PANELS]


def _mark(name: str, of: Settings, groups: list[int]) -> Mark:
    panel = _panel(groups, of.group_size)
    return Mark(name, of.learning_rate, of.refresh_interval, of.group_size, panel)


def _panel(groups: list[int], group: int) -> int:
    return int(np.argmin(np.abs(np.log(np.array(groups) / group))))


def _is_near(group: int, other: int) -> bool:
    return bool(max(group / other, other / group) <= SAME_GROUP)


def _limit(probability: FloatArray, rates: FloatArray, level: float) -> float:
    """Rate at which the probability first falls below the level, interpolated in its log."""
    below = np.flatnonzero(probability < level)
    if below.size == 0:
        return float(rates[-1])
    first = int(below[0])
    if first == 0:
        return float("nan")
    before, after = probability[first - 1], probability[first]
    share = (before - level) / (before - after)
    return float(rates[first - 1] * (rates[first] / rates[first - 1]) ** share)


HALF = 2**0.5
"""Half an octave: a band of the map reaches so far from its K."""

COLUMNS = 240
"""Columns of the picture; P(stable) is interpolated between the rates evaluated."""


def draw_stability_map(info: StabilityMap) -> Figure:
    """Draw one panel per group size, with a common scale of probability."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    count = len(info.group_size)
    columns = 2 if count == 4 else count
    rows = -(-count // columns)
    figure = style.new_figure((4.6 if columns < 3 else 3.3) * columns + 0.9, 3.1 * rows + 0.7)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    scale = ScalarMappable(Normalize(0, 1), style.risk_colors())
    for panel, axes in enumerate(grid.flat[:count]):
        _draw_panel(axes, info, panel, scale)
        if panel + columns >= count:
            axes.set_xlabel("peak learning rate", fontsize=style.LABEL)
            axes.tick_params(labelbottom=True)
        if panel % columns == 0:
            axes.set_ylabel("refresh interval K (optimizer steps)", fontsize=style.LABEL)
    for axes in grid.flat[count:]:
        axes.remove()
    bar = figure.colorbar(
        scale, ax=figure.axes, shrink=0.7 if rows > 1 else 0.95, pad=0.02, aspect=30
    )
    style.tidy_bar(bar, f"P(stable for {info.steps:,} optimizer steps)")
    bar.ax.axhline(info.level, color=style.INK, linewidth=2.2)
    _draw_legend(figure, info)
    return figure


def _draw_panel(axes: Axes, info: StabilityMap, panel: int, scale: ScalarMappable) -> None:
    """One band per refresh interval, since between its values there is nothing to run."""
    is_advised = panel == info.advised.panel
    title = f"Group size {info.group_size[panel]}"
    style.tidy(axes, title=title + (f": {info.advised.name}" if is_advised else ""))
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    rates = np.geomspace(info.learning_rate[0], info.learning_rate[-1], COLUMNS + 1)
    middles = np.sqrt(rates[1:] * rates[:-1])
    edges = np.append(info.interval / HALF, info.interval[-1] * HALF)
    filled = [
        np.interp(np.log(middles), np.log(info.learning_rate), row)
        for row in info.probability[panel]
    ]
    axes.pcolormesh(rates, edges, filled, cmap=scale.cmap, norm=scale.norm, rasterized=True)
    _draw_limit(axes, info, panel, edges)
    _draw_pilots(axes, info, panel)
    _draw_marks(axes, info, panel)
    low = min(info.interval[0], info.pilot_interval.min(), info.advised.interval)
    high = max(info.interval[-1], info.pilot_interval.max(), info.advised.interval)
    axes.set_ylim(low / HALF, high * HALF)
    axes.set_facecolor(style.WASH)
    if low < info.interval[0]:
        _write(axes, "fewer epochs", (rates[0], low), (4, -11), "left", style.MUTED)
    axes.set_yticks(info.interval, [str(k) for k in info.interval])
    axes.yaxis.minorticks_off()
    axes.set_xlim(rates[0], rates[-1])
    style.log_ticks(axes.xaxis, *axes.get_xlim())


def _draw_limit(axes: Axes, info: StabilityMap, panel: int, edges: FloatArray) -> None:
    """Thick line where P(stable) falls below the level, as stairs through the bands."""
    limits = info.limit[panel]
    ends = np.where(np.isnan(limits), info.learning_rate[0], limits)
    axes.plot(
        np.repeat(ends, 2), np.repeat(edges, 2)[1:-1], color=style.INK, linewidth=2.2, zorder=3
    )
    inside = np.flatnonzero(limits < info.learning_rate[-1])
    if inside.size:
        row = int(inside[-1])
        place = np.log(limits[row] / info.learning_rate[0])
        is_left = place < 0.2 * np.log(info.learning_rate[-1] / info.learning_rate[0])
        offset, side = ((5, 0), "left") if is_left else ((-5, 0), "right")
        at = limits[row], float(info.interval[row])
        _write(axes, level_text(info.level), at, offset, side)


def _draw_pilots(axes: Axes, info: StabilityMap, panel: int) -> None:
    from matplotlib.patheffects import withStroke

    for is_own in (False, True):
        for has_collapsed in (False, True):
            here = (
                (info.pilot_panel == panel)
                & (info.pilot_of_target == is_own)
                & (info.pilot_collapsed == has_collapsed)
            )
            if here.any():
                look = _pilot_look(is_own, has_collapsed)
                axes.plot(
                    info.pilot_rate[here],
                    info.pilot_interval[here],
                    zorder=4,
                    path_effects=[withStroke(linewidth=4.5, foreground="white")],
                    **look,
                )


def _pilot_look(is_own: bool, has_collapsed: bool) -> dict[str, Any]:
    color = style.INK if is_own else style.MUTED
    if has_collapsed:
        return {"marker": "x", "ls": "", "ms": 7, "mew": 2.2 if is_own else 1.4, "color": color}
    face = style.INK if is_own else "white"
    return {"marker": "o", "ls": "", "ms": 6, "mfc": face, "mec": color, "mew": 1.2}


def _draw_marks(axes: Axes, info: StabilityMap, panel: int) -> None:
    """The advised point, the next pilot, and the recipes or arrows towards them."""
    if info.advised.panel == panel:
        _star(axes, info.advised, "*", 17)
    if info.next_pilot is not None and info.next_pilot.panel == panel:
        _star(axes, info.next_pilot, "D", 8)
    here = [mark for mark in info.recipes if mark.panel == panel]
    for mark in here:
        if not info.learning_rate[0] <= mark.learning_rate <= info.learning_rate[-1]:
            continue
        axes.plot(mark.learning_rate, mark.interval, "s", ms=6, mfc=style.ORANGE, mec=style.INK)
        place = (mark.learning_rate, mark.interval)
        _write(axes, mark.name + _other_group(info, mark), place, (8, -10), "left")
    for side, sign, arrow in (("left", -1, "← {}"), ("right", 1, "{} →")):
        edge = info.learning_rate[0 if side == "left" else -1]
        beyond = [mark for mark in here if sign * (mark.learning_rate - edge) > 0]
        rows = style.spread_apart(
            [np.log2(mark.interval) for mark in beyond],
            0.45,
            np.log2(info.interval[0]),
            np.log2(info.interval[-1]),
        )
        stars = _rows_of_stars(info, panel, edge)
        for mark, row in zip(beyond, rows, strict=True):
            if any(abs(row - star) < 0.4 for star in stars):
                row += 0.5
            name = f"{mark.name}\nlr {scientific(mark.learning_rate)}{_other_group(info, mark)}"
            _write(axes, arrow.format(name), (edge, 2**row), (-4 * sign, 0), side)


def _rows_of_stars(info: StabilityMap, panel: int, edge: float) -> list[float]:
    """Rows, in octaves of K, of the blue marks in the third of a panel next to an edge."""
    reach = np.log(info.learning_rate[-1] / info.learning_rate[0]) / 3
    return [
        float(np.log2(mark.interval))
        for mark in (info.advised, info.next_pilot)
        if mark is not None
        and mark.panel == panel
        and abs(np.log(mark.learning_rate / edge)) < reach
    ]


def _other_group(info: StabilityMap, mark: Mark) -> str:
    """Group size of a recipe where its panel has another."""
    return "" if mark.group_size == info.group_size[mark.panel] else f", G {mark.group_size}"


def _star(axes: Axes, mark: Mark, marker: str, size: float) -> None:
    axes.plot(
        mark.learning_rate,
        mark.interval,
        marker,
        ms=size,
        mfc=style.BLUE,
        mec="white",
        mew=1.2,
        zorder=5,
    )


def _write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    side: str,
    color: str = style.INK,
) -> None:
    """Text beside a point, with a pale rim that keeps it legible on the map."""
    style.write(axes, text, at, offset, rim=2.8, ha=side, va="center", color=color, zorder=6)


def _draw_legend(figure: Figure, info: StabilityMap) -> None:
    from matplotlib.lines import Line2D

    point: dict[str, Any] = {"ls": "", "mfc": style.BLUE, "mec": "white"}
    entries = [Line2D([], [], marker="*", ms=14, label=info.advised.name, **point)]
    if info.next_pilot is not None:
        entries.append(Line2D([], [], marker="D", ms=8, label="next pilot", **point))
    entries.append(
        Line2D([], [], color=style.INK, lw=2.2, label=f"P(stable) = {level_text(info.level)}")
    )
    shown = info.pilot_panel >= 0
    for is_own, whose in ((True, "pilot"), (False, "pilot of another model or task")):
        for collapsed in (False, True):
            if np.any(
                shown & (info.pilot_of_target == is_own) & (info.pilot_collapsed == collapsed)
            ):
                label = whose + (", collapsed" if collapsed else "")
                entries.append(Line2D([], [], label=label, **_pilot_look(is_own, collapsed)))
    legend = figure.legend(
        handles=entries,
        loc="outside lower center",
        # One panel is narrower than three columns of these names.
        ncols=3 if len(info.group_size) > 1 else 2,
        frameon=False,
        fontsize=style.NOTE,
        labelcolor=style.INK,
    )
    legend.set_in_layout(True)


FIGURE = FigureKind(
    "stability",
    "Where a run stays stable",
    "Pale is safe. The thick line is the largest learning rate that keeps the probability "
    "wanted. Arrows at a border name common recipes that lie beyond it.",
    stability_map_info,
    draw_stability_map,
)
