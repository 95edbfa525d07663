"""Errors stay readable whatever stands in the file that they are about."""

from __future__ import annotations

import pytest

from advisor.errors import LONGEST_PROBLEM, InputError

WORDS = ("9" * 100_000, "[" * 100_000, "9 " * 50_000)


@pytest.mark.parametrize("value", WORDS)
def test_a_value_of_any_length_leaves_an_error_that_is_read(value):
    error = InputError(
        f"{value!r} is no number", path="p.csv", row=2, key=value, advice=f"Write less than {value}"
    )
    assert len(str(error)) < 2000 + LONGEST_PROBLEM
    assert str(error).startswith("p.csv, row 2, key '")
    assert error.problem.endswith("is no number")
    assert "characters]" in error.problem
