"""Runs in favour of curve families, learned from past studies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from past_studies import past

from advisor.findings.learned_families import STUDY_RUNS, runs_of_families
from advisor.findings.learned_families import learn_families as learn
from advisor.findings.learned_priors import learn_priors
from advisor.model.priors import load_priors

NAMES = ("spectrum", "oscillator", "exponential", "hill", "stretched")


def learn_families(studies, base):
    return learn([runs_of_families(one) for one in studies], base)


def study(label, weights, runs=3):
    found = past(label, runs=runs)
    return replace(found, meta=found.meta.model_copy(update={"families": weights}))


def weights_of(own, prior=2.0):
    """Weights that a study with so many runs of its own for each family ends with."""
    total = sum(own.values()) + prior * len(NAMES)
    return {name: (prior + own.get(name, 0.0)) / total for name in NAMES}


def test_runs_of_studies_are_added():
    base = load_priors("small_models")
    found = learn_families([study("a", weights_of({"hill": 3.0}))], base)
    assert found.hill == pytest.approx(5.0)
    assert found.oscillator == pytest.approx(2.0)
    both = [study("a", weights_of({"hill": 3.0})), study("b", weights_of({"spectrum": 3.0}))]
    found = learn_families(both, base)
    assert (found.hill, found.spectrum) == (pytest.approx(5.0), pytest.approx(5.0))
    assert "2 studies" in found.source


def test_a_study_counts_for_few_runs_however_large():
    found = learn_families(
        [study("large", weights_of({"hill": 90.0, "stretched": 10.0}), runs=100)],
        load_priors("small_models"),
    )
    assert found.hill - 2 == pytest.approx(0.9 * STUDY_RUNS)
    assert found.stretched - 2 == pytest.approx(0.1 * STUDY_RUNS)


def test_studies_of_one_family_say_nothing():
    base = load_priors("small_models")
    assert learn_families([past("a"), past("b")], base) == base.family_runs


def test_preset_holds_them():
    found = learn_priors([study("a", weights_of({"hill": 3.0}))])
    assert found.family_runs.hill == pytest.approx(5.0)
