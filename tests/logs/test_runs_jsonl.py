"""One run per line."""

from __future__ import annotations

import re

import pytest

from advisor.errors import InputError
from advisor.runs import read_runs

OWN = {"id": "mine", "learning_rate": 1e-3, "group_size": 4, "reward": [0.1, 0.2, 0.3]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": [0.1, "x"]}, r"row 2, key 'reward': the reward of this row is 'x'"),
        ({"step": [2, 1.5, 3]}, r"row 2, key 'step': .*not a whole number"),
        ({"group_size": -4}, r"row 2, key 'group_size': -4 is not allowed"),
        ({"learning_rate": "fast"}, r"row 2, key 'learning_rate': 'fast' is not allowed"),
    ],
)
def test_bad_lines_are_named(write, change, message):
    bad = {key: value for key, value in (OWN | change).items() if key != "id"}
    path = write("a.jsonl", [OWN, bad])
    with pytest.raises(InputError, match=message) as caught:
        read_runs(path)
    assert caught.value.path == str(path)
    assert caught.value.advice


WITHOUT_A_CURVE = [
    ([], r"row 2, key 'reward': (run '.*': )?no row has a reward"),
    ([None, None], r"row 2, key 'reward': (run '.*': )?no row has a reward"),
    (0.5, r"row 2, key 'reward': (run '.*': )?no row has a reward"),
    ([[1], 2], r"row 2, key 'reward': run 'a:2' has only 1 row"),
    ([float("nan"), float("inf")], r"row 2, .*2 of 2 rewards are NaN, infinite"),
    ([0.1, float("nan"), 0.2], r"run 'a:2' has only 2 rows with a finite reward"),
    ([0.1, 0.2], r"row 2, key 'reward': run 'a:2' has only 2 rows with a reward. Lo"),
    ([0.1, None, None], r"row 2.* only 1 row with a reward"),
]


@pytest.mark.parametrize(("reward", "why"), WITHOUT_A_CURVE)
def test_a_run_without_a_curve_is_left_out_beside_others(write, reward, why):
    bad = OWN | {"id": None, "reward": reward}
    path = write("a.jsonl", [OWN, bad, OWN | {"id": "other", "reward": [0.1, 0.3, 0.4]}])
    runs = read_runs(path)
    assert [run.id for run in runs] == ["mine", "other"]
    (line,) = runs[0].left_out
    assert re.search(why, line)
    assert not runs[1].left_out
    with pytest.raises(InputError, match="reward"):
        read_runs(write("b/a.jsonl", [bad | {"id": "x"}, bad | {"id": "y"}]))
