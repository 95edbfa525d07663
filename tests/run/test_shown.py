"""Words that are shown with a number."""

from __future__ import annotations

import pytest

from advisor.text import counted


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "run", "0 runs"),
        (1, "run", "1 run"),
        (2, "run", "2 runs"),
        (1, "process", "1 process"),
        (2, "process", "2 processes"),
        (2, "epoch", "2 epochs"),
        (2, "mini-batch", "2 mini-batches"),
        (1, "batch", "1 batch"),
    ],
)
def test_one_thing_has_no_plural(number, noun, said):
    assert counted(number, noun) == said
