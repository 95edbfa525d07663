"""What is assumed where a run does not tell its settings, and that it is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.errors import InputError
from advisor.model import build_cohort
from advisor.runs import PartialSettings, read_runs

KNOWN = {"learning_rate": 1e-6, "group_size": 8, "prompts_per_step": 4}


@pytest.mark.parametrize(
    ("optimizer", "momentum", "said"),
    [
        (None, 0.9, "momentum = 0.9 assumed (AdamW default of TRL and verl)"),
        ("adamw", 0.9, "momentum = 0.9 assumed (AdamW default of TRL and verl)"),
        ("adam", 0.9, "momentum = 0.9 assumed (AdamW default of TRL and verl)"),
        ("sgd", 0.0, "momentum = 0.0 assumed (default of torch's SGD)"),
    ],
)
def test_assumed_momentum_is_that_of_the_optimizer(
    optimizer: str | None, momentum: float, said: str
) -> None:
    known = PartialSettings(**KNOWN, optimizer=optimizer)
    assert known.completed().momentum == momentum
    assert [line for line in known.assumptions() if line.startswith("momentum")] == [said]


@pytest.mark.parametrize("name", KNOWN)
def test_what_no_default_settles_is_asked_for(name: str) -> None:
    known = PartialSettings(**{**KNOWN, name: None})
    assert known.lacking == [name]
    with pytest.raises(InputError, match="is not known") as refused:
        known.completed()
    assert refused.value.key == name
    assert refused.value.advice == f"Give '{name}'"


def test_a_schedule_of_unknown_length_is_as_long_as_the_run() -> None:
    completed = PartialSettings(**KNOWN).completed()
    assert completed.or_planned_over(50).planned_steps == 50
    assert completed.planned_over(20).or_planned_over(50).planned_steps == 20
    assert completed.planned_over(20).planned_over(50).planned_steps == 50


def test_what_was_assumed_of_sgd_is_listed_with_the_cohort(
    write_state: Callable[..., Path], write: Callable[..., Path]
) -> None:
    log = write_state()
    # As transformers writes its arguments out, Adam's among them.
    write(log.parent / "args.json", {"optim": "sgd", "optim_args": None, "adam_beta1": 0.9})
    needed = {"group_size": 8, "prompts_per_step": 4, "parameters": 1e9}
    (run,) = read_runs(log, overrides=needed)
    assert run.hyperparameters.optimizer == "sgd"
    assert run.hyperparameters.momentum is None
    cohort = build_cohort([run], {run.id: None}, {run.id: None})
    assert cohort.momentum.tolist() == [0.0]
    assert any("momentum = 0.0 assumed (default of torch's SGD)" in str(n) for n in cohort.notes)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("learning_rate", -1, "-1 is not allowed: it should be greater than 0"),
        ("warmup", 3, "3 is not allowed: no setting is called so"),
        ("adapter", "qlora", "'qlora' is not allowed: it should be 'full' or 'lora'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_words_of_its_own(
    name: str, value: object, says: str
) -> None:
    with pytest.raises(InputError, match=says) as refused:
        PartialSettings.checked({name: value}, argument="overrides")
    assert refused.value.key == name


def test_what_is_not_known_of_a_run_is_not_called_none(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("step,reward\n1,0.1\n2,0.2\n3,0.3\n")
    (run,) = read_runs(path)
    assert "None" not in repr(run)
    assert "K unknown" in repr(run)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (
            "/x/hub/models--Qwen--Qwen2.5-1.5B-Instruct/snapshots/989aa",
            "Qwen/Qwen2.5-1.5B-Instruct",
        ),
        ("C:\\hub\\models--org--a--b-7B\\snapshots\\1", "org/a--b-7B"),
        ("models--gpt2-1b/snapshots/1", "gpt2-1b"),
        ("/data/my-models--old/Qwen2.5-7B", "/data/my-models--old/Qwen2.5-7B"),
    ],
)
def test_a_path_into_the_cache_of_the_hub_names_its_model(given, name, write_state):
    (run,) = read_runs(write_state(), overrides={"model": given})
    assert run.model == name
