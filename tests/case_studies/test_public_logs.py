"""What the study of public logs states: its scores, its hazard law, its written result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from studies import STUDIES, modules_of

FOLDER = STUDIES / "public_logs"
OWN = ("sources", "scores", "instability", "off_policy", "cited")


@pytest.fixture(scope="module")
def study() -> Iterator[dict[str, Any]]:
    with modules_of("public_logs", OWN) as found:
        yield found


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return json.loads((FOLDER / "public_logs.json").read_text(encoding="utf-8"))


def test_scores_against_values_by_hand(study: dict[str, Any]) -> None:
    scores = study["scores"]
    said, happened = np.array([0.9, 0.2, 0.2, 0.1]), np.array([1.0, 1.0, 0.0, 0.0])
    assert scores.brier(said, happened) == pytest.approx((0.01 + 0.64 + 0.04 + 0.01) / 4)
    assert scores.rank_auc(said, happened) == pytest.approx(3.5 / 4)
    assert np.isnan(scores.rank_auc(said, np.zeros(4)))
    assert scores.log_score(np.array([0.5]), np.array([1.0])) == pytest.approx(np.log(2))


def test_intervals_draw_repositories_not_runs(study: dict[str, Any]) -> None:
    value = np.array([1.0] * 50 + [0.0] * 50)
    found = study["scores"].over_repositories(
        lambda at: float(value[at].mean()), ["a"] * 50 + ["b"] * 50
    )
    assert found == [0.5, 0.0, 1.0]


def fatal_rates(study: dict[str, Any], *, swapped: bool = False) -> list[Any]:
    """The demo's pilots, of which those at the highest rates are made to collapse, or to live."""
    rows, _ = study["sources"].askable(study["sources"].demo())
    rates = np.array([row.run.hyperparameters.learning_rate for row in rows])
    kept = []
    for row, rate in zip(rows, rates, strict=True):
        dies = (rate < np.median(rates)) if swapped else (rate > np.median(rates))
        reward = 0.6 * np.ones(row.run.reward.size) + 0.05 * np.sin(np.arange(row.run.reward.size))
        if dies:
            reward[reward.size // 2 :] *= 0.02
        run = row.run.with_updates(series={"reward": reward})
        label = "collapse" if dies else "healthy"
        kept.append(study["sources"].Labelled(row.id, row.repository, "", None, label, run))
    return kept


def test_hazard_law_follows_the_collapses_that_it_saw(study: dict[str, Any]) -> None:
    rows = fatal_rates(study)
    law = study["instability"].learned(rows, draws=20_000)
    assert law.effective_draws > 400
    said = np.array([law.unstable(row.run) for row in rows])
    assert study["scores"].rank_auc(said, study["scores"].collapsed(rows)) == 1.0
    # The prior alone says that fast runs die; where slow ones did, the law must have moved.
    other = study["instability"].learned(fatal_rates(study, swapped=True), draws=20_000)
    ratio = [law.weight @ law.law[:, 1], other.weight @ other.law[:, 1]]
    assert ratio[1] < ratio[0] - 1


def test_neutral_preset_changes_epochs_alone(study: dict[str, Any]) -> None:
    from advisor.model.priors import load_priors

    before = load_priors("full_finetuning")
    after = study["instability"].neutral(before)
    assert after.hazard_epochs == before.hazard_minibatches != before.hazard_epochs
    assert after.hazard_learning_rate == before.hazard_learning_rate


def test_cited_forecasts_pool_to_the_totals_of_their_study(study: dict[str, Any]) -> None:
    table = study["cited"].forecasts()
    source = json.loads(study["cited"].BACKTEST.read_text(encoding="utf-8"))
    whole = source["by_share"]["0.25"]["advisor"]
    assert table["all"]["runs"] == whole["runs"]
    assert table["all"]["advisor"]["mae"] == pytest.approx(whole["mae"], abs=1e-3)
    assert sum(row["runs"] for name, row in table.items() if name != "all") == whole["runs"]


def test_written_result_bears_out_every_check(result: dict[str, Any]) -> None:
    assert result["manifest"]["checks"]
    assert all(result["manifest"]["checks"].values())
    assert "FOLDER" in result["manifest"]["command"]


def test_written_probabilities_give_the_written_scores(
    study: dict[str, Any], result: dict[str, Any]
) -> None:
    runs = result["instability"]["runs"]
    happened = np.array([float(run["label"] == "collapse") for run in runs])
    for method, scores in result["instability"]["scores"].items():
        said = np.array([run[method] for run in runs])
        assert study["scores"].brier(said, happened) == pytest.approx(scores["brier"][0], abs=2e-4)
        assert study["scores"].rank_auc(said, happened) == pytest.approx(scores["auc"][0], abs=5e-3)
