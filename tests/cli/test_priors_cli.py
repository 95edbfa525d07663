"""``advisor priors`` as a user meets it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor.cli import main
from advisor.model import load_priors, preset_names, prior_entries


def run(arguments, capsys, code=0):
    with pytest.raises(SystemExit) as stopped:
        main(["priors", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    assert (stopped.value.code or 0) == code, captured.err
    assert "Traceback" not in captured.err
    return captured.out if code == 0 else captured.err


# show ------------------------------------------------------------------------------------------


def test_without_a_preset_all_are_listed(capsys):
    shown = run(["show"], capsys)
    for name in preset_names():
        assert name in shown
    assert "1e4 to 1e7 parameters" in shown
    told = json.loads(run(["show", "--json"], capsys))
    assert [preset["name"] for preset in told] == preset_names()
    assert all(preset.keys() == {"name", "description", "evidence"} for preset in told)


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_shows_every_number_and_source(capsys, name):
    shown = run(["show", name], capsys)
    joined = " ".join(shown.split())
    priors = load_priors(name)
    for key, entry in prior_entries(priors).items():
        assert key in joined
        assert entry.source.split()[0] in joined
    assert "80% interval" in joined


def test_json_holds_entries(capsys):
    told = json.loads(run(["show", "uninformative", "--json"], capsys))
    entries = {entry["name"]: entry for entry in told["entries"]}
    assert entries.keys() == prior_entries(load_priors("uninformative")).keys()
    assert entries["log_slope"]["scale"] == "exp"
    assert entries["log_slope"]["lower"] < np.exp(entries["log_slope"]["mean"])
    assert entries["log_stiffness_ratio"]["mean"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nobody"], ["nobody", "uninformative"]),
    ],
)
def test_wrong_use_is_refused(capsys, arguments, words):
    message = run(arguments, capsys, code=2)
    assert all(word.lower() in message.lower() for word in words), message
