"""The bandit of the case study: its own arithmetic, and one threshold of each kind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.theory import stiffness_limit

FOLDER = Path(__file__).parents[2] / "case_studies" / "softmax_bandit"


@pytest.fixture(scope="module")
def study() -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        import simulator
    finally:
        sys.path.remove(str(FOLDER))
    return simulator


def test_sampled_gradient_is_the_expected_one_on_average(study: Any) -> None:
    bandit = study.Bandit()
    logits = 0.5 * bandit.fixed_point()
    plan = study.Plan(0.1, groups=2000, group_size=4, scaling="leave_one_out")
    rng = np.random.default_rng(0)
    found = np.mean(
        [
            study._gradient(bandit, plan, logits, logits, study._draw(bandit, plan, logits, rng))
            for _ in range(40)
        ],
        axis=0,
    )
    assert found == pytest.approx(bandit.field_at(logits), abs=2e-3)
    # Centred on one's own group (G - 1) / G of the reward's drift is left: the control differs.
    biased = study.Plan(0.1, groups=2000, group_size=4)
    other = np.mean(
        [
            study._gradient(
                bandit, biased, logits, logits, study._draw(bandit, biased, logits, rng)
            )
            for _ in range(40)
        ],
        axis=0,
    )
    assert np.abs(other - bandit.field_at(logits)).max() > 5e-3


@pytest.mark.parametrize(("share", "diverges"), [(0.97, False), (1.03, True)])
@pytest.mark.parametrize(("momentum", "cycles"), [(0.0, 0), (0.9, 1)])
def test_held_samples_diverge_at_the_limit_of_the_map(
    study: Any, share: float, diverges: bool, momentum: float, cycles: int
) -> None:
    bandit = study.Bandit()
    limit = float(stiffness_limit(momentum, 4, 1.0, 4 * cycles))
    rate = share * limit / bandit.curvatures()[0]
    start = bandit.fixed_point() + 1e-6 * bandit.stiffest()
    path = study.train(bandit, study.Plan(rate, momentum, 4, cycles), start, 1500)
    last = np.linalg.norm(path[-200:] - bandit.fixed_point(), axis=1).max()
    assert (last > 1e-6) == diverges
