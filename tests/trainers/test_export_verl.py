"""verl: an export read back by our own reader of Hydra overrides, and its keys looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from launched import STEPS, changed, launches, told, without_words_for, words_of
from stated import settings_in

from advisor.runs import Trainer

KEY_TABLE = Trainer.named("verl").keys[0]


VARIANTS = {
    "plain": {},
    "all": {
        "schedule": "cosine",
        "warmup_steps": 16,
        "kl_coefficient": 0.001,
        "advantage_scaling": "batch",
        "adapter": "lora",
        "adapter_rank": 16,
        "adapter_alpha": 32,
        "adapter_targets": "q_proj,v_proj",
        "loss_averaging": "fixed_length",
        "precision": "fp16",
        "max_prompt_length": 256,
        "max_completion_length": 512,
    },
    "sgd": {"optimizer": "sgd"},
    "no ratio": {"importance_ratio": False},
}


LORA = {"adapter": "lora", "adapter_rank": 16}


def read_back(text: str, folder: Path) -> dict[str, Any]:
    """As read from the list of overrides that Hydra keeps beside a run."""
    module, *overrides = words_of(text, folder)[1:]
    assert module == "verl.trainer.main_ppo"
    path = folder / "overrides.yaml"
    path.write_text(yaml.safe_dump(overrides))
    return KEY_TABLE.derive(settings_in(path)).facts


@pytest.mark.evidence
@given(launch=launches(("constant", "cosine")))
def test_everything_comes_back_exactly(folder, launch):
    settings, steps, devices = launch
    facts = read_back(Trainer.export_config(settings, steps, "verl", devices=devices), folder)
    foreign = without_words_for(
        settings, loss_averaging={"sequence", "token", "sequence_sum", "fixed_length"}
    )
    expected = told(settings, "lag", *foreign)
    assert {name: facts.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("old", "new", "factor", "value"),
    [
        ("ppo_epochs=2", "ppo_epochs=3", "epochs_per_refresh", 3),
        ("train_batch_size=24", "train_batch_size=12", "minibatches_per_refresh", 2),
        ("ppo_mini_batch_size=6", "ppo_mini_batch_size=12", "prompts_per_step", 12),
        ("total_training_steps=25", "total_training_steps=26", "planned_steps", 208),
    ],
)
def test_another_number_in_the_file_is_read_as_another_setting(folder, old, new, factor, value):
    text = Trainer.export_config(changed(), STEPS, "verl")
    head, _, arguments = text.partition("arguments=(")
    assert old in arguments
    before = read_back(text, folder)
    after = read_back(f"{head}arguments=({arguments.replace(old, new)}", folder)
    assert after[factor] == value != before[factor]


def test_variants_come_back(folder):
    lora = read_back(Trainer.export_config(changed(**VARIANTS["all"]), STEPS, "verl"), folder)
    assert (lora["adapter"], lora["adapter_rank"]) == ("lora", 16)
    assert (lora["adapter_alpha"], lora["adapter_targets"]) == (32, "q_proj,v_proj")
    everywhere = Trainer.export_config(changed(**LORA, adapter_targets="all-linear"), STEPS, "verl")
    assert read_back(everywhere, folder)["adapter_targets"] == "all-linear"
    uncorrected = read_back(
        Trainer.export_config(changed(**VARIANTS["no ratio"]), STEPS, "verl"), folder
    )
    assert uncorrected["importance_ratio"] is False
    sgd = changed(optimizer="sgd", momentum=0.8)
    plain = read_back(Trainer.export_config(sgd, STEPS, "verl"), folder)
    assert (plain["optimizer"], plain["momentum"]) == ("sgd", 0.8)


def test_devices_and_epochs_leave_the_run_its_length(folder):
    words = words_of(Trainer.export_config(changed(), STEPS, "verl", devices=8), folder)
    assert "trainer.n_gpus_per_node=8" in words
    # No node has sixteen: Ray would wait for one for ever.
    more = words_of(Trainer.export_config(changed(), STEPS, "verl", devices=16), folder)
    assert {"trainer.nnodes=2", "trainer.n_gpus_per_node=8"} <= set(more)
    assert "actor.num_nodes 2 --actor.num_gpus_per_node 8" in Trainer.export_config(
        changed(), STEPS, "openrlhf", devices=16
    )
    # Even a dataset of one batch of rollouts per epoch lasts to the end.
    assert {"trainer.total_training_steps=25", "trainer.total_epochs=25"} <= set(words)
