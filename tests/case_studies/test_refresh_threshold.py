"""The refresh threshold in a network: its stale samples, and that it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

FOLDER = Path(__file__).parents[2] / "case_studies" / "refresh_threshold"
TRAINER = FOLDER.parent / "tiny_transformer"


@pytest.fixture(scope="module")
def study():
    sys.path[:0] = [str(FOLDER), str(TRAINER)]
    try:
        import job
        import records
        import table
        import training
    finally:
        sys.path.remove(str(FOLDER))
        sys.path.remove(str(TRAINER))
    return SimpleNamespace(
        job=job,
        records=records,
        table=table,
        training=training,
    )


@pytest.fixture(scope="module")
def base(study):
    return study.training.base_of("sort", "s", 20)


@pytest.fixture(scope="module")
def easy(study):
    """A task that a base hardly trained earns something at: an even first token."""

    class Even(study.training.Task):
        def verify(self, index, completions):
            return (completions[:, 0] % 2 == 0).float()

    return Even("sort")


def test_without_lag_a_run_is_that_of_the_tables(study, base, easy, monkeypatch) -> None:
    job = study.job.Job(3e-4, 4, 3, False, 1, 6)
    monkeypatch.setitem(study.table.TASKS, "sort", easy)
    row = study.table.train_row(study.records.Run("sort", "s", job.config), base)
    _, found = study.training.follow(base, easy, job.config)
    assert max(row["grad_norm"]) > 0.1
    for name in ("reward", "grad_norm"):
        assert row[name] == pytest.approx([step[name] for step in found], abs=1e-5)


def test_samples_older_than_the_run_are_those_of_its_start(study, base, easy) -> None:
    lagged = study.job.Job(1e-1, 4, 1, False, 1, 5, lag=9, optimizer="sgd")
    held = study.job.Job(1e-1, 4, 5, False, 1, 5, optimizer="sgd")
    fresh = study.job.Job(1e-1, 4, 1, False, 1, 5, optimizer="sgd")
    norms = [
        [step["grad_norm"] for step in study.training.follow(base, easy, job.config)[1]]
        for job in (lagged, held, fresh)
    ]
    assert norms[0] == norms[1]
    assert norms[0] != norms[2]


def test_advisor_is_told_lag_optimizer_and_the_effective_rate(study) -> None:
    job = study.job.Job(3e-3, 8, 1, False, 1, 4, lag=16, optimizer="sgd")
    row = {"task": "sort", "size": "s", "params": 27_000, "lr": 3e-3, "G": 8, "K": 1}
    row |= {"prompts": 16, "beta1": 0.9, "use_is": False, "reward": [0.1, 0.2, 0.1, 0.3]}
    (run,) = study.job.as_runs([job], [row])
    known = run.hyperparameters
    assert (known.lag, known.optimizer, known.momentum) == (16, "sgd", 0.9)
    assert known.learning_rate == pytest.approx(3e-2)
    assert known.importance_ratio is False


def test_quick_runs_and_leaves_the_caches_alone(tmp_path) -> None:
    before = {path for folder in (FOLDER, TRAINER) for path in (folder / ".cache").glob("*")}
    out = tmp_path / "quick.json"
    command = [sys.executable, str(FOLDER / "run.py"), "--quick", "--workers", "1"]
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (setup,) = json.loads(out.read_text(encoding="utf-8"))["setups"]
    assert {(c["interval"], c["lag"]) for c in setup["cells"]} == {(1, 0), (8, 0), (1, 4)}
    after = {path for folder in (FOLDER, TRAINER) for path in (folder / ".cache").glob("*")}
    # Another study may be filling its cache; this one names none of its runs so.
    assert not {path for path in after - before if "_24" in path.name}
