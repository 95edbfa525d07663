"""One run per line."""

from __future__ import annotations

import pytest

from advisor.errors import InputError
from advisor.runs import read_runs

OWN = {"id": "mine", "learning_rate": 1e-3, "group_size": 4, "reward": [0.1, 0.2, 0.3]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": []}, r"row 2, key 'reward': no row has a reward"),
        ({"reward": [None, None]}, r"row 2, key 'reward': no row has a reward"),
        ({"reward": 0.5}, r"row 2, key 'reward': no row has a reward"),
        ({"reward": [0.1, "x"]}, r"row 2, key 'reward': the reward of this row is 'x'"),
        ({"reward": [[1], 2]}, r"row 2, key 'reward': .*only 1 row"),
        ({"reward": [float("nan"), float("inf")]}, r"row 2.*2 of 2 rewards are NaN, infinite"),
        (
            {"reward": [0.1, 0.2]},
            r"row 2, key 'reward': run 'a:2' has only 2 rows with a reward. Lo",
        ),
        ({"reward": [0.1, None, None]}, r"row 2.* only 1 row with a reward"),
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
