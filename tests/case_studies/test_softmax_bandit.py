"""The bandit of the case study: its own arithmetic, and one threshold of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from studies import modules_of

from advisor.theory import stiffness_limit


@pytest.fixture(scope="module")
def study() -> Any:
    with modules_of("softmax_bandit", ("simulator",)) as found:
        yield found["simulator"]


def test_sampled_gradient_is_the_expected_one_on_average(study: Any) -> None:
    bandit, rng = study.Bandit(), np.random.default_rng(0)
    logits = 0.5 * bandit.fixed_point()

    def mean(scaling: str) -> Any:
        plan = study.Plan(0.1, groups=2000, group_size=4, scaling=scaling)
        batches = [study._draw(bandit, plan, logits, rng) for _ in range(40)]
        each = [study._gradient(bandit, plan, logits, logits, batch) for batch in batches]
        return np.mean(each, axis=0)

    assert mean("leave_one_out") == pytest.approx(bandit.field_at(logits), abs=2e-3)
    # Centred on one's own group (G - 1) / G of the reward's drift is left: the control differs.
    assert np.abs(mean("none") - bandit.field_at(logits)).max() > 5e-3


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
