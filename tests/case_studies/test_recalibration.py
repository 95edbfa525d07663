"""The line on which P(stable) lies in truth: found again, and left alone where nothing tells."""

from __future__ import annotations

import numpy as np
import pytest
from studies import modules_of

from advisor.forecast import log_update_norm, survival
from advisor.model import NO_LINE, StabilityLine, load_priors
from advisor.model import sigmoid as expit

with modules_of(".", ("recalibration",)) as found:
    LEAST_SPREAD, learn_line = (
        found["recalibration"].LEAST_SPREAD,
        found["recalibration"].learn_line,
    )

NORM = log_update_norm(2e-3, 1e5)


def forecasts(intercept, slope, spread, *, groups=40, size=300, seed=0):
    """Probabilities said, whether the run lived, and the group of each."""
    rng = np.random.default_rng(seed)
    odds = 2 * rng.standard_normal((groups, size))
    own = intercept + spread * rng.standard_normal((groups, 1))
    lived = rng.random((groups, size)) < expit(own + slope * odds)
    names = np.repeat([f"table {k}" for k in range(groups)], size)
    return expit(odds).ravel(), lived.ravel(), names


@pytest.mark.evidence
@pytest.mark.parametrize(("intercept", "slope", "spread"), [(1.5, 0.6, 1.0), (-1.0, 1.2, 0.5)])
def test_a_line_is_found_again(intercept, slope, spread):
    line = learn_line(*forecasts(intercept, slope, spread))
    assert line.intercept == pytest.approx(intercept, abs=0.4)
    assert line.slope == pytest.approx(slope, abs=0.05)
    assert line.spread == pytest.approx(spread, rel=0.3)


@pytest.mark.evidence
def test_what_is_right_stays_and_what_is_wrong_gets_better():
    said, lived, group = forecasts(0.0, 1.0, 0.0)
    line = learn_line(said, lived, group)
    assert np.max(np.abs(line(said) - said)) < 0.02
    assert line.spread == LEAST_SPREAD
    said, lived, group = forecasts(2.0, 1.0, 0.3, seed=1)
    line = learn_line(said, lived, group)
    said, lived, _ = forecasts(2.0, 1.0, 0.3, seed=2)
    before, after = (np.mean((p - lived) ** 2) for p in (said, line(said)))
    assert after < 0.8 * before


def test_a_preset_s_line_moves_what_is_said():
    assert survival.recalibrated(0.3, NO_LINE, NORM) == 0.3
    small = load_priors("small_models").stability_line
    assert 0.6 < survival.recalibrated(0.5, small, NORM) < 0.9
    assert (
        survival.recalibrated(0.5, small, NORM, -survival.DEVIATIONS)
        < 0.5
        < survival.recalibrated(0.5, small, NORM, survival.DEVIATIONS)
    )
    real = load_priors("full_finetuning").stability_line
    # Seven of 154 that were given 0.995 on average died, most at rates of a LoRA run.
    assert survival.recalibrated(0.999, real, log_update_norm(1e-5, 7e9)) < 0.99
    assert survival.recalibrated(0.999, real, log_update_norm(1e-4, 7e9)) < 0.96
    # Adapters stand ten times as much.
    lora = load_priors("lora").stability_line
    assert survival.recalibrated(0.999, lora, log_update_norm(1e-4, 7e9)) == pytest.approx(
        survival.recalibrated(0.999, real, log_update_norm(1e-5, 7e9)), abs=1e-4
    )
    # Few runs were said to die: nothing raises a low probability.
    assert survival.recalibrated(0.2, real, NORM) == 0.2
    raising = StabilityLine(**(real.model_dump() | {"only_lowers": False}))
    assert survival.recalibrated(0.2, raising, NORM) > 0.5


@pytest.mark.evidence
def test_what_kills_in_absolute_units_is_found_and_moves_what_is_said():
    said, _, group = forecasts(0.5, 0.8, 0.5)
    rng = np.random.default_rng(3)
    norm = 1.5 * rng.standard_normal(said.size)
    own = dict(zip(np.unique(group), 0.5 * rng.standard_normal(40), strict=True))
    offsets = np.array([own[name] for name in group])
    odds = 0.5 + offsets + 0.8 * survival.log_odds(said) - 1.2 * norm
    lived = rng.random(said.size) < expit(odds)
    line = learn_line(said, lived, group, log_norm=norm)
    assert line.update_norm == pytest.approx(-1.2, abs=0.1)
    assert line.slope == pytest.approx(0.8, abs=0.05)
    # Negative control: a norm that tells nothing gets next to no weight.
    shuffled = learn_line(said, lived, group, log_norm=rng.permutation(norm))
    assert abs(shuffled.update_norm) < 0.05
    assert line(0.5, 2.0) < line(0.5, 0.0) < line(0.5, -2.0)
