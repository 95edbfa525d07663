"""The live loop on a problem that is quickly trained: what is spent is taken off the run."""

from __future__ import annotations

import pytest
from studies import modules_of

pytest.importorskip("torch")

NAMES = (
    "live",
    "live_training",
    "plan",
    "base",
    "batched",
    "train",
    "problems",
    "language_model",
)


@pytest.fixture(scope="module")
def live():
    with modules_of("economics", NAMES) as modules:
        yield modules["live"]


@pytest.mark.evidence
def test_one_loop_spends_no_more_than_its_purse(live):
    found = live.live("larger2_xs")
    assert found["steps"] == live.STEPS
    spent = 1 - found["spent"]["steps"] / live.STEPS
    assert found["methods"]["advisor"][0]["steps"] == pytest.approx(spent * live.STEPS, abs=3)
    assert found["methods"]["no pilots"][0]["steps"] == live.STEPS
    told = live.summary([found])
    assert all(one["regret"] >= 0 for one in told.values())
    assert told["advisor"]["reward"] == pytest.approx(
        found["methods"]["advisor"][0]["reward"], abs=1e-4
    )


def test_regret_is_against_the_best_of_all_methods(live):
    def problem(*rewards):
        return {
            "methods": {
                name: [{"reward": reward, "collapsed": reward < 0.1}]
                for name, reward in zip("ab", rewards, strict=True)
            }
        }

    told = live.summary([problem(0.9, 0.5), problem(0.2, 0.05)])
    assert told["a"] == {"reward": 0.55, "regret": 0.0, "collapsed": 0, "runs": 2}
    assert told["b"] == {"reward": 0.275, "regret": 0.275, "collapsed": 1, "runs": 2}
