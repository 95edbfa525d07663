"""The study of P(stable): what it learns, with deaths dealt by chance as a control; its scores."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from simulated_runs import Plan
from studies import STUDIES, modules_of

FOLDER = STUDIES / "stability"
NAMES = ("finished_runs", "learning", "stability")
ROWS = 80


@pytest.fixture(scope="module")
def study():
    with modules_of("stability", NAMES) as found:
        yield found


def members(study, dealt=None):
    """Runs of twelve repositories: every third sags from a third on and falls at last."""
    rng, found = np.random.default_rng(11), []
    along = np.arange(ROWS) / ROWS
    for number in range(96):
        sags = number % 3 == 0
        falls = sags if dealt is None else bool(dealt[number])
        reward = 0.3 + 0.4 * along - (0.7 * np.clip(along - 0.2, 0, 0.3) if sags else 0.0)
        reward = np.where(falls & (along > 0.8), 0.02, reward) + 0.02 * rng.standard_normal(ROWS)
        run = Plan(1e-6, steps=ROWS, parameters=1.5e9, model="m", task="t").run(reward, f"{number}")
        found.append(study["finished_runs"].finished(run, f"r{number % 12}", is_public=True))
    return found


@pytest.mark.evidence
def test_a_run_that_sags_is_said_to_die_where_those_died_and_not_where_deaths_are_dealt(study):
    dealt = np.random.default_rng(1).random(96) < 1 / 3
    areas = {}
    for of, runs in (("shown", members(study)), ("dealt", members(study, dealt))):
        columns = study["learning"].Runs(runs)
        own = columns.group == columns.group[0]
        learned = study["learning"].learned(columns, ~own)
        said = np.array([learned.said(columns, row, 0.5) for row in range(96)])
        areas[of] = study["stability"].area(said, columns.died)
        assert 0.1 < said.mean() < 0.6
    assert areas["shown"] > 0.95
    # Control: the same runs, and nothing in them tells who falls.
    assert 0.3 < areas["dealt"] < 0.7


def test_scores_follow_from_the_predictions_that_are_kept(study):
    found = json.loads((FOLDER / "stability.json").read_text(encoding="utf-8"))
    with gzip.open(FOLDER / "stability.predictions.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for look in ("before", "0.25", "0.5"):
        asked = [row for row in rows if look in row]
        died = np.array([row["died"] for row in asked], dtype=float)
        said = np.array([row[look] for row in asked])
        assert found[look]["all"]["runs"] == len(asked)
        assert found[look]["all"]["brier"] == pytest.approx(((said - died) ** 2).mean(), abs=2e-4)
        assert found[look]["all"]["auc"] == pytest.approx(
            study["stability"].area(said, died), abs=2e-3
        )


def test_intervals_are_over_repositories(study):
    """Control: one repository of many runs makes it no narrower."""
    interval = study["stability"].interval
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 50)
    shift = np.repeat(rng.standard_normal(10), 50)
    low, high = interval(shift, group)
    assert high - low > 0.6
    low, high = interval(rng.permutation(shift), np.arange(500))
    assert high - low < 0.3
