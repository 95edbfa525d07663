"""Written presets are read back unchanged, and nothing else is overwritten."""

from __future__ import annotations

import tomllib

import pytest
from preset_files import check_preset_file, preset_toml, write_preset

from advisor.errors import InputError
from advisor.model import load_priors, preset_names

AWKWARD = 'Say "no" to C:\\new\tor\nlines, to \x7f and \x01, and keep é, 中 and 😀.'


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_survives_the_round_trip(tmp_path, name):
    priors = load_priors(name)
    path = tmp_path / "new" / "mine.toml"
    write_preset(path, priors)
    assert load_priors(path) == priors


def test_awkward_text_and_numbers_survive(tmp_path):
    priors = load_priors("lora")
    entry = priors.log_slope.model_copy(update={"source": AWKWARD, "mean": -1e-17, "sd": 1e-22})
    odd = priors.model_copy(
        update={"description": AWKWARD, "log_slope": entry, "learned_from": ("ab" * 32, "cd" * 32)}
    )
    write_preset(tmp_path / "odd.toml", odd)
    assert load_priors(tmp_path / "odd.toml") == odd


def test_numbers_stand_before_their_source():
    text = preset_toml(load_priors("theory"))
    section = text[text.index("[hazard_batch]") :].splitlines()[1:4]
    assert [line.split(" = ")[0] for line in section] == ["mean", "sd", "source"]
    assert "learned_from" not in text
    assert list(tomllib.loads(text))[:3] == ["name", "description", "evidence"]


def test_what_a_base_says_is_not_written_again():
    base = load_priors("theory")
    learned = base.model_copy(
        update={
            "name": "mine",
            "log_slope": base.log_slope.model_copy(update={"sd": 0.3}),
            "log_onset": base.log_onset.model_copy(update={"source": "Another word for the same."}),
        }
    )
    told = tomllib.loads(preset_toml(learned, base))
    assert list(told) == ["name", "description", "evidence", "base", "log_slope"]
    assert told["base"] == "theory"


def test_an_older_preset_is_replaced(tmp_path):
    path = tmp_path / "mine.toml"
    write_preset(path, load_priors("lora"))
    write_preset(path, load_priors("small_models"))
    assert load_priors(path).name == "small_models"


@pytest.mark.parametrize("content", [b"", b"name = 'mine'\n", b"\xff\xfe", b"a = = 1"])
def test_a_file_that_is_no_preset_is_kept(tmp_path, content):
    path = tmp_path / "notes.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="nothing was overwritten") as no:
        write_preset(path, load_priors("lora"))
    assert (no.value.path, no.value.argument) == (str(path), "out")
    assert path.read_bytes() == content


def test_a_name_that_would_not_load_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"ends in \.toml.*`out` team\.toml"):
        check_preset_file(tmp_path / "team.txt")
    with pytest.raises(InputError, match=r"`out` team\.toml"):
        check_preset_file(tmp_path / "team")


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    (tmp_path / "team.toml").mkdir()
    with pytest.raises(InputError, match="nothing was overwritten"):
        write_preset(tmp_path / "team.toml", load_priors("lora"))


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        write_preset(tmp_path / "file" / "team.toml", load_priors("lora"))
