"""Prior presets: all load, all say their source, and a broken one names what is wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from advisor.errors import InputError
from advisor.model import load_priors, preset_folder, preset_names

PRESETS = ("full_finetuning", "lora", "small_models", "theory", "uninformative")


@pytest.fixture
def text():
    return (preset_folder() / "theory.toml").read_text(encoding="utf-8")


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_presets_are_those_that_the_documents_name():
    assert tuple(preset_names()) == PRESETS


# Bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["no_such_preset", "missing.toml", "../lora"])
def test_unknown_preset_is_named_with_the_choices(name):
    with pytest.raises(InputError, match=r"no prior preset") as caught:
        load_priors(name)
    assert f"'{name}'" in str(caught.value)
    assert caught.value.argument == "priors"
    for preset in PRESETS:
        assert preset in str(caught.value)


def test_text_that_is_not_utf_8_names_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"name = '\xff\xfe'")
    with pytest.raises(InputError, match="not valid TOML") as caught:
        load_priors(path)
    assert caught.value.path == str(path)


def without_section(text, key):
    head, _, tail = text.partition(f"[{key}]\n")
    assert tail
    return head + "[" + tail.partition("\n[")[2]


def test_missing_key_is_named(tmp_path, text):
    for key in ("hazard_batch", "log_misfit"):
        short = without_section(text, key)
        assert key not in tomllib.loads(short)
        path = write(tmp_path, short)
        with pytest.raises(InputError, match="Field required") as caught:
            load_priors(path)
        assert (caught.value.key, caught.value.path) == (key, str(path))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (
            "[start_logit]\nmean = -1.0\nsd = 1.5",
            "[start_logit]\nmean = -1.0\nsd = 0.0",
            "start_logit.sd",
        ),
        ("[start_logit]\nmean = -1.0", '[start_logit]\nmean = "low"', "start_logit.mean"),
        ("[start_logit]\nmean = -1.0\n", "[start_logit]\n", "start_logit.mean"),
        ("[hazard_size]\n", "[hazard_size]\nscale = 2.0\n", "hazard_size.scale"),
        (
            "[log_stiffness_ratio]\n",
            "[log_stiffness_ratio]\nmean = 0.0\n",
            "log_stiffness_ratio.mean",
        ),
        ('name = "theory"', 'name = "theory"\nauthor = "me"', "author"),
    ],
)
def test_wrong_entry_is_named(tmp_path, text, old, new, key):
    assert text.count(old) == 1
    path = write(tmp_path, text.replace(old, new))
    with pytest.raises(InputError, match="the preset entry is wrong") as caught:
        load_priors(path)
    assert (caught.value.key, caught.value.path) == (key, str(path))


def test_number_without_a_source_is_refused(tmp_path, text):
    section = text.index("[curvature_exponent]")
    line = text.index("source", section)
    short = text[:line] + text[text.index("\n", line) + 1 :]
    with pytest.raises(InputError) as caught:
        load_priors(write(tmp_path, short))
    assert caught.value.key == "curvature_exponent.source"


def test_preset_with_a_base_holds_what_differs_and_the_rest_of_the_base(tmp_path):
    head = 'name = "mine"\ndescription = "A preset that differs in one entry."\n'
    head += 'evidence = "none"\nbase = "full_finetuning"\n'
    entry = '\n[log_slope]\nmean = -3.0\nsd = 0.5\nsource = "Known beforehand, for this test."\n'
    mine, base = load_priors(write(tmp_path, head + entry)), load_priors("full_finetuning")
    assert (mine.log_slope.mean, mine.log_slope.sd) == (-3.0, 0.5)
    assert mine.headroom_logit == base.headroom_logit
    assert mine.log_slope != base.log_slope
    with pytest.raises(InputError, match=r"no prior preset|no such|there is no"):
        load_priors(write(tmp_path, head.replace("full_finetuning", "nowhere") + entry))
