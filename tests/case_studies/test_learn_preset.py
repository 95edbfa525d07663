"""A preset learned by the command of the study of scale, as a user meets it."""

from __future__ import annotations

import pytest
from past_studies import SCHEMA, hash_of, past, saved_meta
from studies import modules_of

from advisor.model import load_priors

with modules_of("scale", ("learn",)) as found:
    COMMAND = found["learn"]

SAID = {"rate_group_size": (0.5, 0.02), "log_slope": (-5.5, 0.1)}


def run(arguments, capsys, code=0):
    ended = COMMAND.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert ended == code, captured.err
    return captured.out if code == 0 else captured.err


def without_progress(said):
    """What is printed, without the lines that begin with the seconds gone."""
    lines = said.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("["))


@pytest.fixture
def saved(tmp_path):
    """Posteriors of two studies."""
    paths = [tmp_path / "one.nc", tmp_path / "two.nc"]
    for path in paths:
        past(path.stem, SAID).save(path)
    return paths


def test_learning_writes_a_preset_that_loads(tmp_path, capsys, saved):
    out = tmp_path / "presets" / "team.toml"
    shown = run([*saved, "--out", out], capsys)
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


def test_a_file_that_is_no_preset_is_not_overwritten(tmp_path, capsys, saved):
    out = tmp_path / "notes.toml"
    out.write_text("keep = 'me'\n")
    message = run([*saved, "--out", out], capsys, code=2)
    assert "nothing was overwritten" in message
    assert out.read_text() == "keep = 'me'\n"


def test_bad_posteriors_are_refused(tmp_path, capsys, saved):
    out = tmp_path / "team.toml"
    copy = tmp_path / "copy.nc"
    copy.write_bytes(saved[0].read_bytes())
    message = run([saved[0], copy, "--out", out], capsys, code=2)
    assert "the same data" in message
    assert without_progress(message).count("\n") == 1
    missing = run([tmp_path / "none.nc", "--out", out], capsys, code=2)
    assert "none.nc" in missing
    with saved_meta(copy) as meta:
        meta["provenance"]["schema_version"] = SCHEMA + 1
    old = run([copy, "--out", out], capsys, code=2)
    assert f"has schema {SCHEMA + 1}" in old
    assert not out.exists()
