"""How much of its prior's variance each exponent lost to the pilots."""

from __future__ import annotations

from itertools import pairwise

import pytest
from simulated_runs import made_up_posterior

from advisor.model import informed_share


def test_informed_share_is_what_the_width_leaves():
    found = [
        informed_share(made_up_posterior(width=width, draws=4000, is_prior=True))
        for width in (0.1, 0.5, 1.0)
    ]
    for share, width in zip(found, (0.1, 0.5, 1.0), strict=True):
        # The variance of 8,000 draws has a relative sd of sqrt(2 / 8,000) = 0.016.
        assert list(share.values()) == pytest.approx(
            [1 - width**2] * len(share), abs=5 * 0.016 * width**2
        )
    assert all(a[name] > b[name] for a, b in pairwise(found) for name in a)
