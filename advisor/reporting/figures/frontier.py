"""Figure: what a run would reach, against what it costs and how surely it stays stable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice import Alternative, gpu_unit, level_text, outside, piloted
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import FigureKind
from advisor.theory import BoolArray, FloatArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from advisor.advice import Ranges, Recommendation
    from advisor.runs import Settings


@dataclass(frozen=True)
class Named:
    """A configuration with the names of all roles that it plays."""

    names: tuple[str, ...]
    settings: str  # an asterisk follows each that no pilot ran
    kind: str  # of `MARKS`
    cost: float  # in the figure's unit
    reward: float  # expected at the last step of a stable run
    probability: float

    @property
    def label(self) -> str:
        """Names over the settings, in short lines."""
        is_long = sum(map(len, self.names)) > 20
        names = (",\n" if is_long else ", ").join(self.names)
        return f"{names}\n{self.settings}"


@dataclass(frozen=True)
class Frontier:
    """The whole figure: configurations that none beats in reward, price and P(stable) together."""

    cost: FloatArray
    reward: FloatArray
    probability: FloatArray
    piloted: BoolArray  # whether pilots ran each of its settings
    named: tuple[Named, ...]
    best_cost: FloatArray  # corners of the most reward for its price among those stable enough
    best_reward: FloatArray
    level: float
    unit: str  # of GPU time, the one in which prices are short, or "generated completions"
    measure: str
    floor: float
    ceiling: float

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        named = (
            f"{', '.join(one.names)} {one.reward:.3f} for {one.cost:.3g}" for one in self.named
        )
        return (
            f"Expected {self.measure} at the last step against price in {self.unit}: "
            f"{'; '.join(named)}."
        )

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        below, beyond = int(np.sum(self.probability < self.level)), int(np.sum(~self.piloted))
        of = f"of {self.probability.size} configurations of the frontier"
        parts = []
        if below:
            parts.append(f"{below} {of} stay below P(stable) = {level_text(self.level)}.")
        if beyond:
            parts.append(f"{beyond} {of} lie beyond what was piloted, where the prior decides.")
        return " ".join(parts)


def frontier_info(posterior: Posterior, recommendation: Recommendation) -> Frontier:
    """Collect the frontier of an answer, and every configuration that the answer names."""
    advice, meta = recommendation, posterior.meta
    is_held_out = advice.measure == "held-out reward"
    ranges = piloted(posterior)
    hours = [one.gpu_hours for one in (advice.cost, *(f.cost for f in advice.frontier))]
    unit, scale = "generated completions", 1.0
    if advice.cost.gpu_hours is not None:
        unit, scale = gpu_unit(max(one for one in hours if one is not None))
    own = Alternative(
        name=style.role_of(advice.kind, is_dead=advice.collapsed == advice.pilots),
        settings=advice.settings,
        reward=advice.reward.mean,
        stability=advice.stability,
        cost=advice.cost,
        steps_to_95=None,
    )
    groups = {
        "advised": (own,),
        "alternative": advice.alternatives,
        "pilot": (advice.best_piloted,),
        "cheaper": advice.equal_completions,
        "recipe": advice.recipes,
    }
    # One configuration under one budget is one point, whatever length it was planned with.
    found: dict[tuple[Settings, float], list[tuple[str, Alternative]]] = {}
    for kind, group in groups.items():
        for one in group:
            settings = one.settings.model_copy(update={"planned_steps": None})
            found.setdefault((settings, round(one.cost.paid, 9)), []).append((kind, one))

    def merits(one: Alternative) -> tuple[float, float, float]:
        return one.cost.paid * scale, one.reward, one.stability.least

    named = [
        Named(
            tuple(dict.fromkeys(one.name for _, one in roles)),
            _marked(roles[0][1].settings, ranges),
            roles[0][0],
            *merits(roles[0][1]),
        )
        for roles in found.values()
    ]
    points = [merits(one) for one in advice.frontier]
    table = np.array(points, dtype=float).reshape(-1, 3)
    corners = _best([*points, merits(own)], advice.level)
    inside = [not outside(f.settings.model_dump(), ranges) for f in advice.frontier]
    return Frontier(
        cost=table[:, 0],
        reward=table[:, 1],
        probability=table[:, 2],
        piloted=np.array(inside, dtype=bool),
        named=tuple(named),
        best_cost=corners[:, 0],
        best_reward=corners[:, 1],
        level=advice.level,
        unit=unit,
        measure=advice.measure,
        floor=meta.eval_floor if is_held_out else meta.floor,
        ceiling=meta.eval_ceiling if is_held_out else meta.ceiling,
    )


def _marked(settings: Settings, ranges: Ranges) -> str:
    """Configuration with an asterisk after each setting that no pilot ran."""
    beyond = outside(settings.model_dump(), ranges)
    stars = (
        "learning_rate" in beyond,
        "group_size" in beyond,
        bool({"minibatches_per_refresh", "epochs_per_refresh"} & set(beyond)),
    )
    parts = style.settings_label(settings).split(", ")
    return ", ".join(part + ("*" if star else "") for part, star in zip(parts, stars, strict=True))


def _best(points: Iterable[tuple[float, float, float]], level: float) -> FloatArray:
    """Corners (price, reward) at which the reward of the best feasible point rises."""
    corners: list[tuple[float, float]] = []
    for cost, reward, _ in sorted(
        (point for point in points if point[2] >= level), key=lambda point: (point[0], -point[1])
    ):
        if not corners or reward > corners[-1][1]:
            corners.append((cost, reward))
    return np.array(corners, dtype=float).reshape(-1, 2)


MARKS: dict[str, dict[str, Any]] = {
    "advised": {"marker": "*", "ms": 17, "mfc": style.BLUE, "mec": "white", "zorder": 6},
    "pilot": {"marker": "o", "ms": 7, "mfc": style.INK, "mec": "white", "zorder": 5},
    "alternative": {"marker": "D", "ms": 7, "mfc": style.GREEN, "mec": "white", "zorder": 5},
    "cheaper": {"marker": "D", "ms": 7, "mfc": style.GREEN, "mec": "white", "zorder": 5},
    "recipe": {"marker": "s", "ms": 7, "mfc": style.ORANGE, "mec": style.INK, "zorder": 5},
}
"""Advised and recipes look as on the map of P(stable)."""


def draw_frontier(info: Frontier) -> Figure:
    """Draw the frontier, the line of the best for its price, and every named configuration."""
    figure = style.new_figure(8.4, 5.4)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    measure = "train reward" if info.measure == "reward" else info.measure
    style.tidy(
        axes,
        title="Reward against price",
        note="Line: the most reward for its price with P(stable) of at least "
        f"{level_text(info.level)}. Hollow: below that.\n"
        "Grey, and an asterisk: a setting that no pilot ran.",
        x=f"price of the run ({info.unit})",
        y=f"expected {measure} at the last step (range {info.floor:.3g} to {info.ceiling:.3g})",
    )
    _limit(axes, info)
    is_stable = info.probability >= info.level
    risky: dict[str, Any] = {"mfc": "white", "mec": style.VERMILLION}
    for kept, look in (
        (is_stable & info.piloted, {"mfc": style.SKY, "mec": "white", "mew": 0.6}),
        (is_stable & ~info.piloted, {"mfc": style.FAINT, "mec": "white", "mew": 0.6}),
        (~is_stable, {**risky, "mew": 1.3}),
    ):
        axes.plot(info.cost[kept], info.reward[kept], "o", ms=5, zorder=3, **look)
    if info.best_cost.size:
        costs = np.repeat([*info.best_cost, axes.get_xlim()[1]], 2)[1:-1]
        axes.plot(costs, np.repeat(info.best_reward, 2), color=style.BLUE, linewidth=1.5, zorder=2)
    for one in info.named:
        hollow = {**risky, "mew": 1.8} if one.probability < info.level else {}
        axes.plot(one.cost, one.reward, **{"ls": "", "mew": 1.1, **MARKS[one.kind], **hollow})
    names = [
        style.Named(
            one.label,
            [(one.cost, one.reward)],
            style.BLUE if one.kind == "advised" else style.INK,
            style.FAINT,
        )
        for one in info.named
    ]
    lines = max(one.label.count("\n") + 1 for one in info.named)
    style.name_ends(axes, names, gap=1.4 * style.NOTE * lines)
    return figure


def _limit(axes: Axes, info: Frontier) -> None:
    """Limits with room for labels; the range of the reward is not left by much."""
    cost = np.append(info.cost, [one.cost for one in info.named])
    reward = np.append(info.reward, [one.reward for one in info.named])
    low, high = float(cost.min()), float(cost.max())
    room = max((high / low) ** 0.12, 1.25)
    axes.set_xlim(low / room, high * room)
    style.log_ticks(axes.xaxis, *axes.get_xlim(), text=style.quantity)
    least = 0.05 * (info.ceiling - info.floor)
    axes.set_ylim(*style.padded(reward.tolist(), 0.12, least))


FIGURE = FigureKind("frontier", frontier_info, draw_frontier)
