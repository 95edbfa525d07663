"""Figure: what a run would reach, against what it costs and how surely it stays stable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice import gpu_unit, level_text, outside, percent, piloted
from advisor.model import Posterior
from advisor.reporting.drawing import style
from advisor.reporting.drawing.labels import Label, place_labels
from advisor.reporting.figures.figure import FigureKind
from advisor.reporting.names import quantity, role_of, settings_label
from advisor.theory import BoolArray, FloatArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from advisor.advice import Ranges, Recommendation
    from advisor.runs import Settings


WIDE = 24
"""Characters from which names take a line each."""


@dataclass(frozen=True)
class Named:
    """A configuration with the names of all roles that it plays.

    ``kind`` is "advised", "pilot", "alternative" or "recipe"; ``cost`` in the figure's unit,
    ``reward`` expected at the last step of a stable run. In ``settings`` an asterisk follows each
    that no pilot ran.
    """

    names: tuple[str, ...]
    settings: str
    kind: str
    cost: float
    reward: float
    probability: float

    @property
    def label(self) -> str:
        """Names over the settings, in short lines."""
        names = ", ".join(self.names)
        if len(names) >= WIDE:
            names = names.replace(", ", ",\n")
        return f"{names}\n{self.settings}"


@dataclass(frozen=True)
class Frontier:
    """The whole figure.

    Arrays of shape (points,) are configurations that none beats in reward, price and P(stable)
    together. ``best_cost`` and ``best_reward`` are the corners of the most reward for its price
    among those stable enough, both ascending. ``piloted`` says of a point whether pilots ran each
    of its settings. ``unit`` is that of GPU time in which prices are short, or "generated
    completions".
    """

    cost: FloatArray
    reward: FloatArray
    probability: FloatArray
    piloted: BoolArray
    named: tuple[Named, ...]
    best_cost: FloatArray
    best_reward: FloatArray
    level: float
    unit: str
    measure: str
    floor: float
    ceiling: float

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        parts = [
            f"Expected {self.measure} at the last step against price in {self.unit}, for "
            f"{self.cost.size} configurations that none beats in reward, price and P(stable) "
            "together."
        ]
        parts += [
            f"{_sentence(', '.join(one.names))} ({one.settings}): {one.reward:.3f} for "
            f"{one.cost:.3g}, P(stable) {percent(one.probability)}."
            for one in self.named
        ]
        return " ".join(parts)

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        below, beyond = int(np.sum(self.probability < self.level)), int(np.sum(~self.piloted))
        of = f"of {self.probability.size} configurations of the frontier"
        parts = []
        if below:
            parts.append(f"{below} {of} stay below P(stable) = {level_text(self.level)}.")
        if beyond:
            parts.append(f"{beyond} {of} lie beyond what was piloted: the prior's word.")
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
    found: dict[tuple[Settings, float], Named] = {}
    roles = (
        (
            role_of(advice.kind, is_dead=advice.collapsed == advice.pilots),
            "advised",
            advice.settings,
            advice.reward.mean,
            advice.stability,
            advice.cost,
        ),
        *(
            (one.name, kind, one.settings, one.reward, one.stability, one.cost)
            for kind, group in (
                ("alternative", advice.alternatives),
                ("pilot", (advice.best_piloted,)),
                ("alternative", advice.equal_completions),
                ("recipe", advice.recipes),
            )
            for one in group
        ),
    )
    for name, kind, settings, reward, stable, cost in roles:
        # One configuration under one budget is one point, whatever length it was planned with.
        key = settings.model_copy(update={"planned_steps": None}), round(cost.paid, 9)
        if key in found:
            names = tuple(dict.fromkeys((*found[key].names, name)))
            found[key] = Named(names, *_rest(found[key]))
        else:
            label = _marked(settings, ranges)
            found[key] = Named((name,), label, kind, cost.paid * scale, reward, stable.least)
    points = [(f.cost.paid * scale, f.reward, f.stability.least) for f in advice.frontier]
    table = np.array(points, dtype=float).reshape(-1, 3)
    advised = next(iter(found.values()))
    corners = _best([*points, (advised.cost, advised.reward, advised.probability)], advice.level)
    return Frontier(
        cost=table[:, 0],
        reward=table[:, 1],
        probability=table[:, 2],
        piloted=np.array(
            [not outside(f.settings.model_dump(), ranges) for f in advice.frontier], bool
        ),
        named=tuple(found.values()),
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
    parts = settings_label(settings).split(", ")
    return ", ".join(part + ("*" if star else "") for part, star in zip(parts, stars, strict=True))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _rest(one: Named) -> tuple[str, str, float, float, float]:
    return one.settings, one.kind, one.cost, one.reward, one.probability


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
    "recipe": {"marker": "s", "ms": 7, "mfc": style.ORANGE, "mec": style.INK, "zorder": 5},
}
"""Advised and recipes look as on the map of P(stable)."""

SAMPLES = 30
"""Points along each piece of a line that labels keep clear of."""


def draw_frontier(info: Frontier, *, is_narrow: bool = False) -> Figure:
    """Draw the frontier, the line of the best for its price, and every named configuration."""
    figure = style.new_figure(style.NARROW if is_narrow else 8.4, 5.4)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    gap = "\n" if is_narrow else " "
    measure = "train reward" if info.measure == "reward" else info.measure
    style.tidy(
        axes,
        title="Reward against price",
        note="Line: the most reward for its price with P(stable) of at least "
        f"{level_text(info.level)}.{gap}Hollow: below that.\n"
        "Grey, and an asterisk: a setting that no pilot ran.",
        x=f"price of the run ({info.unit})",
        y=f"expected {measure} at the last step (range {info.floor:.3g} to {info.ceiling:.3g})",
    )
    _limit(axes, info)
    is_stable = info.probability >= info.level
    look: dict[str, Any] = {"ls": "", "marker": "o", "ms": 5, "zorder": 3}
    for kept, face in ((info.piloted, style.SKY), (~info.piloted, style.FAINT)):
        shown = is_stable & kept
        axes.plot(info.cost[shown], info.reward[shown], mfc=face, mec="white", mew=0.6, **look)
    axes.plot(
        info.cost[~is_stable],
        info.reward[~is_stable],
        mfc="white",
        mec=style.VERMILLION,
        mew=1.3,
        **look,
    )
    if info.best_cost.size:
        end = axes.get_xlim()[1]
        axes.step(
            [*info.best_cost, end],
            [*info.best_reward, info.best_reward[-1]],
            where="post",
            color=style.BLUE,
            linewidth=1.5,
            zorder=2,
        )
    for one in info.named:
        mark = {**MARKS[one.kind], "ls": "", "mew": 1.1}
        if one.probability < info.level:
            mark |= {"mfc": "white", "mec": style.VERMILLION, "mew": 1.8}
        axes.plot(one.cost, one.reward, **mark)
    place_labels(
        axes,
        [
            Label(
                one.label, one.cost, one.reward, style.BLUE if one.kind == "advised" else style.INK
            )
            for one in info.named
        ],
        np.array([*zip(info.cost, info.reward, strict=True), *_named(info)], dtype=float),
        _stairs(info, axes.get_xlim()[1]),
    )
    return figure


def _named(info: Frontier) -> list[tuple[float, float]]:
    return [(one.cost, one.reward) for one in info.named]


def _limit(axes: Axes, info: Frontier) -> None:
    """Limits with room for labels; the range of the reward is not left by much."""
    cost = np.append(info.cost, [one.cost for one in info.named])
    reward = np.append(info.reward, [one.reward for one in info.named])
    low, high = float(cost.min()), float(cost.max())
    room = max((high / low) ** 0.12, 1.25)
    axes.set_xlim(low / room, high * room)
    style.log_ticks(axes.xaxis, *axes.get_xlim(), text=quantity)
    least = 0.05 * (info.ceiling - info.floor)
    axes.set_ylim(*style.padded(reward.tolist(), 0.12, least))


def _stairs(info: Frontier, end: float) -> Any:
    """Samples along the line of the best."""
    if not info.best_cost.size:
        return np.empty((0, 2))
    costs = np.append(info.best_cost, end)
    parts = [
        np.column_stack(
            [np.geomspace(costs[i], costs[i + 1], SAMPLES), np.full(SAMPLES, info.best_reward[i])]
        )
        for i in range(len(info.best_cost))
    ]
    parts += [
        np.column_stack(
            [
                np.full(SAMPLES, costs[i]),
                np.linspace(info.best_reward[i - 1], info.best_reward[i], SAMPLES),
            ]
        )
        for i in range(1, len(info.best_cost))
    ]
    return np.concatenate(parts)


FIGURE = FigureKind(
    "frontier",
    "What more money would buy",
    "Dots are configurations that none beats in reward, price and P(stable) together; the line "
    "is the most reward for its price among those stable enough. Hollow marks are not.",
    frontier_info,
    draw_frontier,
)
