"""The table of a preset: intervals on the scale that an entry is read on."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.model import (
    INTERVAL,
    HalfNormalPrior,
    Priors,
    load_priors,
    preset_names,
    prior_entries,
    prior_table,
)
from advisor.model.presets import natural_scale


@pytest.mark.parametrize("name", preset_names())
def test_every_entry_is_a_row_whose_interval_holds_what_it_should(name):
    priors = load_priors(name)
    rng = np.random.default_rng(3)
    rows = prior_table(priors)
    assert [row.name for row in rows] == list(prior_entries(priors))
    for row in rows:
        entry = getattr(priors, row.name)
        standard = rng.standard_normal(20_000)
        if isinstance(entry, HalfNormalPrior):
            assert row.mean is None
            raw = entry.sd * np.abs(standard)
        else:
            raw = entry.mean + entry.sd * standard
        natural = {
            "exp": np.exp,
            "logistic": lambda x: 1 / (1 + np.exp(-x)),
            "as is": np.asarray,
        }[row.scale](raw)
        inside = (natural > row.lower) & (natural < row.upper)
        assert inside.mean() == pytest.approx(INTERVAL, abs=0.012)
        assert (natural < row.lower).mean() == pytest.approx((1 - INTERVAL) / 2, abs=0.01)
        assert (natural < row.median).mean() == pytest.approx(0.5, abs=0.015)
        assert row.source == entry.source


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("start_logit", "logistic"),
        ("eval_start_logit", "logistic"),
        ("uncorrected_log_odds", "logistic"),
        ("log_slope", "exp"),
        ("log_stiffness_ratio", "exp"),
        ("hazard_level", "exp"),
        ("plateau_loss_level", "exp"),
        ("hazard_learning_rate", "as is"),
        ("curvature_exponent", "as is"),
    ],
)
def test_a_name_says_its_scale(name, scale):
    assert natural_scale(name)[0] == scale


def test_a_rule_of_a_saved_study_that_lacks_a_number_is_not_guessed():
    saved = load_priors("lora").model_dump(mode="json")
    rule = {"worthwhile": 0.6, "source": "chosen by eye"}
    with pytest.raises(ValueError, match="loss_below"):
        Priors.model_validate({**saved, "decision": rule})
