"""Number formats, names and label placement."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.wording import level_text
from advisor.reporting.drawing import style
from advisor.reporting.names import scientific, shorten

FINITE = st.floats(-10, 10, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"), [(3e-4, "3e-4"), (1.2e-3, "1.2e-3"), (1e-6, "1e-6"), (1.0, "1e0")]
)
def test_learning_rates_are_written_as_people_write_them(value: float, text: str) -> None:
    assert scientific(value) == text


def test_levels_are_not_rounded() -> None:
    assert [level_text(p) for p in (0.9, 0.995)] == ["90 %", "99.5 %"]


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
    assert shorten(name) == short


@given(st.text(max_size=200), st.integers(3, 40))
def test_no_name_is_longer_than_its_limit(name: str, limit: int) -> None:
    assert len(shorten(name, limit)) <= limit


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


def test_labels_with_room_do_not_move() -> None:
    np.testing.assert_allclose(style.spread_apart([3.0, 1.0, 2.0], 0.5, 0, 4), [3, 1, 2])


def test_mathematics_in_a_name_is_text() -> None:
    figure = style.new_figure(3, 2)
    axes = figure.add_subplot()
    style.tidy(axes, title="a$\\frac{$b", note="$x_{$", x="$", y="tab\tand bell\a")
    figure.savefig(io.BytesIO(), format="svg")
    assert axes.get_ylabel() == "taband bell"


def test_importing_the_report_loads_no_plotting() -> None:
    code = (
        "import sys, advisor.reporting\n"
        "heavy = {'matplotlib', 'arviz', 'pymc', 'optuna', 'jinja2'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
