"""Kept forecasts are scored over all runs and by group of tasks; the front page agrees."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from studies import STUDIES, modules_of

FOLDER = STUDIES / "language_model"
INDEX = STUDIES.parent / "docs" / "index.md"


@pytest.fixture(scope="module")
def compared() -> Iterator[Any]:
    with modules_of("language_model", ("compared",)) as found:
        yield found["compared"]


def test_runs_beside_the_pilots_are_judged_by_the_difference_of_tasks():
    """Control: a fit that was refused counts neither with them nor without."""
    rows = [
        {"task": name, "forecasts": 5, "crps": pair}
        for name, pair in (("a", [0.2, 0.1]), ("b", [0.3, 0.4]), ("c", [0.4, 0.1]), ("d", None))
    ]
    with modules_of("language_model", ("pooling",)) as found:
        told = found["pooling"].summary(rows)
    assert (told["tasks"], told["alone"], told["beside"]) == (3, 0.3, 0.2)
    assert told["difference"] == -0.1
    assert told["standard_error"] == pytest.approx(0.1155, abs=1e-4)


def test_a_difference_has_its_mean_and_its_standard_error_over_tasks(compared):
    told = compared.difference({"a": 0.1, "b": 0.4, "c": 0.1}, {"a": 0.2, "b": 0.3, "c": 0.4})
    assert told["advisor"] == 0.2
    assert told["other"] == 0.3
    assert told["difference"] == -0.1
    assert told["standard_error"] == pytest.approx(0.1155, abs=1e-4)


@pytest.mark.evidence
def test_the_result_is_that_of_the_kept_forecasts(compared):
    result = json.loads((FOLDER / "compared.json").read_text(encoding="utf-8"))
    assert compared.loop_differences() == result["loop"]
    for kind, (name, _) in compared.KEPT.items():
        for group, part in compared.groups(compared.kept(name)).items():
            assert compared.with_and_without_deaths(part) == result[kind]["piloted"][group]


def test_the_front_page_has_the_forecasts_and_outcomes_of_its_cases():
    text = INDEX.read_text(encoding="utf-8")
    tasks = json.loads((FOLDER / "loop.json").read_text(encoding="utf-8"))["tasks"]
    of = {one["task"]: one["said"]["interval"] for one in tasks}
    stated = re.findall(r"redicted (\d\.\d\d) \[(\d\.\d\d), (\d\.\d\d)\]", text)
    assert stated == [
        (f"{middle:.2f}", f"{low:.2f}", f"{high:.2f}")
        for low, middle, high in (of["sums"], of["json"], of["reversed"], of["count"])
    ]
    ends = {
        one["task"]: [run["reward"] for run in one["methods"]["advisor"]["runs"]] for one in tasks
    }
    assert all(f"{end:.2f}" in text for end in ends["sums"])
    for task in ("json", "reversed", "count"):
        assert f"Six runs ended at {min(ends[task]):.2f} to {max(ends[task]):.2f}" in text
        assert len(ends[task]) == 6


def test_the_front_page_counts_public_runs_as_they_were_forecast():
    path = STUDIES / "real_runs" / "pool.predictions.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    rows = [one for one in found if (one["folder"], one["share"]) == ("third_real_logs", 0.25)]
    shares = [
        one
        for one in rows
        if min(*one["quantiles"], one["target"]) >= 0 and max(*one["quantiles"], one["target"]) <= 1
    ]
    text = " ".join(INDEX.read_text(encoding="utf-8").split())
    held, of_all = (
        sum(one["quantiles"][1] <= one["target"] <= one["quantiles"][5] for one in part)
        for part in (shares, rows)
    )
    assert f"The {len(shares)} of {len(rows)} whose rewards lie between 0 and 1: {held} out" in text
    assert f"Of all {len(rows)} runs {of_all} are inside" in text
