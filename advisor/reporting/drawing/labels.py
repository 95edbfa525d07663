"""Placing labels beside their points, where nothing else stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.reporting.drawing import style
from advisor.theory import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RADII = (9.0, 16.0, 26.0, 38.0, 52.0, 68.0, 86.0, 106.0, 128.0)
"""Distances tried between a point and its label, in points."""

ANGLES = 24

LEADER_FROM = 14.0
"""Distance in points from which a line joins a label to its point."""

PAD = 2.0
"""Free margin round a label, in pixels."""

ON_LABEL, ON_POINT, ON_LINE = 2000.0, 60.0, 4.0
"""Cost of covering another label, a point, or one sample of a line, in points of distance."""


@dataclass(frozen=True)
class Label:
    """Text that belongs to a point, in data coordinates."""

    text: str
    x: float
    y: float
    color: str = style.INK


def place_labels(
    axes: Axes, labels: Sequence[Label], points: FloatArray, lines: FloatArray
) -> None:
    """Write each label, the most important first, beside its point in axes with final limits.

    Points and lines (marks, and samples along lines) are data coordinates of shape (n, 2) that
    labels should not cover.
    """
    figure = axes.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]
    point = figure.dpi / 72.0
    box = axes.get_window_extent()
    frame = np.array([box.x0, box.y0, box.x1, box.y1])
    marks, strokes = _pixels(axes, points), _pixels(axes, lines)
    taken: list[FloatArray] = []
    leaders = np.empty((0, 2))
    for label in labels:
        anchor = _pixels(axes, np.array([[label.x, label.y]]))[0]
        size = _size(axes, label.text)
        best, cost = None, np.inf
        for radius in RADII:
            for angle in np.linspace(0, 2 * np.pi, ANGLES, endpoint=False):
                way = np.array([np.cos(angle), np.sin(angle)])
                place = _box(anchor + radius * point * way, way, size)
                if not _inside(place, frame):
                    continue
                leader = np.linspace(anchor, _nearest(place, anchor), 24)[3:]
                found = (
                    radius
                    + 3 * abs(way[1])  # beside rather than above
                    + ON_LABEL * sum(_overlap(place, other) for other in taken)
                    + ON_POINT * sum(int(_within(leader, other).sum()) for other in taken)
                    + ON_POINT * int(_within(marks, place).sum())
                    + ON_LINE * int(_within(strokes, place).sum())
                    + ON_POINT * int(_within(leaders, place).sum())
                    + ON_LINE * _crowding(leader[: -len(leader) // 4], marks, point)
                )
                if found < cost:
                    best, cost = (place, leader, radius), found
        if best is None:  # the axes are too small for it
            continue
        place, leader, radius = best
        taken.append(place)
        if radius >= LEADER_FROM:
            leaders = np.concatenate([leaders, leader])
        _write(axes, label, place, is_far=radius >= LEADER_FROM)


def _pixels(axes: Axes, at: FloatArray) -> FloatArray:
    return np.asarray(axes.transData.transform(at)) if len(at) else np.empty((0, 2))


def _size(axes: Axes, text: str) -> FloatArray:
    """Width and height of a text in pixels."""
    probe = axes.text(0, 0, style.plain(text), fontsize=style.NOTE, transform=axes.transAxes)
    extent = probe.get_window_extent()
    probe.remove()
    return np.array([extent.width, extent.height])


def _box(near: FloatArray, way: FloatArray, size: FloatArray) -> FloatArray:
    """Box (x0, y0, x1, y1) that touches ``near`` from the far side of ``way``."""
    middle = near + way * size / 2
    return np.concatenate([middle - size / 2, middle + size / 2])


def _nearest(box: FloatArray, to: FloatArray) -> FloatArray:
    return np.clip(to, box[:2], box[2:])


def _inside(box: FloatArray, frame: FloatArray) -> bool:
    return bool(np.all(box[:2] >= frame[:2] + PAD) and np.all(box[2:] <= frame[2:] - PAD))


def _overlap(box: FloatArray, other: FloatArray) -> float:
    """Share of the smaller box that the two have in common, with their margins; at least 0.2."""
    sides = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2]) + 2 * PAD
    if np.any(sides <= 0):
        return 0.0
    area = min(float(np.prod(b[2:] - b[:2])) for b in (box, other))
    return max(0.2, float(np.prod(sides)) / area)


def _within(at: FloatArray, box: FloatArray) -> BoolArray:
    inside = (at >= box[:2] - 2 * PAD) & (at <= box[2:] + 2 * PAD)
    return np.asarray(inside.all(axis=1))


def _crowding(leader: FloatArray, marks: FloatArray, point: float) -> int:
    """Marks that a leader runs over."""
    away = np.hypot(*(leader[:, None] - marks[None]).transpose(2, 0, 1))
    return int(np.sum(away.min(axis=0, initial=np.inf) < 4 * point))


def _write(axes: Axes, label: Label, place: FloatArray, *, is_far: bool) -> None:
    anchor = _pixels(axes, np.array([[label.x, label.y]]))[0]
    offset = (place[:2] + place[2:]) / 2 - anchor
    point = axes.figure.dpi / 72.0
    if is_far:
        end = (_nearest(place, anchor) - anchor) / point
        axes.annotate(
            "",
            xy=(label.x, label.y),
            xytext=tuple(end),
            textcoords="offset points",
            arrowprops={
                "arrowstyle": "-",
                "color": style.MUTED,
                "linewidth": 0.7,
                "shrinkA": 0,
                "shrinkB": 4,
            },
            zorder=3,
        ).set_in_layout(False)
    style.write(
        axes,
        label.text,
        (label.x, label.y),
        tuple(offset / point),
        rim=2.6,
        ha="center",
        va="center",
        color=label.color,
        zorder=7,
    ).set_in_layout(False)
