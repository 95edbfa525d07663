"""``advisor priors`` as a user meets it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor.model import load_priors, preset_names, prior_entries


def test_without_a_preset_all_are_listed(run):
    shown = run("priors", "show")[1]
    for name in preset_names():
        assert name in shown
    assert "1e4 to 1e7 parameters" in shown
    told = json.loads(run("priors", "show", "--json")[1])
    assert [preset["name"] for preset in told] == preset_names()
    assert all(preset.keys() == {"name", "description", "evidence"} for preset in told)


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_shows_every_number_and_source(run, name):
    shown = run("priors", "show", name)[1]
    joined = " ".join(shown.split())
    priors = load_priors(name)
    for key, entry in prior_entries(priors).items():
        assert key in joined
        assert entry.source.split()[0] in joined
    assert "80% interval" in joined


def test_json_holds_entries(run):
    told = json.loads(run("priors", "show", "uninformative", "--json")[1])
    entries = {entry["name"]: entry for entry in told["entries"]}
    assert entries.keys() == prior_entries(load_priors("uninformative")).keys()
    assert entries["log_slope"]["scale"] == "exp"
    assert entries["log_slope"]["lower"] < np.exp(entries["log_slope"]["mean"])
    assert entries["log_stiffness_ratio"]["mean"] is None


def test_a_preset_that_is_not_there_is_named_with_those_that_are(run):
    code, _, message = run("priors", "show", "nobody")
    assert code == 2
    assert "nobody" in message
    assert "uninformative" in message
