"""Number formats, names and label placement."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.reporting import page, style
from advisor.reporting.figures.trajectories import Trajectories, rate_scale

FINITE = st.floats(-10, 10, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"), [(3e-4, "3e-4"), (1.2e-3, "1.2e-3"), (1e-6, "1e-6"), (1.0, "1e0")]
)
def test_learning_rates_are_written_as_people_write_them(value: float, text: str) -> None:
    assert style.scientific(value) == text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("/ckpt/run 1/", "run 1"),
        ("two\nlines", "two lines"),
        ("", ""),
    ],
)
def test_names_keep_their_last_part(name: str, short: str) -> None:
    assert style.shorten(name) == short


@given(st.lists(FINITE, max_size=12), st.floats(0.01, 2))
def test_labels_keep_order_bounds_and_distance(wanted: list[float], gap: float) -> None:
    placed = style.spread_apart(wanted, gap, -10, 10)
    assert placed.shape == (len(wanted),)
    if not wanted:
        return
    assert placed.min() >= -10 - 1e-9
    assert placed.max() <= 10 + 1e-9
    order = np.argsort(wanted, kind="stable")
    least = min(gap, 20 / max(1, len(wanted) - 1))
    assert np.all(np.diff(placed[order]) >= least - 1e-9)


def test_mathematics_in_a_name_is_text() -> None:
    figure = style.new_figure(3, 2)
    axes = figure.add_subplot()
    style.tidy(axes, title="a$\\frac{$b", note="$x_{$", x="$", y="tab\tand bell\a")
    figure.savefig(io.BytesIO(), format="svg")
    assert axes.get_ylabel() == "taband bell"


def luminance(colour: tuple[float, ...]) -> float:
    """Of WCAG 2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def inverted(colour: tuple[float, ...]) -> tuple[float, ...]:
    """What the page's filter for the dark makes of a colour: invert, then half a turn of hue."""
    css = (Path(page.__file__).parent / "assets" / "report.css").read_text(encoding="utf-8")
    (share,) = re.findall(r"filter: invert\((\.\d+)\) hue-rotate\(180deg\)", css)
    at = float(share)
    turned = np.asarray(colour[:3]) * (1 - 2 * at) + at
    matrix = [[-0.574, 1.430, 0.144], [0.426, 0.430, 0.144], [0.426, 1.430, -0.856]]
    return tuple(np.clip(np.asarray(matrix) @ turned, 0, 1))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_curves_of_every_learning_rate_are_seen_by_day_and_in_the_dark() -> None:
    """WCAG asks of a line for a contrast of 3."""
    white = (1.0, 1.0, 1.0)
    colours = rate_scale(Trajectories((), 0, 0.0, 1.0)).get_cmap()(np.linspace(0, 1, 20))
    assert min(contrast(one, white) for one in colours) >= 3
    assert min(contrast(inverted(one), inverted(white)) for one in colours) >= 3
    # Negative control: the light end of the same scale.
    assert contrast((0.6, 0.83, 0.25), white) < 3
