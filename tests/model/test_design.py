"""Design check: every verdict flips when the one run that causes it is changed."""

from __future__ import annotations

import zlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from simulated_runs import (
    Plan,
    made_up_posterior,
)

from advisor.findings.text import ALIASED, FACTORS, SIZE, design_check
from advisor.model.parameters import LAWS
from advisor.model.posterior import MIN_SIZES
from advisor.model.run_fit import informed_share

RATES = (1e-4, 3e-4, 1e-3, 3e-3)


def checks(*plans):
    return {check.factor: check for check in design_check(made_up_posterior(plans, draws=3).meta)}


def test_crossed_factors_are_varied():
    found = checks(*(Plan(rate, group) for rate in RATES for group in (4, 16)))
    rate, group = found["learning rate"], found["group size"]
    assert (rate.verdict, rate.values, rate.aliased_with) == ("varied", RATES, ())
    assert (group.verdict, group.values) == ("varied", (4.0, 16.0))
    assert rate.text == "learning rate: varied, 4 values from 1e-4 to 3e-3"


def test_factors_come_in_the_order_that_is_stated():
    assert list(checks(Plan(), Plan(1e-3))) == [*FACTORS.values(), SIZE]


def test_what_never_changed_is_the_priors():
    found = checks(*(Plan(rate) for rate in RATES))
    assert found["group size"].text == (
        "group size: not varied (8): its exponent is the prior's word"
    )
    for factor in (*FACTORS.values(), SIZE):
        assert (found[factor].verdict == "varied") == (factor == "learning rate")


def test_a_change_within_rounding_is_none():
    assert checks(Plan(prompts=16.0), Plan(prompts=16.5))["prompts per step"].verdict == (
        "not varied"
    )
    assert checks(Plan(prompts=16.0), Plan(prompts=20.0))["prompts per step"].verdict == "varied"


def test_constant_product_is_an_alias_until_one_run_breaks_it():
    kept = [Plan(group_size=group, prompts=128 / group) for group in (4, 8, 16)]
    found = checks(*kept)
    assert found["prompts per step"].text == (
        "prompts per step: aliased with group size (their product never changes)"
    )
    assert found["group size"].aliased_with == ("prompts per step",)
    broken = checks(*kept, Plan(group_size=4, prompts=8))
    assert broken["prompts per step"].verdict == broken["group size"].verdict == "varied"


def test_constant_ratio_is_named_as_such():
    found = checks(*(Plan(group_size=group, prompts=2 * group) for group in (4, 8, 16)))
    assert found["group size"].detail == "their ratio never changes"


def test_factor_that_two_others_make_up_is_aliased_with_both():
    plans = [
        Plan(rate, group, prompts=16 * (rate / 1e-4) * (group / 4))
        for rate, group in ((1e-4, 4), (1e-4, 16), (4e-4, 4), (4e-4, 16))
    ]
    assert checks(*plans)["prompts per step"].aliased_with == ("learning rate", "group size")
    plans.append(Plan(4e-4, 16, prompts=16))
    assert checks(*plans)["prompts per step"].verdict == "varied"


def test_near_alias_is_judged_by_its_correlation():
    def found(jitter):
        rng = np.random.default_rng(zlib.crc32(b"near alias"))
        logs = np.linspace(0, 3, 12)
        other = logs + jitter * rng.standard_normal(logs.size)
        runs = [
            Plan(1e-4 * np.exp(a), prompts=8 * np.exp(b)) for a, b in zip(logs, other, strict=True)
        ]
        return abs(np.corrcoef(logs, other)[0, 1]), checks(*runs)["learning rate"].verdict

    near, far = found(0.2), found(0.7)
    assert near[0] > ALIASED > far[0]
    assert (near[1], far[1]) == ("aliased", "varied")


def sized(*settings):
    return [
        Plan(rate, model=f"m{size:g}", parameters=size, task=task) for rate, size, task in settings
    ]


def test_rate_scaled_with_size_tells_neither():
    plans = sized((4e-4, 1e5, "sort"), (2e-4, 2e5, "sort"), (1e-4, 4e5, "sort"))
    found = checks(*plans)
    assert found["learning rate"].aliased_with == (SIZE,)
    assert found[SIZE].aliased_with == ("learning rate",)
    # One more learning rate within one model tells the rate, and with it the size.
    freed = checks(*plans, replace(plans[0], learning_rate=1e-4))
    assert freed["learning rate"].verdict == freed[SIZE].verdict == "varied"


def test_rate_that_differs_between_models_of_one_size_is_aliased_with_the_model():
    plans = [Plan(1e-4, model="a"), Plan(1e-3, model="b")]
    assert checks(*plans)["learning rate"].aliased_with == ("model",)


def test_rate_that_differs_between_tasks_is_aliased_with_the_task():
    plans = sized((1e-4, 1e5, "sort"), (1e-4, 4e5, "sort"), (1e-3, 1e5, "add"), (1e-3, 4e5, "add"))
    assert checks(*plans)["learning rate"].aliased_with == ("task",)


def test_rate_of_each_pair_is_aliased_with_the_pair():
    plans = sized((1e-4, 1e5, "sort"), (1e-3, 4e5, "sort"), (1e-3, 1e5, "add"), (1e-4, 4e5, "add"))
    assert checks(*plans)["learning rate"].aliased_with == ("the pair of task and model",)


def test_size_that_goes_with_the_task_tells_nothing():
    confounded = sized((1e-4, 1e5, "sort"), (1e-3, 1e5, "sort"), (1e-4, 4e5, "add"))
    found = checks(*confounded)[SIZE]
    assert found.aliased_with == ("task",)
    assert "no task was piloted at two sizes" in found.text
    crossed = checks(*confounded, *sized((1e-4, 4e5, "sort")))[SIZE]
    assert crossed.verdict == "varied"


@pytest.mark.parametrize("sizes", [MIN_SIZES - 1, MIN_SIZES])
def test_few_sizes_leave_the_curvature_exponent_to_the_prior(sizes):
    plans = sized(*((rate, 1e5 * 2**n, "sort") for n in range(sizes) for rate in RATES[:2]))
    found = checks(*plans)[SIZE]
    assert found.verdict == "varied"
    assert ("curvature exponent is prior-dominated" in found.text) == (sizes < MIN_SIZES)


@pytest.mark.parametrize(("step", "verdict"), [(12, "not varied"), (40, "varied")])
def test_a_run_that_collapsed_at_once_varies_nothing(step, verdict):
    found = checks(Plan(1e-4), replace(Plan(1e-4, prompts=32)), Plan(1e-2, collapse=step))
    assert found["learning rate"].verdict == verdict
    assert found["prompts per step"].verdict == "varied"
    assert ("not counted, collapsed at once: 0.01" in found["learning rate"].text) == (step == 12)


def test_nothing_is_told_where_every_run_collapsed_at_once():
    found = checks(Plan(1e-3, collapse=6), Plan(1e-2, collapse=7))
    assert {check.verdict for check in found.values()} == {"not varied"}
    assert all(check.values == () for check in found.values())
    assert found["learning rate"].text == (
        "learning rate: not varied: its exponent is the prior's word "
        "(not counted, collapsed at once: 1e-3, 0.01)"
    )


@pytest.mark.evidence
def test_check_works_from_a_saved_posterior(tmp_path):
    posterior = made_up_posterior()
    posterior.save(tmp_path / "posterior.nc")
    assert design_check(type(posterior).load(tmp_path / "posterior.nc").meta) == design_check(
        posterior.meta
    )


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


def test_informed_share_covers_every_term_of_the_laws():
    share = informed_share(made_up_posterior(moved={"rate.group_size": 0.4}))
    terms = {f"{law}.{term}" for law, names in LAWS.items() for term in names}
    assert set(share) == terms | {"curvature_exponent"}
    assert share["rate.group_size"] == 1.0
    assert share["rate.learning_rate"] < 1.0
