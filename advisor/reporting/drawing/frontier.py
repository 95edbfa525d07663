"""Drawing: reward against price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.reporting.drawing import style
from advisor.reporting.drawing.labels import Label, place_labels
from advisor.reporting.frontier import Frontier
from advisor.reporting.names import level_text, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS: dict[str, dict[str, Any]] = {
    "advised": {"marker": "*", "ms": 17, "mfc": style.BLUE, "mec": "white", "zorder": 6},
    "pilot": {"marker": "o", "ms": 7, "mfc": style.INK, "mec": "white", "zorder": 5},
    "alternative": {"marker": "D", "ms": 7, "mfc": style.GREEN, "mec": "white", "zorder": 5},
    "recipe": {"marker": "s", "ms": 7, "mfc": style.ORANGE, "mec": style.INK, "zorder": 5},
}
"""Advised and recipes look as on the map of P(stable)."""

SAMPLES = 30
"""Points along each piece of a line that labels keep clear of."""


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
        f"{level_text(info.level)}. Hollow: below that.",
        x=f"price of the run ({info.unit})",
        y=f"expected {measure} at the last step (range {info.floor:g} to {info.ceiling:g})",
    )
    _limit(axes, info)
    is_stable = info.probability >= info.level
    look: dict[str, Any] = {"ls": "", "marker": "o", "ms": 5, "zorder": 3}
    axes.plot(
        info.cost[is_stable], info.reward[is_stable], mfc=style.SKY, mec="white", mew=0.6, **look
    )
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
    style.log_ticks(axes.xaxis, *axes.get_xlim(), write=quantity)
    bottom, top = float(reward.min()), float(reward.max())
    span = max(top - bottom, 0.05 * (info.ceiling - info.floor))
    axes.set_ylim(bottom - 0.12 * span, top + 0.12 * span)


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
