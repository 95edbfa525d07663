"""Figure: what is decided, reward against stability over learning rate, K and group size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice import SAME, default_lattice, level_text
from advisor.forecast import Forecaster, stability_and_draws
from advisor.model import Posterior
from advisor.reporting.drawing import style
from advisor.reporting.figures.figure import FigureKind
from advisor.reporting.names import role_of, scientific
from advisor.runs import Settings
from advisor.theory import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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

    ``probability`` and ``reward`` have shape (panels, intervals, rates): P(stable) by the planned
    step, and the expected reward there of a run that stays so. ``limit`` is the learning rate at
    which the probability first falls below ``level``; NaN where it is below everywhere, infinite
    where it never falls. Pilots are those of every model and task, since all inform the map; their
    panel is -1 where none has their group size. ``evidence`` has shape (panels, intervals, rates):
    whether pilots ran rates, intervals and group sizes on both sides of a place;
    ``is_piloted_group`` the same of the group sizes alone. ``other_groups``
    are offered without a panel.
    """

    learning_rate: FloatArray
    interval: IntArray
    group_size: IntArray
    probability: FloatArray
    reward: FloatArray
    measure: str
    evidence: BoolArray
    is_piloted_group: BoolArray
    floor: float
    ceiling: float
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
            f"Expected {self.measure} after {self.steps} steps and the probability that a run "
            "stays stable until then, over learning rate and refresh interval K, one panel per "
            "group size."
        ]
        row = int(np.argmin(np.abs(self.interval - self.advised.interval)))
        for group, limits in zip(self.group_size, self.limit, strict=True):
            end = limits[row]
            if np.isnan(end):
                found = f"below {level_text(self.level)} at every learning rate"
            elif np.isinf(end):
                found = f"at least {level_text(self.level)} at every learning rate drawn"
            else:
                found = f"at least {level_text(self.level)} up to learning rate {scientific(end)}"
            parts.append(f"Group size {group}, K {self.interval[row]}: P(stable) {found}.")
        low, high = float(self.reward.min()), float(self.reward.max())
        parts.append(f"Expected {self.measure} where it stays stable: {low:.2f} to {high:.2f}.")
        star = self.advised
        parts.append(
            f"{star.name.capitalize()}: learning rate {scientific(star.learning_rate)}, "
            f"group size {star.group_size}, K {star.interval}."
        )
        return " ".join(parts)

    @property
    def span(self) -> float:
        """Range of the reward."""
        return self.ceiling - self.floor

    @property
    def padded_interval(self) -> FloatArray:
        """Intervals with the half octave on both sides that the picture shows."""
        return np.array([self.interval[0] / HALF, *self.interval, self.interval[-1] * HALF])

    def padded(self, values: FloatArray) -> FloatArray:
        """Values of one panel at those intervals."""
        return np.concatenate([values[:1], values, values[-1:]])

    @property
    def piloted_rate(self) -> tuple[float, float]:
        """Least and largest learning rate that was piloted."""
        return float(self.pilot_rate.min()), float(self.pilot_rate.max())

    @property
    def piloted_interval(self) -> tuple[float, float]:
        """Least and largest refresh interval that was piloted."""
        return float(self.pilot_interval.min()), float(self.pilot_interval.max())

    @property
    def is_crossed(self) -> bool:
        """Whether the probability crosses the level anywhere that is drawn."""
        return bool((self.probability < self.level).any() and not np.isnan(self.limit).all())

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        hidden = int(np.sum(self.pilot_panel < 0))
        parts = []
        if not self.is_crossed:
            where = "below" if np.isnan(self.limit).all() else "at or above"
            parts.append(
                f"P(stable) is {where} {level_text(self.level)} everywhere that is drawn: there is "
                "no line."
            )
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
    found = _evaluated(forecaster, recommendation, groups, minibatches, rates)
    probability, reward = found[..., 0], found[..., 1]
    pilot = recommendation.next_pilot
    target = (recommendation.target.task, recommendation.target.model)
    panels = [_panel(groups, run.group_size) for run in pilots]
    return StabilityMap(
        learning_rate=rates,
        interval=minibatches * epochs,
        group_size=np.array(groups),
        probability=probability,
        reward=reward,
        measure=recommendation.measure,
        evidence=_evidence(posterior, groups, minibatches * epochs, rates),
        is_piloted_group=_is_within(
            np.array(groups, dtype=float), [run.group_size for run in pilots]
        ),
        floor=forecaster.outcome_bounds[0],
        ceiling=forecaster.outcome_bounds[1],
        level=recommendation.level,
        limit=np.apply_along_axis(_limit, 2, probability, rates, recommendation.level),
        steps=recommendation.steps,
        epochs=epochs,
        advised=_mark(
            role_of(recommendation.kind, is_dead=recommendation.collapsed == recommendation.pilots),
            settings,
            groups,
        ),
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


def _evidence(
    posterior: Posterior, groups: list[int], intervals: IntArray, rates: FloatArray
) -> BoolArray:
    """Whether a place lies within what was piloted, each setting by itself."""
    pilots = [run.settings for run in posterior.meta.runs]
    within = [
        _is_within(np.asarray(places, dtype=float), [getattr(run, name) for run in pilots])
        for name, places in (
            ("group_size", groups),
            ("refresh_interval", intervals),
            ("learning_rate", rates),
        )
    ]
    return np.asarray(
        within[0][:, None, None] & within[1][None, :, None] & within[2][None, None, :]
    )


def _is_within(places: FloatArray, piloted: list[float]) -> BoolArray:
    return np.asarray((places >= min(piloted) / SAME) & (places <= max(piloted) * SAME))


def _evaluated(
    forecaster: Forecaster,
    advice: Recommendation,
    groups: list[int],
    minibatches: IntArray,
    rates: FloatArray,
) -> FloatArray:
    """P(stable) and expected reward at every place, shape (groups, intervals, rates, 2)."""
    return np.array(
        [
            [
                [_judged(forecaster, advice, group, int(count), float(rate)) for rate in rates]
                for count in minibatches
            ]
            for group in groups
        ]
    )


def _judged(
    forecaster: Forecaster, advice: Recommendation, group: int, minibatches: int, rate: float
) -> tuple[float, float]:
    """P(stable) that decides and expected reward, with the advised settings but for these three."""
    changed = {
        "learning_rate": rate,
        "group_size": group,
        "minibatches_per_refresh": minibatches,
    }
    settings = advice.settings.model_copy(update=changed)
    level = forecaster.scaled_reward(settings, advice.steps)
    chance, _ = stability_and_draws(forecaster, settings, advice.steps, level=level[:, 0])
    return chance.least, float(forecaster.outcome_of(level).mean())


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
        return float("inf")
    first = int(below[0])
    if first == 0:
        return float("nan")
    before, after = probability[first - 1], probability[first]
    share = (before - level) / (before - after)
    return float(rates[first - 1] * (rates[first] / rates[first - 1]) ** share)


HALF = 2**0.5
"""Half an octave: the picture reaches so far beyond the first and the last K."""

CONTOURS = 7
"""Lines of equal reward, about."""

LEAST_SPAN = 0.02
"""Share of the range of rewards below which there is nothing to draw lines of."""

STAR, STAR_ON_PILOT = 17.0, 26.0
"""Points across the star; where a pilot lies on it, its tips reach beyond that pilot's rim."""

DEEPEST = 0.36
"""Opacity of the fill at the highest reward: text in both colour schemes stays legible on it."""


def draw_stability_map(info: StabilityMap, *, is_narrow: bool = False) -> Figure:
    """Draw one panel per group size, with common lines of equal reward."""
    count = len(info.group_size)
    columns = 1 if is_narrow else 2 if count == 4 else count
    rows = -(-count // columns)
    width = 8.6 if columns == 1 else (4.9 if columns < 3 else 3.6) * columns
    width = style.NARROW if is_narrow else width
    figure = style.new_figure(width, (3.4 if columns > 1 else 4.0) * rows + 0.8)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    levels = _reward_levels(info)
    for panel, axes in enumerate(grid.flat[:count]):
        _draw_panel(axes, info, panel, levels)
        if panel + columns >= count:
            axes.set_xlabel("peak learning rate", fontsize=style.LABEL)
            axes.tick_params(labelbottom=True)
        if panel % columns == 0:
            axes.set_ylabel("refresh interval K (optimizer steps)", fontsize=style.LABEL)
    for axes in grid.flat[count:]:
        axes.remove()
    _draw_legend(figure, info, levels, 1 if is_narrow else 3 if count > 1 else 2)
    return figure


def _reward_levels(info: StabilityMap) -> FloatArray:
    """Round rewards of which lines are drawn; none where all places are alike."""
    from matplotlib.ticker import MaxNLocator

    low, high = float(info.reward.min()), float(info.reward.max())
    if high - low < LEAST_SPAN * info.span:
        return np.empty(0)
    ticks = np.asarray(MaxNLocator(CONTOURS).tick_values(low, high))
    return ticks[(ticks > low) & (ticks < high)]


def _draw_panel(axes: Axes, info: StabilityMap, panel: int, levels: FloatArray) -> None:
    """Reward as lines, instability as a wash, and a hatch where no pilot ran."""
    is_advised = panel == info.advised.panel
    title = f"Group size {info.group_size[panel]}"
    style.tidy(axes, title=title + (f": {info.advised.name}" if is_advised else ""))
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    places = info.learning_rate, info.padded_interval
    if levels.size:
        _draw_reward(axes, places, info.padded(info.reward[panel]), levels)
    _draw_boundary(axes, info, panel, places)
    _draw_unpiloted(axes, info, panel)
    _draw_marks(axes, info, panel)
    _draw_pilots(axes, info, panel)
    low = min(info.interval[0], info.pilot_interval.min(), info.advised.interval)
    high = max(info.interval[-1], info.pilot_interval.max(), info.advised.interval)
    axes.set_ylim(low / HALF, high * HALF)
    axes.set_facecolor("white")
    if low < info.interval[0]:
        at = info.learning_rate[0], low
        _write(axes, "fewer epochs than advised: not drawn", at, (4, -11), "left", style.MUTED)
    axes.set_yticks(info.interval, [str(k) for k in info.interval])
    axes.yaxis.minorticks_off()
    axes.set_xlim(info.learning_rate[0], info.learning_rate[-1])
    style.log_ticks(axes.xaxis, *axes.get_xlim())


def _draw_reward(
    axes: Axes, places: tuple[FloatArray, FloatArray], reward: FloatArray, levels: FloatArray
) -> None:
    from matplotlib.colors import to_rgba

    low, high = min(levels[0], reward.min()) - 1.0, max(levels[-1], reward.max()) + 1.0
    edges = [low, *levels, high]
    depths = DEEPEST * np.arange(len(edges) - 1) / (len(edges) - 2)
    fills = [to_rgba(style.BLUE, depth) for depth in depths]
    axes.contourf(*places, reward, levels=edges, colors=fills)
    look: dict[str, Any] = {"colors": [style.BLUE], "linewidths": 1.0, "linestyles": "solid"}
    lines = axes.contour(*places, reward, levels=levels, zorder=2.5, **look)
    digits = max(0, 1 - int(np.floor(np.log10(np.ptp(levels) or abs(levels[0]) or 1.0))))
    axes.clabel(lines, fmt=f"%.{digits}f", fontsize=style.NOTE, colors=[style.BLUE], inline=True)


def _draw_boundary(
    axes: Axes, info: StabilityMap, panel: int, places: tuple[FloatArray, FloatArray]
) -> None:
    """Wash below the level asked for, and its edge as a thick line where it is crossed."""
    chance = info.padded(info.probability[panel])
    if (chance < info.level).any():
        axes.contourf(*places, chance, levels=[-1.0, info.level], colors=[style.RISK], zorder=1.2)
    if (chance < info.level).any() and (chance >= info.level).any():
        axes.contour(
            *places, chance, levels=[info.level], colors=[style.INK], linewidths=2.2, zorder=3
        )
        limits = info.limit[panel]
        inside = np.flatnonzero(limits < info.learning_rate[-1])
        if inside.size:
            row = int(inside[-1])
            place = np.log(limits[row] / info.learning_rate[0])
            is_left = place < 0.2 * np.log(info.learning_rate[-1] / info.learning_rate[0])
            offset, side = ((5, 0), "left") if is_left else ((-5, 0), "right")
            at = limits[row], float(info.interval[row])
            _write(axes, level_text(info.level), at, offset, side)


def _draw_unpiloted(axes: Axes, info: StabilityMap, panel: int) -> None:
    """Hatch what lies beyond the rates, the intervals and the group sizes that pilots ran."""
    from matplotlib.patches import Rectangle

    rates, (left, right) = info.learning_rate, info.piloted_rate
    low, high = info.interval[0] / HALF, info.interval[-1] * HALF
    # K is whole octaves: the edge lies half-way to the next one.
    foot, top = info.piloted_interval[0] / HALF, info.piloted_interval[1] * HALF
    if not info.is_piloted_group[panel]:
        boxes = [(rates[0], low, rates[-1], high)]
    else:
        boxes = [
            (rates[0], low, left, high),
            (right, low, rates[-1], high),
            (left, low, right, foot),
            (left, top, right, high),
        ]
    for x0, y0, x1, y1 in boxes:
        if x1 > x0 and y1 > y0:
            box = Rectangle((x0, y0), x1 - x0, y1 - y0, **UNPILOTED)
            box.set_zorder(1.5)
            axes.add_patch(box)


UNPILOTED: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": style.FAINT,
    "hatch": "//",
    "linewidth": 0,
}


def _draw_pilots(axes: Axes, info: StabilityMap, panel: int) -> None:
    """Every pilot, above the star; how many lie in one place is said."""
    from matplotlib.patheffects import withStroke

    found: dict[tuple[float, float, bool, bool], int] = {}
    for index in np.flatnonzero(info.pilot_panel == panel):
        key = (
            float(info.pilot_rate[index]),
            float(info.pilot_interval[index]),
            bool(info.pilot_of_target[index]),
            bool(info.pilot_collapsed[index]),
        )
        found[key] = found.get(key, 0) + 1
    for (rate, interval, is_own, has_collapsed), count in found.items():
        axes.plot(
            rate,
            interval,
            zorder=7 + is_own,
            path_effects=[withStroke(linewidth=3.5, foreground="white")],
            **_pilot_look(is_own, has_collapsed),
        )
        if count > 1:
            is_on_star = _is_at(info.advised, panel, rate, interval)
            away = STAR_ON_PILOT / 2 + 6 if is_on_star else 10.0
            offset = (0.0, -away - 1 if has_collapsed else away)
            _write(axes, f"{count} pilots", (rate, interval), offset, "center")


def _pilot_look(is_own: bool, has_collapsed: bool) -> dict[str, Any]:
    color = style.INK if is_own else style.MUTED
    if has_collapsed:
        return {"marker": "x", "ls": "", "ms": 7, "mew": 2.2 if is_own else 1.4, "color": color}
    face = style.INK if is_own else "white"
    return {"marker": "o", "ls": "", "ms": 5, "mfc": face, "mec": color, "mew": 1.2}


def _draw_marks(axes: Axes, info: StabilityMap, panel: int) -> None:
    """The advised point, the next pilot, and the recipes or arrows towards them."""
    if info.advised.panel == panel:
        _star(axes, info.advised, "*", STAR_ON_PILOT if _is_piloted(info) else STAR)
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


def _is_piloted(info: StabilityMap) -> bool:
    """Whether a pilot lies on the star."""
    places = zip(info.pilot_panel, info.pilot_rate, info.pilot_interval, strict=True)
    return any(_is_at(info.advised, *place) for place in places)


def _is_at(mark: Mark, panel: int, rate: float, interval: float) -> bool:
    """Whether a pilot has the place of a mark."""
    is_near = bool(np.isclose(rate, mark.learning_rate, rtol=0.01))
    return is_near and mark.panel == panel and mark.interval == interval


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


def _draw_legend(figure: Figure, info: StabilityMap, levels: FloatArray, columns: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    point: dict[str, Any] = {"ls": "", "mfc": style.BLUE, "mec": "white"}
    entries: list[Any] = [Line2D([], [], marker="*", ms=14, label=info.advised.name, **point)]
    if info.next_pilot is not None:
        entries.append(Line2D([], [], marker="D", ms=8, label="next pilot", **point))
    if levels.size:
        label = f"expected {info.measure} after {info.steps:,} steps, if stable"
        entries.append(Line2D([], [], color=style.BLUE, lw=0.9, label=label))
    if info.is_crossed:
        label = f"P(stable) = {level_text(info.level)}"
        entries.append(Line2D([], [], color=style.INK, lw=2.2, label=label))
    if (info.probability < info.level).any():
        label = f"P(stable) below {level_text(info.level)}"
        entries.append(Patch(facecolor=style.RISK, label=label))
    if not info.evidence.all():
        entries.append(Patch(label="beyond what was piloted", **UNPILOTED))
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
        ncols=columns,
        frameon=False,
        fontsize=style.NOTE,
        labelcolor=style.INK,
    )
    legend.set_in_layout(True)


FIGURE = FigureKind(
    "stability",
    "What is decided: reward against stability",
    "Blue lines join settings of equal expected reward, darker is more. The wash is where "
    "P(stable) is below what was asked for, the thick line its edge. Hatched: no pilot ran such a "
    "learning rate, refresh interval or group size. Arrows at a border name recipes beyond it.",
    stability_map_info,
    draw_stability_map,
)
