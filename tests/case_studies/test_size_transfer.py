"""Size transfer: its own estimates by hand, its checks on answers made up, and one tiny study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from processes import python
from studies import STUDIES, modules_of

FOLDER = STUDIES / "size_transfer"


@pytest.fixture(scope="module")
def judge() -> Any:
    with modules_of("size_transfer", ("judge",)) as found:
        yield found["judge"]


def full_run(rate: float, final: float, **updates: Any) -> dict[str, Any]:
    own = {"task": "sort", "size": "m", "parameters": 1e5, "seed": 0, "base": 0.1}
    own |= {"collapse_step": None}
    return own | {"learning_rate": rate, "final": final, "reward": [0.1] * 20} | updates


def answer(**updates: Any) -> dict[str, Any]:
    own = {
        "task": "sort",
        "pilots": "xs+s",
        "draw": 1,
        "target": "m",
        "factor": 10.0,
        "kind": "recommendation",
        "learning_rate": 1e-3,
        "best_pilot_rate": 2e-4,
        "p_stable": 0.95,
        "reward": {"mean": 0.6, "lower": 0.4, "upper": 0.8},
        "says_outside": True,
    }
    return own | updates


RUNS = [full_run(1e-4, 0.9), full_run(1e-4, 0.7, seed=1), full_run(1e-3, 0.5)]


def test_regret_is_against_the_best_mean_of_its_target(judge: Any) -> None:
    told = judge.judged(answer(), [*RUNS, full_run(3e-4, 1.0, size="xl")])
    assert told["regret"] == pytest.approx(0.3)
    assert told["regret_of_best_pilot"] == 0
    assert (told["failed"], told["inside"]) == (True, True)


def test_a_collapse_is_a_failure_whatever_its_reward(judge: Any) -> None:
    runs = [*RUNS, full_run(3e-4, 0.8, collapse_step=70.0)]
    told = judge.judged(answer(learning_rate=3e-4), runs)
    assert told["regret"] < judge.FAILURE
    assert told["failed"]
    both = judge.counted([told, judge.judged(answer(says_outside=False), RUNS)])
    assert (both["runs"], both["failed_runs"], both["collapsed_runs"]) == (2, 2, 1)
    assert (both["outside_runs"], both["failed_outside_runs"]) == (1, 1)


def test_a_tiny_study_from_pilots_to_figure(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "found.json"
    done = python(FOLDER / "run.py", "--quick", "--out", out, timeout=300)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"found.json", "found.svg"}
    found = json.loads(out.read_text(encoding="utf-8"))
    finals = {run["learning_rate"]: run["final"] for run in found["runs"] if run["size"] == "m"}
    assert len(finals) == 2
    (told,) = found["advice"]
    assert told["regret"] == pytest.approx(max(finals.values()) - told["final"], abs=1e-4)
    assert not told["says_outside"]  # the target is four times the larger pilot
    learned = found["exponents"]["learned_on_all_tasks"]["xs+s"]["curvature_exponent"]
    assert learned == sorted(learned)
