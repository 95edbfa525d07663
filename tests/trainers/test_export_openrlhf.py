"""OpenRLHF: an export parsed as its own command line would be, then read back by our reader."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from launched import STEPS, changed, launches, told, without_words_for, words_of

from advisor.runs import Trainer
from advisor.runs.trainers.openrlhf import warmup_ratio

KEY_TABLE = Trainer.named("OpenRLHF").keys[0]

LISTED = Path(__file__).parent / "known_keys" / "openrlhf.txt"


def parser() -> argparse.ArgumentParser:
    """Flags of OpenRLHF, each with the number of words that it takes."""
    made = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for line in LISTED.read_text().splitlines():
        if not line.startswith("#"):
            name, count = line.split()
            if count == "0":
                made.add_argument(f"--{name}", action="store_true")
            else:
                many: Any = int(count) if count.isdecimal() else count
                made.add_argument(f"--{name}", nargs=None if count == "1" else many)
    return made


def parse(text: str, folder: Path, *more: str) -> dict[str, Any]:
    module, *flags = words_of(text, folder, *more)[1:]
    assert module == "openrlhf.cli.train_ppo_ray"
    return vars(parser().parse_args(flags))


def read_back(text: str, folder: Path) -> dict[str, Any]:
    """As read from the arguments that OpenRLHF prints and hands to W&B."""
    arguments = {
        name: " ".join(value) if isinstance(value, list) else value
        for name, value in parse(text, folder).items()
        if value is not None
    }
    return KEY_TABLE.derive(arguments).facts


def scheduled_steps(arguments: dict[str, Any]) -> int:
    """Steps that ``prepare_datasets`` gives the schedule, with a dataset of the size wanted."""
    completions = int(arguments["data.max_samples"]) * int(
        arguments["rollout.n_samples_per_prompt"]
    )
    passes = int(arguments["train.num_episodes"]) * int(arguments["train.max_epochs"])
    return completions // int(arguments["train.batch_size"]) * passes


@pytest.mark.evidence
@given(launch=launches())
def test_everything_comes_back_exactly(folder, launch):
    settings, steps, devices = launch
    text = Trainer.export_config(settings, steps, "openrlhf", devices=devices)
    facts = read_back(text, folder)
    foreign = without_words_for(
        settings, loss_averaging={"sequence", "token"}, precision={"bf16", "fp16"}
    )
    # No flag holds them: the trainer counts them from its samples and a share.
    foreign += ["planned_steps", "warmup_steps"]
    if settings.max_completion_length is None:
        foreign.append("max_prompt_length")  # one flag holds the sum of both limits
    expected = told(settings, *foreign, optimizer="adamw")
    assert {name: facts.get(name) for name in expected} == expected
    arguments = parse(text, folder)
    assert scheduled_steps(arguments) == steps
    ratio = float(arguments["actor.lr_warmup_ratio"])
    assert math.ceil(steps * ratio) == settings.warmup_steps
    # DeepSpeed accumulates whole micro-batches on each device.
    assert int(arguments["train.batch_size"]) % devices == 0
    each, nodes = (int(arguments[f"actor.num_{what}"]) for what in ("gpus_per_node", "nodes"))
    assert each * nodes == devices
    assert nodes == 1 or each == 8


@pytest.mark.parametrize(
    ("old", "new", "factor", "value"),
    [
        ("--train.max_epochs 2", "--train.max_epochs 3", "epochs_per_refresh", 3),
        ("--rollout.batch_size 24", "--rollout.batch_size 12", "minibatches_per_refresh", 2),
        ("--train.batch_size 48", "--train.batch_size 96", "prompts_per_step", 12),
    ],
)
def test_another_number_in_the_file_is_read_as_another_setting(folder, old, new, factor, value):
    text = Trainer.export_config(changed(), STEPS, "openrlhf")
    assert old in text
    before, after = read_back(text, folder), read_back(text.replace(old, new), folder)
    assert after[factor] == value != before[factor]


def test_adapter_comes_back(folder):
    lora = {"adapter": "lora", "adapter_rank": 16, "adapter_alpha": 32}
    lora["adapter_targets"] = "q_proj,v_proj"
    facts = read_back(Trainer.export_config(changed(**lora), STEPS, "openrlhf"), folder)
    assert {name: facts[name] for name in lora} == lora


def test_a_flag_that_is_none_of_openrlhf_is_refused(folder):
    text = Trainer.export_config(changed(), STEPS, "openrlhf")
    # The same setting under its name up to 0.10.1.
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parse(text, folder, "--actor_learning_rate", "1e-6")


def test_every_warm_up_is_rounded_up_to_itself():
    plain_quotient_misses = 0
    for steps in range(1, 500):
        for warmup in range(steps + 1):
            ratio = warmup_ratio(steps, warmup)
            assert math.ceil(steps * ratio) == warmup
            assert abs(ratio - warmup / steps) < 1e-12
            plain_quotient_misses += math.ceil(steps * (warmup / steps)) != warmup
    assert plain_quotient_misses
