"""``advisor priors`` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys

import h5netcdf
import numpy as np
import pytest
from past_studies import hash_of, past
from processor_time import times_a_plain_application

from advisor.cli import main
from advisor.model.posterior import SCHEMA
from advisor.model.presets import prior_entries
from advisor.model.priors import load_priors, preset_names
from advisor.model.storage import META

SAID = {"rate_group_size": (0.5, 0.02), "log_slope": (-5.5, 0.1)}


def run(arguments, capsys, code=0):
    with pytest.raises(SystemExit) as stopped:
        main(["priors", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    assert (stopped.value.code or 0) == code, captured.err
    assert "Traceback" not in captured.err
    return captured.out if code == 0 else captured.err


def without_progress(said):
    """What is said, less the lines that begin with the seconds gone."""
    lines = said.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("["))


@pytest.fixture
def saved(tmp_path):
    """Posteriors of two studies."""
    paths = [tmp_path / "one.nc", tmp_path / "two.nc"]
    for path in paths:
        past(path.stem, SAID).save(path)
    return paths


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
    assert "G 8, K 1, momentum 0.9" in joined
    assert "80 % intervals" in joined


def test_a_narrow_terminal_gets_the_sources_below(capsys):
    from advisor.cli.priors import show_preset
    from advisor.cli.terminal import HarmlessConsole

    show_preset(load_priors("lora"), HarmlessConsole(width=80, highlight=False))
    joined = " ".join(capsys.readouterr().out.split())
    for key, entry in prior_entries(load_priors("lora")).items():
        assert f"{key}: {entry.source}" in joined


def test_json_holds_entries_and_curves(capsys):
    told = json.loads(run(["show", "uninformative", "--json"], capsys))
    entries = {entry["name"]: entry for entry in told["entries"]}
    assert entries.keys() == prior_entries(load_priors("uninformative")).keys()
    assert entries["log_slope"]["scale"] == "exp"
    assert entries["log_slope"]["lower"] < np.exp(entries["log_slope"]["mean"])
    assert entries["log_stiffness_ratio"]["mean"] is None
    low, high = told["predictive"]["plateau"]["bands"]["0.8"]
    assert 0 < low < told["predictive"]["plateau"]["median"] < high < 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nobody"], ["nobody", "uninformative"]),
        (["learn"], ["sources"]),
        (["learn", "none.nc"], ["--out"]),
    ],
)
def test_wrong_use_is_refused(capsys, arguments, words):
    message = run(arguments, capsys, code=2)
    assert all(word.lower() in message.lower() for word in words), message


@pytest.mark.evidence
def test_showing_is_quick_and_loads_no_sampler():
    code = (
        "import sys\n"
        "from advisor.cli import main\n"
        "try:\n    main(['priors', 'show', 'lora'])\nexcept SystemExit:\n    pass\n"
        "heavy = [n for n in ('pymc', 'arviz', 'matplotlib', 'optuna') if n in sys.modules]\n"
        "print(heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert times_a_plain_application(code) < 8


# learn -----------------------------------------------------------------------------------------


def test_learning_writes_a_preset_that_loads(tmp_path, capsys, saved):
    out = tmp_path / "presets" / "team.toml"
    shown = run(["learn", *saved, "--out", out], capsys)
    # Both that were said, and how far models of a task lie apart.
    assert "Learned: 3 of" in shown
    assert "rate_group_size" in shown
    assert "small_models" in shown
    assert f"--priors {out}" in shown
    learned = load_priors(out)
    assert learned.name == "team"
    runs = [f"{study}-{index}" for study in ("one", "two") for index in range(3)]
    assert learned.learned_from == tuple(map(hash_of, runs))
    base = load_priors("small_models")
    assert learned.rate_group_size.sd < base.rate_group_size.sd
    assert learned.rate_prompts_per_step.sd == base.rate_prompts_per_step.sd
    assert "team" in run(["show", out], capsys)


def test_json_is_the_preset(tmp_path, capsys, saved):
    out = tmp_path / "team.toml"
    flags = ["--out", out, "--name", "ours", "--base", "uninformative", "--json"]
    told = json.loads(run(["learn", *saved, *flags], capsys))
    learned = load_priors(out)
    assert told == json.loads(learned.model_dump_json())
    assert learned.name == "ours"
    assert learned.evidence.startswith(load_priors("uninformative").evidence)


def test_nothing_learned_is_said(tmp_path, capsys):
    past("null").save(tmp_path / "null.nc")
    shown = run(["learn", tmp_path / "null.nc", "--out", tmp_path / "team.toml"], capsys)
    assert "Learned: " not in shown
    assert "Kept from small_models (" in shown


def test_a_file_that_is_no_preset_is_not_overwritten(tmp_path, capsys, saved):
    out = tmp_path / "notes.toml"
    out.write_text("keep = 'me'\n")
    message = run(["learn", *saved, "--out", out], capsys, code=2)
    assert "nothing was overwritten" in message
    assert out.read_text() == "keep = 'me'\n"


def test_learning_again_replaces_the_preset(tmp_path, capsys, saved):
    out = tmp_path / "team.toml"
    run(["learn", saved[0], "--out", out], capsys)
    run(["learn", *saved, "--out", out], capsys)
    assert len(load_priors(out).learned_from) == 6


def test_bad_posteriors_are_refused(tmp_path, capsys, saved):
    out = tmp_path / "team.toml"
    copy = tmp_path / "copy.nc"
    copy.write_bytes(saved[0].read_bytes())
    message = run(["learn", saved[0], copy, "--out", out], capsys, code=2)
    assert "the same data" in message
    assert without_progress(message).count("\n") == 1
    missing = run(["learn", tmp_path / "none.nc", "--out", out], capsys, code=2)
    assert "none.nc" in missing
    with h5netcdf.File(copy, "a") as file:
        meta = json.loads(str(file.attrs[META]))
        meta["provenance"]["schema_version"] = SCHEMA + 1
        file.attrs[META] = json.dumps(meta)
    old = run(["learn", copy, "--out", out], capsys, code=2)
    assert f"has schema {SCHEMA + 1}" in old
    assert not out.exists()


def test_a_posterior_of_another_version_is_noted(tmp_path, capsys, saved):
    with h5netcdf.File(saved[0], "a") as file:
        meta = json.loads(str(file.attrs[META]))
        meta["provenance"]["package"] = "99.0"
        file.attrs[META] = json.dumps(meta)
    with pytest.raises(SystemExit):
        main(["priors", "learn", str(saved[0]), "--out", str(tmp_path / "team.toml")])
    said = without_progress(capsys.readouterr().err)
    assert said.startswith("Note: ")
    assert "fitted by version 99.0" in said
    assert ".py" not in said
