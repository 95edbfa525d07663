"""A user's own constraint: what may be chosen, by what is predicted of it."""

from __future__ import annotations

import pytest
from simulated_runs import made_up_posterior

import advisor
from advisor.errors import InputError


@pytest.fixture(scope="module")
def posterior():
    return made_up_posterior(draws=50)


def advised(posterior, **named):
    few = {"learning_rates": (1e-4, 3e-4, 1e-3), "group_sizes": (8, 16), "trials": 20}
    return advisor.advise(posterior, steps=90, weigh_pilots=False, **few, **named)


def test_it_sees_what_is_predicted(posterior):
    seen = []

    def constraint(said):
        seen.append(said)
        return said.final_train_reward.quantile(0.1, "draw") > 0

    advised(posterior, constraint=constraint)
    for said in seen:
        assert {"train_reward", "final_train_reward", "is_stable"} <= set(said.data_vars)
    # Whole batches of rollouts: those of larger K end before step 90.
    ends = sorted(int(said.step[-1]) for said in seen)
    assert ends[-1] == 90
    assert len(set(ends)) == len(ends) > 1


@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        (lambda said: said.learning_rate < 0, "none of the .* configurations meets"),
        (lambda _: True, r"the constraint gives shape \(\) for"),
    ],
)
def test_what_cannot_be_is_named(posterior, constraint, problem):
    with pytest.raises(InputError, match=problem):
        advised(posterior, constraint=constraint)
