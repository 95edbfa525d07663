"""Budgets in steps, completions or GPU-hours, and what cannot be one."""

from __future__ import annotations

from typing import Any

import pytest
from decisions import timed
from hypothesis import given
from hypothesis import strategies as st

from advisor.advice import Budget, CostModel, Request, advise
from advisor.errors import InputError
from advisor.runs import PartialSettings, Settings

MOST_STEPS = 1_000_000


@st.composite
def configurations(draw: Any) -> Settings:
    return PartialSettings(
        learning_rate=1e-4,
        group_size=draw(st.integers(2, 128)),
        prompts_per_step=draw(st.floats(0.5, 512)),
        minibatches_per_refresh=draw(st.integers(1, 8)),
        epochs_per_refresh=draw(st.integers(1, 4)),
    ).completed()


@st.composite
def prices(draw: Any) -> CostModel:
    return CostModel(
        fixed=draw(st.floats(0.1, 100)),
        generated=draw(st.floats(0, 1)),
        trained=draw(st.floats(0, 1)),
        gpus=draw(st.integers(1, 64)),
        source="made up",
    )


def test_steps_of_a_budget_worked_out_by_hand():
    settings = PartialSettings(
        learning_rate=1e-6, group_size=8, prompts_per_step=16, epochs_per_refresh=2
    ).completed()
    price = CostModel(fixed=2.0, generated=0.25, trained=0.125, gpus=4, source="made up")
    assert Budget(steps=70).steps_of(settings, price) == 70
    # 128 completions are trained on, 64 of them generated for every step.
    assert Budget(completions=6400.0).steps_of(settings, price) == 100
    assert Budget(completions=6399.0).steps_of(settings, price) == 98
    assert Budget(steps=71).steps_of(settings, price) == 70
    assert Budget(completions=63.0).steps_of(settings, price) == 0
    # 2 s + 64 x 0.25 s + 128 x 0.125 s = 34 s on four GPUs.
    assert price.seconds_per_step(settings) == 34
    assert Budget(gpu_hours=4 * 3400.5 / 3600).steps_of(settings, price) == 100
    assert Budget(gpu_hours=4 * 3399.5 / 3600).steps_of(settings, price) == 98


@given(configurations(), prices(), st.floats(0.1, 1e4))
def test_gpu_hours_are_spent_but_for_the_rest_of_a_batch_of_rollouts(settings, price, hours):
    steps = Budget(gpu_hours=hours).steps_of(settings, price)
    assert price(settings, steps).gpu_hours <= hours * (1 + 1e-9)
    more = steps + (settings.refresh_interval if steps else 1)
    assert price(settings, more).gpu_hours > hours * (1 - 1e-9) or more > MOST_STEPS


BAD = [
    (
        {"steps": 5, "completions": 9.0},
        "completions and steps were given",
        "steps, batches, complet",
    ),
    (
        {"gpu_hours": 5.0, "completions": 9.0},
        "completions and gpu_hours were",
        "steps, batches, compl",
    ),
    ({"steps": 0}, "0 cannot be", "steps"),
    ({"steps": -5}, "-5 cannot be", "steps"),
    ({"steps": MOST_STEPS + 1}, "1000001 cannot be", "steps"),
    ({"batches": 0}, "0 cannot be", "batches"),
    ({"completions": 0.0}, "0.0 cannot be", "completions"),
    ({"completions": float("nan")}, "nan cannot be", "completions"),
    ({"gpu_hours": 0.0}, "0.0 cannot be", "gpu_hours"),
    ({"gpu_hours": -1.0}, "-1.0 cannot be", "gpu_hours"),
]


@pytest.mark.parametrize(("given", "problem", "key"), BAD)
def test_budget_that_is_none_is_refused(posterior, given, problem, key):
    for refuse in (lambda: Request(**given), lambda: advise(posterior, **given)):
        with pytest.raises(InputError, match=problem) as caught:
            refuse()
        assert caught.value.argument.startswith(key)
        assert caught.value.advice


def test_gpu_hours_without_step_times_are_refused_before_anything_is_tried(posterior, tmp_path):
    with pytest.raises(InputError, match="no pilot logged its step times") as caught:
        advise(posterior, gpu_hours=10.0, storage=f"sqlite:///{tmp_path}/studies.db")
    assert caught.value.argument == "gpu_hours"
    assert "`seconds_per_step`" in caught.value.advice
    # Optuna shows every error inside a trial with its traceback, and keeps the broken study.
    assert not list(tmp_path.iterdir())


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("given", "spent"), [({"completions": 40_000.0}, "completions"), ({"gpu_hours": 2.0}, "hours")]
)
def test_advice_stays_within_its_budget(given, spent):
    found = advise(timed(), **given, trials=60)
    name, most = next(iter(given.items()))
    batch = found.settings.prompts_per_step * found.settings.group_size
    one_more = found.cost_model(found.settings, found.steps + 1)
    assert getattr(found.cost, name) <= most < getattr(one_more, name)
    assert found.settings.planned_steps == found.steps
    assert found.cost.completions == pytest.approx(
        found.steps * batch / found.settings.epochs_per_refresh
    )
    for other in (*found.alternatives, *found.recipes, found.best_piloted):
        assert getattr(other.cost, name) <= most
    assert spent in found.text
