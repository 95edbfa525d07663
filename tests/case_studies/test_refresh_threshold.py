"""The refresh threshold in a network: its stale samples, and that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from processes import python
from studies import modules_of

pytest.importorskip("torch")

FOLDER = Path(__file__).parents[2] / "case_studies" / "refresh_threshold"


@pytest.fixture(scope="module")
def study():
    with (
        modules_of("tiny_transformer", ("table",)) as trainer,
        modules_of("refresh_threshold", ("plan",)) as own,
    ):
        yield SimpleNamespace(**trainer, **own)


@pytest.fixture(scope="module")
def base(study):
    return study.table.pretrain(study.table.TASKS["sort"], "s", 20)


@pytest.fixture
def easy(study, monkeypatch):
    """A task that a base hardly trained earns something at: an even first token."""

    class Even(study.table.Task):
        def verify(self, index, completions):
            return (completions[:, 0] % 2 == 0).float()

    monkeypatch.setitem(study.table.TASKS, "sort", Even("sort"))
    return Even("sort")


def run_at(study, *place, optimizer="adamw", steps=5):
    setup = study.plan.Setup(optimizer, "sort", "s", (), (), (), (), steps=steps)
    return setup.run(study.plan.Cell(*place, False), 1, 4)


def test_samples_older_than_the_run_are_those_of_its_start(study, base, easy) -> None:
    norms = [
        study.table.train_row(run_at(study, 1e-1, interval, lag, optimizer="sgd", steps=5), base)[
            "grad_norm"
        ]
        for interval, lag in ((1, 9), (5, 0), (1, 0))
    ]
    assert norms[0] == norms[1]
    assert norms[0] != norms[2]
    assert min(norms[0]) > 0.1


def test_advisor_is_told_lag_optimizer_and_the_effective_rate(study) -> None:
    run = run_at(study, 3e-3, 1, 16, optimizer="sgd", steps=4)
    row = {"task": "sort", "size": "s", "params": 27_000, "lr": 3e-3, "G": 8, "K": 1}
    row |= {"prompts": 16, "beta1": 0.9, "use_is": False, "reward": [0.1, 0.2, 0.1, 0.3]}
    (read,) = study.plan.as_runs([run], [row])
    known = read.hyperparameters
    assert (known.lag, known.optimizer, known.momentum) == (16, "sgd", 0.9)
    assert known.learning_rate == pytest.approx(3e-2)
    assert known.importance_ratio is False


def test_quick_runs_and_leaves_the_cache_alone(tmp_path) -> None:
    before = set(FOLDER.glob(".cache/*"))
    done = python(FOLDER / "run.py", "--quick", "--out", "quick.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (setup,) = json.loads((tmp_path / "quick.json").read_text(encoding="utf-8"))["setups"]
    assert {(c["interval"], c["lag"]) for c in setup["cells"]} == {(1, 0), (8, 0), (1, 4)}
    assert set(FOLDER.glob(".cache/*")) == before
