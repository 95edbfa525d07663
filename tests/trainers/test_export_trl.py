"""TRL: an export read back by our own reader of TRL's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as rules
from launched import STEPS, changed, launches, told, without_words_for
from stated import settings_in

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("TRL").keys[0]


def read_back(text: str, folder: Path, devices: int = 1) -> dict[str, Any]:
    path = folder / "config.yaml"
    path.write_text(text)
    # The number of devices is the launcher's, not the configuration's.
    return KEY_TABLE.derive({**settings_in(path), "num_processes": devices}).facts


@pytest.mark.evidence
@given(launch=launches())
@rules(max_examples=150)
def test_everything_comes_back_exactly(folder, launch):
    settings, steps, devices = launch
    facts = read_back(
        Trainer.export_config(settings, steps, "trl", devices=devices), folder, devices
    )
    foreign = without_words_for(
        settings, loss_averaging={"sequence", "token", "local_token", "fixed_length"}
    )
    elsewhere = ("lag", "importance_ratio", "adapter", "max_prompt_length")
    expected = told(settings, *elsewhere, *foreign, optimizer="adamw")
    assert {name: facts.get(name) for name in expected} == expected


def test_steps_need_not_fill_the_last_batch_of_rollouts(folder):
    facts = read_back(Trainer.export_config(changed(), 197, "trl"), folder)
    assert facts["planned_steps"] == 197


@pytest.mark.parametrize(
    ("old", "new", "factor", "value"),
    [
        ("num_iterations: 2", "num_iterations: 3", "epochs_per_refresh", 3),
        ("steps_per_generation: 24", "steps_per_generation: 12", "minibatches_per_refresh", 2),
        (
            "per_device_train_batch_size: 8",
            "per_device_train_batch_size: 16",
            "prompts_per_step",
            12,
        ),
    ],
)
def test_another_number_in_the_file_is_read_as_another_setting(folder, old, new, factor, value):
    text = Trainer.export_config(changed(), STEPS, "trl")
    assert old in text
    before, after = read_back(text, folder), read_back(text.replace(old, new), folder)
    assert after[factor] == value != before[factor]


def test_sgd_keeps_its_momentum(folder):
    text = Trainer.export_config(changed(optimizer="sgd", momentum=0.8), STEPS, "trl")
    assert read_back(text, folder)["momentum"] == 0.8
    arguments = yaml.safe_load(text)
    assert (arguments["optim"], arguments["optim_args"]) == ("sgd", "momentum=0.8")
    assert "adam_beta1" not in arguments


def test_the_command_names_devices_model_and_adapter():
    lora = changed(adapter="lora", adapter_rank=16)
    text = Trainer.export_config(lora, STEPS, "trl", devices=4, model="org/it's\n mine")
    (command,) = (line for line in text.splitlines() if "trl grpo" in line)
    assert "--num_processes 4 " in command
    assert """--model_name_or_path 'org/it'"'"'s mine' --use_peft --lora_r 16 """ in command
    assert yaml.safe_load(text) == yaml.safe_load(
        Trainer.export_config(lora, STEPS, "trl", devices=4)
    )
