"""A study of real pilots, saved once, loads and answers as it did; made again it is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import studies

import advisor

FOLDER = Path(__file__).parent / "data" / "study"
SCRIPT = Path(__file__).parents[1] / "scripts" / "make_test_data.py"


@pytest.fixture(scope="module")
def script():
    return studies.script(SCRIPT)


@pytest.fixture(scope="module")
def study():
    return advisor.Study.load(FOLDER)


def test_a_setting_that_died_is_forecast_to_die(study):
    rates = study.what_if_rows(learning_rate=[3e-4, 3e-2])
    assert rates[0]["p_stable"] > 0.9 > 0.5 > rates[1]["p_stable"]
    assert rates[0]["reward_low"] < rates[0]["reward"] < rates[0]["reward_high"]


@pytest.mark.evidence
def test_the_answer_follows_from_the_saved_posterior(study, script):
    kept = study.recommendation
    asked = {name: of for name, of in script.ASKED.items() if name != "group_sizes"}
    same = advisor.advise(study.posterior, choose_from=(kept.settings,), **asked)
    assert same.settings == kept.settings
    assert same.reward.median == pytest.approx(kept.reward.median, abs=1e-6)
    # Which of equal settings is named has changed since; they are equal.
    answer = advisor.advise(study.posterior, **script.ASKED)
    assert answer.reward.mean == pytest.approx(kept.reward.mean, abs=0.01)
    assert answer.stability.probability >= answer.level


@pytest.mark.evidence
def test_made_again_it_is_the_same_posterior(study, script):
    made = script.fitted()
    for name, values in study.posterior.draws.items():
        kept, new = (each.reshape(-1, *values.shape[2:]) for each in (values, made.draws[name]))
        # 100 draws of each: five standard errors of the difference of two means.
        within = 5 * np.hypot(kept.std(axis=0), new.std(axis=0)) / np.sqrt(25) + 1e-9
        assert np.all(np.abs(kept.mean(axis=0) - new.mean(axis=0)) < within), name
