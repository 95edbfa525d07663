"""Figure: what is decided, reward against stability over learning rate, K and group size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from advisor.advice import SAME, default_lattice, level_text, run_ends, stacked
from advisor.forecast import Forecaster
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import FigureKind, Info
from advisor.runs import Settings
from advisor.theory import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from advisor.advice import Recommendation

MAX_PANELS = 4
HALF = 2**0.5  # Half an octave: the picture reaches so far beyond the first and the last K


class Dot(NamedTuple):
    """A pilot: K in optimizer steps, and the panel of its group size, -1 where it has none."""

    learning_rate: float
    interval: int
    panel: int
    is_own: bool
    has_collapsed: bool


@dataclass(frozen=True)
class Mark:
    """A named configuration, and the panel with the nearest group size."""

    name: str
    settings: Settings
    panel: int

    @property
    def place(self) -> tuple[float, float]:
        """Learning rate and K."""
        return self.settings.learning_rate, float(self.settings.refresh_interval)


@dataclass(frozen=True)
class StabilityMap(Info):
    """The whole figure; axes of its arrays are panels, intervals and rates."""

    name: ClassVar = "stability"
    learning_rate: FloatArray
    interval: IntArray
    group_size: IntArray
    probability: FloatArray  # P(stable) by the planned step
    reward: FloatArray  # expected there of a run that stays stable
    measure: str
    bounds: tuple[float, float]
    level: float
    limit: FloatArray  # rate where it first falls below; NaN: is below everywhere, infinite: never
    steps: int
    advised: Mark
    next_pilot: Mark | None
    recipes: tuple[Mark, ...]
    pilots: tuple[Dot, ...]  # of every model and task, since all inform the map
    is_piloted_group: BoolArray  # whether pilots ran group sizes on both sides of a panel's
    other_groups: tuple[int, ...]  # offered without a panel

    @property
    def row(self) -> int:
        """Row of the interval that is nearest to the advised one."""
        return int(np.argmin(np.abs(self.interval - self.advised.settings.refresh_interval)))

    @property
    def is_crossed(self) -> bool:
        """Whether the probability crosses the level anywhere that is drawn."""
        return bool((self.probability < self.level).any() and not np.isnan(self.limit).all())

    def is_drawn(self, mark: Mark) -> bool:
        """Whether a mark's learning rate lies within the picture."""
        rates = self.learning_rate
        return bool(rates[0] <= mark.settings.learning_rate <= rates[-1])


def stability_map_info(posterior: Posterior, recommendation: Recommendation) -> StabilityMap:
    """Evaluate reward and P(stable) round an answer: its group size and those next to it."""
    settings, meta = recommendation.settings, posterior.meta
    target = recommendation.target
    lattice = default_lattice(posterior, settings)
    offered = sorted({*map(int, recommendation.terms.choices["group_size"]), settings.group_size})
    first = min(offered.index(settings.group_size) - 1, len(offered) - MAX_PANELS)
    groups = np.array(offered[max(0, first) :][:MAX_PANELS])

    def panel(group: int) -> int:
        return int(np.argmin(np.abs(np.log(groups / group))))

    def is_near(group: int) -> bool:
        return bool(1 / HALF <= groups[panel(group)] / group <= HALF)

    def mark(name: str, of: Settings) -> Mark:
        return Mark(name, of, panel(of.group_size))

    pilots = tuple(
        Dot(
            run.highest_rate,
            run.settings.refresh_interval,
            panel(run.settings.group_size) if is_near(run.settings.group_size) else -1,
            (run.task, run.model) == (target.task, target.model),
            run.collapse_step is not None,
        )
        for run in meta.runs
    )
    pilot = recommendation.next_pilot
    shown = [*(run.settings for run in meta.runs), settings, *([pilot.settings] if pilot else [])]
    rates, minibatches = _axes_of(shown, lattice.axes["learning_rate"], settings)
    forecaster = Forecaster(posterior, target, draws=400)  # probabilities are good to 0.025
    axes = {"group_size": groups, "minibatches_per_refresh": minibatches, "learning_rate": rates}
    every = product(*(values.tolist() for values in axes.values()))
    runs = [settings.model_copy(update=dict(zip(axes, at, strict=True))) for at in every]
    found = np.empty((len(runs), 2))
    lengths = [recommendation.steps] * len(runs)
    for places, together, last in stacked(runs, lengths, forecaster.size):
        ended, _, chances, _ = run_ends(forecaster, together, last)
        found[places, 0] = [one.probability for one in chances]
        found[places, 1] = ended.mean(axis=-1)
    found = found.reshape(*(values.size for values in axes.values()), 2)
    piloted = [run.settings.group_size for run in meta.runs]
    is_dead = recommendation.evidence.collapsed == recommendation.evidence.pilots
    return StabilityMap(
        learning_rate=rates,
        interval=minibatches * settings.epochs_per_refresh,
        group_size=groups,
        probability=found[..., 0],
        reward=found[..., 1],
        measure=recommendation.measure,
        bounds=forecaster.outcome_bounds,
        level=recommendation.terms.level,
        limit=np.apply_along_axis(_limit, 2, found[..., 0], rates, recommendation.terms.level),
        steps=recommendation.steps,
        advised=mark(style.role_of(recommendation.kind, is_dead=is_dead), settings),
        next_pilot=None if pilot is None else mark("next pilot", pilot.settings),
        recipes=tuple(mark(one.name, one.settings) for one in recommendation.recipes),
        pilots=pilots,
        is_piloted_group=(groups >= min(piloted) / SAME) & (groups <= max(piloted) * SAME),
        other_groups=tuple(group for group in offered if group not in groups),
    )


def _axes_of(
    shown: Sequence[Settings], offered: Sequence[float], advised: Settings
) -> tuple[FloatArray, IntArray]:
    """Learning rates, and numbers of mini-batches, that hold all settings and some more."""
    known = [*(one.learning_rate for one in shown), *offered]
    highest = max(one.refresh_interval for one in shown)
    octaves = np.ceil(np.log2(highest / advised.epochs_per_refresh)) + 2
    rates = np.geomspace(min(known) / 1.3, max(known) * 1.3, 25)
    return rates, 2 ** np.arange(int(np.clip(octaves, 4, 8)))


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


def draw_stability_map(info: StabilityMap) -> Figure:
    """Draw one panel per group size, with common lines of equal reward."""
    count = len(info.group_size)
    columns = 2 if count == 4 else count
    rows = -(-count // columns)
    width = 8.6 if columns == 1 else (4.9 if columns < 3 else 3.6) * columns
    figure = style.new_figure(width, (3.4 if columns > 1 else 4.0) * rows + 0.8)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    low, high = float(info.reward.min()), float(info.reward.max())
    # Where all places are nearly the same there is nothing to draw lines of.
    has_lines = high - low > 0.02 * (info.bounds[1] - info.bounds[0])
    levels = [at for at in style.even_ticks(low, high, 7) if low < at < high] if has_lines else []
    for panel, axes in enumerate(grid.flat):
        _draw_panel(axes, info, panel, levels)
        if panel + columns >= count:
            axes.set_xlabel("peak learning rate", fontsize=style.LABEL)
        if panel % columns == 0:
            axes.set_ylabel("refresh interval K (optimizer steps)", fontsize=style.LABEL)
    _draw_legend(figure, info, has_lines=bool(levels), columns=3 if count > 1 else 2)
    return figure


def _draw_panel(axes: Axes, info: StabilityMap, panel: int, levels: list[float]) -> None:
    """Reward as lines, instability as a wash, a hatch where no pilot ran, and the marks."""
    is_advised = panel == info.advised.panel
    title = f"Group size {info.group_size[panel]}"
    style.tidy(axes, title=title + (f": {info.advised.name}" if is_advised else ""))
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    places = (info.interval[0] / HALF, *info.interval, info.interval[-1] * HALF)
    at = info.learning_rate, np.array(places)
    if levels:
        _draw_reward(axes, at, _padded(info.reward[panel]), levels)
    _draw_boundary(axes, info, panel, at)
    _draw_unpiloted(axes, info, panel)
    _draw_marks(axes, info, panel)
    _draw_pilots(axes, info, panel)
    shown = [*info.interval, info.advised.place[1], *(dot.interval for dot in info.pilots)]
    axes.set_ylim(min(shown) / HALF, max(shown) * HALF)
    if min(shown) < info.interval[0]:
        text, place = "fewer epochs than advised: not drawn", (info.learning_rate[0], min(shown))
        _write(axes, text, place, (4, -11), "left", style.MUTED)
    axes.set_yticks(info.interval, [str(k) for k in info.interval])
    axes.yaxis.minorticks_off()
    axes.set_xlim(info.learning_rate[0], info.learning_rate[-1])
    style.log_ticks(axes.xaxis, *axes.get_xlim())


def _padded(values: FloatArray) -> FloatArray:
    """Values of a panel with the half octave on both sides that the picture shows."""
    return np.concatenate([values[:1], values, values[-1:]])


Places = tuple[FloatArray, FloatArray]


def _draw_reward(axes: Axes, at: Places, reward: FloatArray, levels: list[float]) -> None:
    from matplotlib.colors import to_rgba

    edges = [min(levels[0], reward.min()) - 1.0, *levels, max(levels[-1], reward.max()) + 1.0]
    # So light that text in both colour schemes stays legible on the deepest.
    fills = [to_rgba(style.BLUE, depth) for depth in np.linspace(0, 0.36, len(edges) - 1)]
    axes.contourf(*at, reward, levels=edges, colors=fills)
    look: dict[str, Any] = {"colors": [style.BLUE], "linewidths": 1.0, "linestyles": "solid"}
    lines = axes.contour(*at, reward, levels=levels, zorder=2.5, **look)
    digits = max(0, 1 - int(np.floor(np.log10(np.ptp(levels) or abs(levels[0]) or 1.0))))
    axes.clabel(lines, fmt=f"%.{digits}f", fontsize=style.NOTE, colors=[style.BLUE], inline=True)


def _draw_boundary(axes: Axes, info: StabilityMap, panel: int, at: Places) -> None:
    """Wash below the level asked for, and its edge as a thick line where it is crossed."""
    chance, level = _padded(info.probability[panel]), info.level
    if (chance < level).any():
        axes.contourf(*at, chance, levels=[-1.0, level], colors=[style.RISK], zorder=1.2)
    if not ((chance < level).any() and (chance >= level).any()):
        return
    axes.contour(*at, chance, levels=[level], colors=[style.INK], linewidths=2.2, zorder=3)
    rates, limits = info.learning_rate, info.limit[panel]
    inside = np.flatnonzero(limits < rates[-1])
    if inside.size:
        row = int(inside[-1])
        is_left = limits[row] < rates[0] ** 0.8 * rates[-1] ** 0.2
        offset, side = ((5, 0), "left") if is_left else ((-5, 0), "right")
        _write(axes, level_text(level), (limits[row], float(info.interval[row])), offset, side)


UNPILOTED: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": style.FAINT,
    "hatch": "//",
    "linewidth": 0,
}


def _draw_unpiloted(axes: Axes, info: StabilityMap, panel: int) -> None:
    """Hatch what lies beyond the rates, the intervals and the group sizes that pilots ran."""
    from matplotlib.patches import Rectangle

    (start, *_, end), rates = info.learning_rate, [dot.learning_rate for dot in info.pilots]
    low, high = info.interval[0] / HALF, info.interval[-1] * HALF
    left, right = min(rates), max(rates)
    # K is whole octaves: the edge lies half-way to the next one.
    foot = min(dot.interval for dot in info.pilots) / HALF
    top = max(dot.interval for dot in info.pilots) * HALF
    boxes = [(start, low, left, high), (right, low, end, high), (left, low, right, foot)]
    boxes += [(left, top, right, high)]
    for x0, y0, x1, y1 in boxes if info.is_piloted_group[panel] else [(start, low, end, high)]:
        if x1 > x0 and y1 > y0:
            axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, zorder=1.5, **UNPILOTED))


def _draw_pilots(axes: Axes, info: StabilityMap, panel: int) -> None:
    """Every pilot, above the star; how many lie in one place is written."""
    from matplotlib.patheffects import withStroke

    rim = [withStroke(linewidth=3.5, foreground="white")]
    for dot, count in Counter(dot for dot in info.pilots if dot.panel == panel).items():
        at = dot.learning_rate, float(dot.interval)
        look = _pilot_look(is_own=dot.is_own, has_collapsed=dot.has_collapsed)
        axes.plot(*at, zorder=7 + dot.is_own, path_effects=rim, **look)
        if count > 1:
            away = 19.0 if _is_at(info.advised, dot) else 10.0
            offset = (0.0, -away - 1 if dot.has_collapsed else away)
            _write(axes, f"{count} pilots", at, offset, "center")


def _is_at(mark: Mark, dot: Dot) -> bool:
    rate, interval = mark.place
    is_near = bool(np.isclose(dot.learning_rate, rate, rtol=0.01))
    return is_near and (mark.panel, interval) == (dot.panel, dot.interval)


def _pilot_look(*, is_own: bool, has_collapsed: bool) -> dict[str, Any]:
    color = style.INK if is_own else style.MUTED
    if has_collapsed:
        return {"marker": "x", "ls": "", "ms": 7, "mew": 2.2 if is_own else 1.4, "color": color}
    face = style.INK if is_own else "white"
    return {"marker": "o", "ls": "", "ms": 5, "mfc": face, "mec": color, "mew": 1.2}


def _draw_marks(axes: Axes, info: StabilityMap, panel: int) -> None:
    """The advised point, the next pilot, and the recipes."""
    blue: dict[str, Any] = {"mfc": style.BLUE, "mec": "white", "mew": 1.2, "zorder": 5}
    if info.advised.panel == panel:
        # Where a pilot lies on the star, its tips reach beyond that pilot's rim.
        is_covered = any(_is_at(info.advised, dot) for dot in info.pilots)
        axes.plot(*info.advised.place, "*", ms=26 if is_covered else 17, **blue)
    if info.next_pilot is not None and info.next_pilot.panel == panel:
        axes.plot(*info.next_pilot.place, "D", ms=8, **blue)
    for mark in info.recipes:
        if mark.panel == panel and info.is_drawn(mark):
            axes.plot(*mark.place, "s", ms=6, mfc=style.ORANGE, mec=style.INK)
            group = mark.settings.group_size
            other = "" if group == info.group_size[panel] else f", G {group}"
            _write(axes, mark.name + other, mark.place, (8, -10), "left")


def _write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    side: str,
    color: str = style.INK,
) -> None:
    """Text next to a point of the map."""
    style.write(
        axes, text, at, offset, is_on_marks=True, ha=side, va="center", color=color, zorder=6
    )


def _draw_legend(figure: Figure, info: StabilityMap, *, has_lines: bool, columns: int) -> None:
    point: dict[str, Any] = {"ls": "", "mfc": style.BLUE, "mec": "white"}
    level = level_text(info.level)
    entries: list[tuple[str, dict[str, Any]]] = [
        (info.advised.name, {"marker": "*", "ms": 14, **point})
    ]
    if info.next_pilot is not None:
        entries.append(("next pilot", {"marker": "D", "ms": 8, **point}))
    if has_lines:
        label = f"expected {info.measure} after {info.steps:,} steps, if stable"
        entries.append((label, {"color": style.BLUE, "lw": 0.9}))
    if info.is_crossed:
        entries.append((f"P(stable) = {level}", {"color": style.INK, "lw": 2.2}))
    if (info.probability < info.level).any():
        entries.append((f"P(stable) below {level}", {"facecolor": style.RISK}))
    entries.append(("beyond what was piloted", UNPILOTED))
    kinds = {(dot.is_own, dot.has_collapsed) for dot in info.pilots if dot.panel >= 0}
    for own, collapsed in sorted(kinds, key=lambda kind: (not kind[0], kind[1])):
        label = ("pilot" if own else "pilot of another model or task") + ", collapsed" * collapsed
        entries.append((label, _pilot_look(is_own=own, has_collapsed=collapsed)))
    style.legend(figure, entries, loc="outside lower center", ncols=columns)


def has_varied(posterior: Posterior) -> bool:
    """Whether the pilots differ in group size or K: else a map shows one row of knowledge."""
    own = [run.settings for run in posterior.meta.runs]
    return len({(one.group_size, one.refresh_interval) for one in own}) > 1


FIGURE = FigureKind(
    "stability", lambda *of: stability_map_info(*of[:2]), draw_stability_map, has_varied
)
