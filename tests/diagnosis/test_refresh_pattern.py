"""What repeats with the refresh: drift by position, and alternation of refreshes."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import make, noise, rising

from advisor.runs.diagnosis.dynamical_instability import (
    alternation,
    dynamical_instability,
    find_drift,
)


def saw(interval, seed=1, height=0.3, cycles=40, correlation=0.0, **given):
    """Gradient norm that grows within each refresh."""
    rows = interval * cycles
    position = np.arange(rows) % interval / max(1, interval - 1)
    norm = 1 + height * position + 0.05 * noise(seed, rows, correlation)
    settings = {"minibatches_per_refresh": interval, "epochs_per_refresh": 1} | given
    return make(rising(rows) + 0.02 * noise(seed + 50, rows), gradient_norm=norm, **settings)


@pytest.mark.parametrize("interval", [2, 3, 4, 8])
def test_growth_within_a_refresh_is_measured(interval):
    found = find_drift(saw(interval), "gradient_norm")
    assert found.interval == interval
    assert found.last - found.first == pytest.approx(0.3, abs=0.06)
    assert found.chance < 1e-4
    assert find_drift(saw(interval), "reward") is None


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
@pytest.mark.parametrize("interval", [2, 4, 7])
def test_noise_has_no_position(interval, correlation):
    runs = [saw(interval, seed, 0.0, correlation=correlation) for seed in range(100)]
    assert not any(find_drift(run, "gradient_norm") for run in runs)
    assert not any(find_drift(run, "reward") for run in runs)
    assert not any(alternation(run) for run in runs)


def test_another_interval_does_not_see_it():
    run = saw(4)
    wrong = run.hyperparameters.model_copy(update={"minibatches_per_refresh": 5})
    assert find_drift(run.with_updates(hyperparameters=wrong), "gradient_norm") is None


def test_where_it_cannot_be_told():
    run = saw(4)
    assert find_drift(saw(1), "gradient_norm") is None
    assert find_drift(saw(4, cycles=5), "gradient_norm") is None
    assert find_drift(run, "entropy") is None
    assert find_drift(run.with_updates(step=10 * run.step), "gradient_norm") is None
    assert find_drift(run.with_updates(step_unit="refresh"), "gradient_norm") is None
    constant = make(np.ones(160), minibatches_per_refresh=4, epochs_per_refresh=1)
    assert find_drift(constant, "reward") is None
    assert alternation(constant) is None
    assert alternation(make(np.zeros(0))) is None


def test_a_log_that_begins_within_a_refresh_is_folded_alike():
    run = saw(4)
    cut = run.with_updates(
        step=run.step[6:], series={name: values[6:] for name, values in run.series.items()}
    )
    one, other = find_drift(run, "gradient_norm"), find_drift(cut, "gradient_norm")
    assert other.first == pytest.approx(one.first, abs=0.02)
    assert other.last == pytest.approx(one.last, abs=0.02)


@pytest.mark.parametrize("interval", [1, 4])
def test_refreshes_that_alternate_are_told(interval):
    rows = 60 * interval
    flip = 0.1 * (-1.0) ** (np.arange(rows) // interval)
    settings = {"minibatches_per_refresh": interval, "epochs_per_refresh": 1}
    run = make(rising(rows) + flip + 0.05 * noise(1, rows), **settings)
    assert alternation(run) < 1e-4
    card = dynamical_instability(run)
    assert card.status == "INFO"
    assert any("alternate" in line for line in card.witnesses)


def test_a_batch_of_rollouts_a_row_is_its_own_refresh():
    flip = 0.1 * (-1.0) ** np.arange(60)
    run = make(0.5 + flip + 0.05 * noise(1, 60), minibatches_per_refresh=4, epochs_per_refresh=1)
    assert alternation(run) is None
    assert alternation(run.with_updates(step_unit="refresh")) < 1e-4
