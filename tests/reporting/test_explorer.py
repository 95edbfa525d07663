"""The grid of the sliders, as the page's own script reads it in Node, against the package."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_runs import with_meta

import advisor.reporting.page
from advisor.advice import CostModel, Recommendation, what_if_rows
from advisor.forecast import Forecaster
from advisor.model import Posterior
from advisor.reporting.page import explorer_data

DRAWS = 400

Build = Callable[..., Any]
SCRIPT = Path(advisor.reporting.page.__file__).parent / "assets" / "page.js"
DRIVER = """
const Grid = require(process.argv[1]);
const { model, asked } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const grid = Grid.load(model);
console.log(JSON.stringify(asked.map((one) => Grid.at(grid, one))));
"""
NAMES = {
    "reward": "reward",
    "low": "reward_low",
    "high": "reward_high",
    "stable": "p_stable",
    "refresh": "p_refresh",
    "tolerance": "p_tolerance",
    "fluctuation": "p_fluctuation",
}
"""Numbers of the page and columns of `what_if`."""


def by_page(model: dict[str, Any], asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    done = subprocess.run(
        [node, "-e", DRIVER, str(SCRIPT)],
        input=json.dumps({"model": model, "asked": asked}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def by_package(posterior: Posterior, advice: Recommendation, one: dict[str, Any]) -> dict[str, Any]:
    forecaster = Forecaster(posterior, advice.target, draws=DRAWS, seed=advice.seed)
    changes = {"steps" if name == "planned_steps" else name: value for name, value in one.items()}
    (row,) = what_if_rows(forecaster, advice.cost_model, advice.settings, changes)
    return row


def places(model: dict[str, Any]) -> list[dict[str, Any]]:
    """Every hundredth place of the grid."""
    choices = model["choices"]
    every = [
        dict(zip(choices, place, strict=True)) for place in itertools.product(*choices.values())
    ]
    return every[::97]


def is_held_out(posterior: Posterior) -> Posterior:
    return with_meta(posterior, evaluated=(True,) * len(posterior.meta.groups))


@pytest.mark.evidence
@pytest.mark.parametrize("held_out", [False, True])
def test_numbers_at_grid_points_are_those_of_python(
    posterior: Posterior, advise: Build, held_out: bool
) -> None:
    own = is_held_out(posterior) if held_out else posterior
    price = CostModel(fixed=2.0, generated=0.1, trained=0.02, gpus=8, source="")
    advice = advise(own)
    if held_out:
        terms = advice.terms.model_copy(update={"cost_model": price})
        advice = advice.model_copy(update={"terms": terms})
    model = explorer_data(own, advice)
    asked = places(model)
    assert any(one["planned_steps"] > model["lengths"][0] for one in asked)
    for page, one in zip(by_page(model, asked), asked, strict=True):
        row = by_package(own, advice, one)
        for name, column in NAMES.items():
            assert page[name] == pytest.approx(row[column], abs=1e-6)
        assert page["completions"] == f"{row['completions']:,.0f} completions"
        assert ("GPU" in page["cost"]) == held_out


@pytest.mark.evidence
def test_the_check_would_see_another_number(posterior: Posterior, advice: Recommendation) -> None:
    """Negative control: a grid of another answer's settings."""
    other = advice.settings.model_copy(update={"prompts_per_step": 32.0})
    model = explorer_data(posterior, advice.model_copy(update={"settings": other}))
    (page,) = by_page(model, places(model)[5:6])
    row = by_package(posterior, advice, places(model)[5])
    assert page["reward"] != pytest.approx(row["reward"], abs=1e-6)


@pytest.mark.evidence
def test_the_answer_is_among_the_choices(posterior: Posterior, advice: Recommendation) -> None:
    model = explorer_data(posterior, advice)
    assert all(model["start"][name] in values for name, values in model["choices"].items())
    assert all(values == sorted(set(values)) for values in model["choices"].values())
    assert len(json.dumps(model)) < 150_000


@pytest.mark.evidence
def test_settings_are_ranked_by_what_twice_or_half_of_them_changes(
    posterior: Posterior, advice: Recommendation
) -> None:
    model = explorer_data(posterior, advice)
    found = dict(model["matters"])
    assert [*found.values()] == sorted(found.values(), reverse=True)
    floor = model["bounds"][0]

    rows = np.frombuffer(base64.b64decode(model["values"]), "<f4").reshape(-1, 7)
    grid = [*itertools.product(*model["choices"].values())]

    def worth(**changed: float) -> float:
        place = grid.index(tuple({**model["start"], **changed}.values()))
        return float(floor + rows[place, 3] * (rows[place, 0] - floor))

    own = model["start"]["group_size"]
    changes = [abs(worth(group_size=size) - worth()) for size in (own / 2, own * 2)]
    assert found["Group size G"] == pytest.approx(max(changes), abs=1e-6)
    # Negative control: four times as much changes something else.
    assert abs(worth(group_size=own * 4) - worth()) != pytest.approx(max(changes), abs=1e-6)
