"""Written presets are read back unchanged, and nothing else is overwritten."""

from __future__ import annotations

import tomllib

import pytest
from preset_files import preset_toml, write_preset

from advisor.errors import InputError
from advisor.model import load_priors, preset_names


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_survives_the_round_trip(tmp_path, name):
    priors = load_priors(name)
    path = tmp_path / "new" / "mine.toml"
    write_preset(path, priors)
    assert load_priors(path) == priors


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


@pytest.mark.parametrize("content", [b"", b"name = 'mine'\n", b"\xff\xfe", b"a = = 1"])
def test_a_file_that_is_no_preset_is_kept(tmp_path, content):
    path = tmp_path / "notes.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="nothing was overwritten") as no:
        write_preset(path, load_priors("lora"))
    assert (no.value.path, no.value.argument) == (str(path), "out")
    assert path.read_bytes() == content
