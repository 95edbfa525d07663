"""Peak, schedule and warm-up from a logged series."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.runs import read_runs
from advisor.runs.logs.recovered import infer_schedule
from advisor.theory import schedule_factors

IN_WARMUP = "the log stops within the warm-up, at a learning rate of"


def logged(kind: str, planned: int, warmup: int, every: int, until: int, after: bool):
    """A series as transformers logs it: the rate used, or (older) the one after the step."""
    factors = schedule_factors(kind, planned + 1, warmup_steps=warmup, planned_steps=planned)
    step = np.arange(every, until + 1, every)
    return step.astype(float), 4e-5 * factors[step if after else step - 1]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("every", [1, 5, 10])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("kind", "warmup"), [("linear", 0), ("linear", 20), ("cosine", 25)])
def test_schedules_are_recognised(kind, warmup, every, known, after):
    step, rate = logged(kind, 200, warmup, every, 200, after)
    found = infer_schedule(step, rate, 200 if known else None)
    assert found.kind == kind
    assert found.peak == pytest.approx(4e-5, rel=0.01)
    # Rows far apart leave the warm-up open by about one window.
    assert found.warmup_steps == pytest.approx(warmup, abs=every)
    if not known and found.planned_steps is not None:
        assert found.planned_steps == pytest.approx(200, abs=3)


def test_a_warm_up_to_a_constant():
    step, rate = logged("constant", 100, 10, 1, 60, after=False)
    found = infer_schedule(step, rate, 100)
    assert (found.kind, found.warmup_steps) == ("constant", 10)
    assert found.planned_steps is None


def test_a_pilot_of_a_long_run():
    step, rate = logged("cosine", 1000, 50, 5, 300, after=False)
    found = infer_schedule(step, rate, 1000)
    assert (found.kind, found.warmup_steps) == ("cosine", pytest.approx(50, abs=5))


def test_a_stated_peak_gives_the_length_of_a_warm_up_that_did_not_end(write, make_state, make_rows):
    rows = make_rows(list(range(1, 41)))
    for row in rows:
        row["learning_rate"] = 1e-4 * (row["step"] - 1) / 200
    path = write("x/trainer_state.json", make_state(rows))
    (alone,) = read_runs(path)
    assert alone.hyperparameters.learning_rate is None
    assert alone.hyperparameters.warmup_steps is None
    (run,) = read_runs(path, overrides={"learning_rate": 1e-4})
    assert run.hyperparameters.warmup_steps == 200
    shares = [run.hyperparameters.share_of_peak(steps) for steps in (40, 400)]
    assert shares == [0.2, 1.0]
    for one, end in ((alone, "is not known from it"), (run, "of 0.0001 was never reached")):
        (line,) = [line for line in one.warnings if line.startswith(IN_WARMUP)]
        assert "1.95e-05" in line
        assert line.endswith(end)


def test_an_unknown_shape_is_not_named():
    step = np.arange(1.0, 101)
    rate = np.where(step < 50, 1e-4, 3e-5)
    found = infer_schedule(step, rate, 100)
    assert found.kind is None
    assert found.peak == 1e-4


def test_an_unknown_shape_is_warned_about(write, make_rows, make_state):
    rows = make_rows(list(range(1, 21)))
    for row in rows[10:]:
        row["learning_rate"] = 1e-4
    (run,) = read_runs(write("x/trainer_state.json", make_state(rows)))
    assert run.hyperparameters.schedule is None
    assert any("schedule cannot be told" in warning for warning in run.warnings)


def test_rates_printed_as_zero_are_no_rates(write, make_rows, make_state):
    rows = [row | {"learning_rate": 0.0} for row in make_rows([1, 2, 3])]
    (run,) = read_runs(write("x/trainer_state.json", make_state(rows)))
    assert "learning_rate" not in run.series
    assert run.hyperparameters.learning_rate is None
    assert any("too few digits" in warning for warning in run.warnings)


def test_a_rate_beyond_all_numbers_is_as_good_as_not_logged(make_rows, write):
    rows = make_rows(list(range(1, 13)))
    for row in rows:
        row["learning_rate"] = 1e-5
    rows[0]["learning_rate"], rows[-1]["learning_rate"] = -1e308, 1.7e308
    (run,) = read_runs(write("trainer_state.json", {"log_history": rows}))
    assert run.hyperparameters.learning_rate == 1e-5
    assert run.hyperparameters.schedule == "constant"
