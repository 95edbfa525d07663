"""The preset that says little: broader than every other, and it still reads sensibly."""

from __future__ import annotations

import pytest

from advisor.model import Priors, load_priors, preset_names, prior_entries

OTHERS = sorted(set(preset_names()) - {"uninformative"})
LEARNED = ("full_finetuning", "lora")
"""Presets that learned from finished runs, and remember which."""

LEAST_SOURCE = 20
"""Characters: a source is at least a short sentence."""


@pytest.mark.parametrize("name", preset_names())
def test_every_number_of_every_preset_has_a_source_sentence(name):
    priors = load_priors(name)
    entries = prior_entries(priors)
    assert priors.name == name
    assert len(priors.description) >= LEAST_SOURCE
    told = {"name", "description", "evidence", "learned_from"}
    told |= {"stability_line", "speed_law", "extrapolation", "discrepancy", "elsewhere"}
    told |= {"known_optimum", "domain", "pool", "growth", "decision"}
    assert set(entries) == set(Priors.model_fields) - told
    assert len(priors.stability_line.source) >= LEAST_SOURCE
    assert len(priors.extrapolation.source) >= LEAST_SOURCE
    for learned in (priors.discrepancy, priors.pool, priors.growth, priors.decision):
        assert len(learned.source) >= LEAST_SOURCE
    # A line is learned from runs, and so is only what rests on some.
    assert (priors.stability_line.runs > 0) is (priors.domain is not None)
    for key, entry in entries.items():
        assert len(entry.source.strip()) >= LEAST_SOURCE, key
        assert entry.source.strip()[0].isupper() or entry.source.startswith("k = "), key
        assert entry.sd > 0
    assert bool(priors.learned_from) is (name in LEARNED)


@pytest.mark.parametrize("other", OTHERS)
def test_it_is_broader_than_every_other_in_every_entry(other):
    assert len(OTHERS) >= 3
    mine, theirs = (prior_entries(load_priors(name)) for name in ("uninformative", other))
    for key, entry in theirs.items():
        assert mine[key].sd > 1.3 * entry.sd, key


@pytest.mark.parametrize("other", OTHERS)
def test_it_holds_what_every_other_believes(other):
    mine, theirs = (prior_entries(load_priors(name)) for name in ("uninformative", other))
    for key, entry in theirs.items():
        # A half-normal starts at 0 whatever its scale.
        if hasattr(entry, "mean"):
            assert abs(entry.mean - mine[key].mean) < 2 * mine[key].sd, key
