"""Names out of logs do not steer the terminal that they are shown on."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from advisor import demo_folder
from advisor.advice import planned_settings
from advisor.runs import Trainer
from advisor.text import STEERING, harmless

NAME = "a\x1b]0;owned\x07\x1b[2J\x1bc\u202eevil\u2066\x9b31m"


@pytest.fixture
def hostile(tmp_path):
    """A log whose folder, model and task steer, beside one that does not."""
    folder = tmp_path / "runs" / NAME.replace("/", "")
    shutil.copytree(demo_folder() / "s_lr3e-4_g8_k2", folder)
    (folder / "pilots.toml").write_text(
        f"[defaults]\nmodel = {json.dumps(NAME)}\ntask = {json.dumps(NAME)}\n"
    )
    return tmp_path / "runs"


def test_what_steers_is_spelt_out_and_the_rest_stays():
    assert harmless("a\x1b[2J\u202eb\n\tc") == "a\\u001b[2J\\u202eb\n\tc"
    assert json.loads(json.dumps({"a": 1})) == json.loads(harmless('{"a": 1}'))
    assert json.loads(harmless('"\x7f\u202e"')) == "\x7f\u202e"
    assert harmless("Ärger, 日本語, 👩‍🔬") == "Ärger, 日本語, 👩‍🔬"
    assert harmless("\udc80") == "\\udc80"


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect",),
        ("inspect", "--explain"),
        ("inspect", "--json"),
        ("diagnose",),
        ("diagnose", "--json"),
    ],
)
def test_no_command_lets_a_name_steer(run, hostile, arguments):
    command, *more = arguments
    _, out, said = run(command, hostile, *more)
    assert "owned" in out
    assert not STEERING.search(out)
    assert not STEERING.search(said)
    if "--json" in more:
        assert json.loads(out)


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", NAME, NAME),
        ("report", NAME),
        ("export", NAME, "--to", "trl"),
        ("inspect", NAME),
        ("fit", NAME),
        ("priors", "show", NAME),
        ("export", "study", "--to", "trl", NAME),
        ("inspect", f"--{NAME}"),
    ],
)
def test_no_error_lets_a_name_steer(run, arguments):
    code, out, said = run(*arguments)
    assert code == 2
    assert "owned" in said
    assert not STEERING.search(out)
    assert not STEERING.search(said)


@pytest.mark.parametrize("trainer", ["trl", "verl", "openrlhf"])
def test_no_comment_of_a_config_steers_and_it_loads(trainer):
    told = {"learning_rate": "1e-6", "group_size": "8", "prompts_per_step": "16"}
    settings, _ = planned_settings(told)
    text = Trainer.export_config(settings, 100, trainer, model="m", note=f"A note on {NAME}.")
    assert not STEERING.search(text)
    if trainer == "trl":
        assert yaml.safe_load(text)["num_generations"] == 8
