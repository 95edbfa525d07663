"""What the study of public logs states: its scores, its hazard law, its written result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studies import STUDIES, modules_of

FOLDER = STUDIES / "public_logs"
OWN = (
    *("sources", "scores", "instability", "off_policy", "cited"),
    *("closed_form", "left_out", "drawing", "run"),
)


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


def cohort(runs: int, mae: float, crps: float, holds: float) -> dict[str, Any]:
    return {"runs": runs, "mae": mae, "crps": crps, "coverage": {"0.8": holds}}


def test_cited_forecasts_are_pooled_by_runs(
    study: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohorts = {
        "one/a": cohort(30, 0.1, 0.08, 0.8),
        "one/b": cohort(10, 0.5, 0.40, 0.4),
        "other/c": cohort(10, 0.2, 0.10, 1.0),
    }
    found = tmp_path / "backtest.json"
    found.write_text(json.dumps({"by_share": {"0.25": {"advisor": {"cohorts": cohorts}}}}))
    monkeypatch.setattr(study["cited"], "BACKTEST", found)
    table = study["cited"].forecasts()
    assert list(table) == ["all", "one", "other"]
    assert {name: row["runs"] for name, row in table.items()} == {"all": 50, "one": 40, "other": 10}
    assert table["one"]["advisor"] == {"mae": 0.2, "crps": 0.16, "80 % holds": 0.7}
    # Every cohort counted alike would say 0.267.
    assert table["all"]["advisor"]["mae"] == pytest.approx((3 + 5 + 2) / 50)


def other_result(result: dict[str, Any], *path: str, value: Any) -> dict[str, Any]:
    """The result with one number changed."""
    copy = json.loads(json.dumps(result))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def test_checks_follow_from_the_result_and_each_can_fail(
    study: dict[str, Any], result: dict[str, Any]
) -> None:
    checks, seen_otherwise = study["run"].checks, "first quarter of every run"
    assert checks(result) == result["manifest"]["checks"]
    said = result["off_policy"]["said"][seen_otherwise]
    preset = next(name for name, own in said.items() if "stable" in own)
    form, law = "closed_form", ("instability", "scores", "hazard law", "brier_less_base_rate")
    changed = [
        other_result(result, form, "rank_correlation_of_r2_and_error", value=-0.5),
        other_result(result, form, "all", "forecast_error", value=0.05),
        other_result(result, *law, value=[-0.02, -0.03, -0.01]),
        other_result(
            result,
            *("off_policy", "said", seen_otherwise, preset, "collapsed_below_half"),
            value=[1, 2],
        ),
    ]
    for number, one in enumerate(changed):
        holds = list(checks(one).values())
        wanted = list(checks(result).values())
        wanted[number] = False
        assert holds == wanted


def stated(name: str) -> list[str]:
    """Cells of the page's row that begins with a name and a Brier score."""
    (row,) = [
        line
        for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {name} | 0.")
    ]
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("hazard law", "hazard law"),
        ("hazard law, no knowledge of epochs", "the same, no knowledge of epochs"),
        ("hazard law, adapters at a tenth", "the same, an adapter's rate counted as a tenth"),
        ("logistic", "logistic"),
        ("base rate of the others", "base rate of the others"),
    ],
)
def test_the_page_says_what_the_probabilities_of_single_runs_score(
    result: dict[str, Any], method: str, name: str
) -> None:
    runs = result["instability"]["runs"]
    said = np.array([run[method] for run in runs])
    happened = np.array([run["label"] == "collapse" for run in runs])
    above = said[happened][:, None] - said[~happened]
    auc = np.mean(above > 0) + 0.5 * np.mean(above == 0)
    _, brier, _, _, rank = stated(name)
    assert np.mean((said - happened) ** 2) == pytest.approx(float(brier), abs=2e-4)
    assert auc == pytest.approx(float(rank.split()[0]), abs=6e-3)
    # Of other runs the same probabilities would score otherwise.
    elsewhere = np.roll(happened, 40)
    assert abs(np.mean((said - elsewhere) ** 2) - float(brier)) > 2e-4


def test_the_page_counts_runs_once_and_names_their_repositories(result: dict[str, Any]) -> None:
    runs = result["instability"]["runs"]
    collapsed = sum(run["label"] == "collapse" for run in runs)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len({run["id"] for run in runs}) == len(runs)
    assert (
        f"{len(runs)} runs of {len({run['repository'] for run in runs})} repositories could be "
        f"asked, {collapsed} of the {result['asked']['collapsed']} collapses"
    ) in page
