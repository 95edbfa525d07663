"""Size transfer: its own estimates by hand, its checks on answers made up, and one tiny study."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "case_studies" / "size_transfer"


@pytest.fixture(scope="module", autouse=True)
def beside() -> Any:
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def measure(beside: None) -> Any:
    return importlib.import_module("measure")


@pytest.fixture(scope="module")
def judge(beside: None) -> Any:
    return importlib.import_module("judge")


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
        "says_not_piloted": True,
    }
    return own | updates


RUNS = [full_run(1e-4, 0.9), full_run(1e-4, 0.7, seed=1), full_run(1e-3, 0.5)]


def result(judge: Any, *advice: dict[str, Any]) -> dict[str, Any]:
    told = [judge.judged(one, RUNS) for one in advice]
    return {
        "advice": told,
        "exponents": {
            "learned_on_all_tasks": {
                "s": {"curvature_exponent": [5.0, 6.0, 7.0]},
                "xs+s": {"curvature_exponent": [0.1, 0.4, 0.7]},
            },
            "measured_on_full_runs": {"speed": {"pooled": [0.4, 0.5, 0.6]}},
        },
    }


def test_regret_is_against_the_best_mean_of_its_target(judge: Any) -> None:
    told = judge.judged(answer(), [*RUNS, full_run(3e-4, 1.0, size="xl")])
    assert told["regret"] == pytest.approx(0.3)
    assert told["regret_of_best_pilot"] == 0
    assert told["regret_at_random"] == pytest.approx(0.15)
    assert (told["failed"], told["inside"], told["warned"]) == (True, True, True)


def test_a_request_without_an_answer_counts(judge: Any) -> None:
    silent = {"task": "sort", "target": "m", "kind": "no fit", "best_pilot_rate": 1e-4}
    told = judge.judged(silent, RUNS)
    assert told["warned"]
    assert "regret" not in told
    found = result(judge, answer()) | {"advice": [told]}
    assert not judge.checks(found)["every request was answered"]


WORDS = "the words 'outside the evidence' tell failures apart"


def answers_that_name(judge: Any, *said: tuple[float, bool, bool]) -> list[dict[str, Any]]:
    """Answers by rate, whether it failed, and whether they called themselves outside."""
    told = judge.judged(answer(), RUNS)
    return [
        told | {"learning_rate": rate, "failed": failed, "says_outside": outside}
        for rate, failed, outside in said
    ]


def test_a_warning_that_every_answer_carries_tells_nothing(judge: Any) -> None:
    apart = answers_that_name(judge, *((float(n), n < 4, n < 4) for n in range(10)))
    assert judge.checks(result(judge) | {"advice": apart})[WORDS]
    always = [one | {"says_outside": True} for one in apart]
    assert not judge.checks(result(judge) | {"advice": always})[WORDS]
    silent = [one | {"says_outside": not one["failed"]} for one in apart]
    assert not judge.checks(result(judge) | {"advice": silent})[WORDS]


def test_answers_that_name_one_configuration_count_once(judge: Any) -> None:
    name = "80 % intervals hold at least 70 %, each trained configuration counted once"
    one, other = answers_that_name(judge, (1.0, False, False), (2.0, True, True))
    advice = [one | {"inside": True}] * 9 + [other | {"inside": False}]
    found = result(judge) | {"advice": advice}
    behind = judge.counted(advice)
    assert (behind["answers"], behind["runs"], behind["worlds"]) == (10, 2, 1)
    assert behind["failed_runs"] == 1
    assert not judge.checks(found)[name]
    assert judge.checks(found | {"advice": advice[:-1]})[name]


def test_collapses_refute_what_was_said_of_them(judge: Any) -> None:
    name = "no more configurations collapsed than P(stable) allows"
    told = answers_that_name(judge, *((float(n), False, False) for n in range(13)))

    def holds(collapsed: int) -> bool:
        advice = [one | {"collapsed": n < collapsed} for n, one in enumerate(told)]
        return judge.checks(result(judge) | {"advice": advice})[name]

    # Of thirteen configurations at 0.95 three may collapse once in thirty-six times: by hand.
    chances = [math.comb(13, k) * 0.05**k * 0.95 ** (13 - k) for k in range(14)]
    assert judge.counted(told)["collapses_that_refute"] == 3
    assert sum(chances[3:]) < 0.05 < sum(chances[2:])
    assert holds(2)
    assert not holds(3)


def test_a_collapse_is_a_failure_whatever_its_reward(judge: Any) -> None:
    runs = [*RUNS, full_run(3e-4, 0.8, collapse_step=70.0)]
    told = judge.judged(answer(learning_rate=3e-4), runs)
    assert told["regret"] < judge.FAILURE
    assert told["failed"]
    outside, inside = judge.by_warning([told, judge.judged(answer(says_outside=False), RUNS)])
    assert (outside["n"], outside["collapsed"], inside["n"], inside["collapsed"]) == (1, 1, 1, 0)


def test_a_learned_exponent_is_held_against_the_measured_one(judge: Any) -> None:
    name = "the 80 % interval of every exponent learned from two sizes holds the measured one"
    found = result(judge, answer())
    assert judge.checks(found)[name]
    found["exponents"]["measured_on_full_runs"]["speed"]["pooled"] = [0.7, 0.8, 0.9]
    assert not judge.checks(found)[name]
    found["exponents"]["measured_on_full_runs"]["speed"]["pooled"] = None
    assert not judge.checks(found)[name]


def test_the_best_rate_is_the_top_of_a_parabola(measure: Any) -> None:
    top = 2e-4
    finals = {r: 0.9 - 0.1 * math.log(r / top) ** 2 for r in (3e-5, 1e-4, 3e-4, 1e-3)}
    assert measure.best_rate(finals) == pytest.approx(top)
    assert measure.best_rate({1e-4: 0.9, 3e-4: 0.5, 1e-3: 0.1}) == 1e-4


def test_the_speed_of_an_exponential_is_its_rate(measure: Any) -> None:
    steps = np.arange(100)
    for rate in (0.01, 0.05):
        rewards = 1 - 0.9 * np.exp(-rate * steps)
        assert measure.speed(rewards, 0.1) == pytest.approx(rate, rel=0.05)
    assert measure.speed([0.1] * 100, 0.1) is None


def test_slope_within_groups(measure: Any) -> None:
    x = np.arange(6.0)
    jumbled = np.random.default_rng(0).normal(0, 0.01, 6)
    points = [("a", *both) for both in zip(x, 2 * x + jumbled, strict=True)]
    points += [("b", *both) for both in zip(x, 2 * x - 50 + jumbled, strict=True)]
    low, estimate, high = measure.slope(points)
    assert low < estimate < high
    assert estimate == pytest.approx(2, abs=0.02)
    assert measure.slope(points[:2]) is None


def test_a_tiny_study_from_pilots_to_figure(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", "--quick", "--out", out],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"found.json", "found.svg"}
    found = json.loads(out.read_text(encoding="utf-8"))
    finals = {run["learning_rate"]: run["final"] for run in found["runs"] if run["size"] == "m"}
    assert len(finals) == 2
    (told,) = found["advice"]
    assert told["regret"] == pytest.approx(max(finals.values()) - told["final"], abs=1e-4)
    # The target is four times the larger pilot: not far, but not piloted either.
    assert told["says_not_piloted"]
    assert not told["says_outside"]
    learned = found["exponents"]["learned_on_all_tasks"]["xs+s"]["curvature_exponent"]
    assert learned == sorted(learned)
    assert found["manifest"]["checks"]["every request was answered"]
