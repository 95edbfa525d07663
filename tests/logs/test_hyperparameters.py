"""What is assumed where a run does not tell its settings, and that it is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.logs.read import read_runs
from advisor.model.cohort import build_cohort
from advisor.run.pilot_run import Hyperparameters


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
    completed, assumptions = Hyperparameters(optimizer=optimizer).completed()
    assert completed.momentum == momentum
    assert [line for line in assumptions if line.startswith("momentum")] == [said]


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_a_stated_momentum_stays(momentum: float) -> None:
    completed, assumptions = Hyperparameters(optimizer="sgd", momentum=momentum).completed()
    assert completed.momentum == momentum
    assert not any(line.startswith("momentum") for line in assumptions)
    assert completed.completed() == (completed, [])


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
    assert any("momentum = 0.0 assumed (default of torch's SGD)" in n for n in cohort.notes)
