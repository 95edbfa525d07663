"""The refresh threshold in a network: its curvature, its stale samples, and that it runs."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

FOLDER = Path(__file__).parents[2] / "case_studies" / "refresh_threshold"
TRAINER = FOLDER.parent / "tiny_transformer"


@pytest.fixture(scope="module")
def study():
    sys.path[:0] = [str(FOLDER), str(TRAINER)]
    try:
        import curvature
        import grpo
        import job
        import measuring
        import records
        import stiffness
        import table
        import training
        import verdict
    finally:
        sys.path.remove(str(FOLDER))
        sys.path.remove(str(TRAINER))
    return SimpleNamespace(
        curvature=curvature,
        grpo=grpo,
        job=job,
        measuring=measuring,
        records=records,
        stiffness=stiffness,
        table=table,
        training=training,
        verdict=verdict,
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


@pytest.mark.parametrize("group", [2, 4, 8])
@pytest.mark.parametrize("logit", [-2.0, 0.3, 3.0])
def test_gradient_of_the_objective_is_that_of_every_possible_group(study, group, logit) -> None:
    chance = torch.sigmoid(torch.tensor(logit, dtype=torch.float64))
    expected = 0.0
    for outcome in itertools.product((0.0, 1.0), repeat=group):
        rewards = torch.tensor([outcome], dtype=torch.float64)
        likely = (chance**rewards * (1 - chance) ** (1 - rewards)).prod()
        score = rewards - chance  # of a Bernoulli in its logit
        expected += float(likely * (study.grpo.advantages(rewards, "group") * score).mean())
    at = torch.tensor([logit], dtype=torch.float64, requires_grad=True)
    value = study.curvature.objective(torch.nn.functional.logsigmoid(at), group)
    (found,) = torch.autograd.grad(value, at)
    assert float(found) == pytest.approx(expected, rel=1e-9)


def test_held_samples_of_a_bandit_follow_nothing_at_once(study) -> None:
    logits = torch.tensor([0.4, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    log_policy = logits.log_softmax(dim=0)
    cross_entropy = -(log_policy.detach().exp() * log_policy).sum()
    held = study.curvature.held_objective(log_policy[:1], cross_entropy[None], 8)
    whole = study.curvature.objective(log_policy[:1], 8)
    fresh, product = (study.curvature.hessian(value, [logits]) for value in (held, whole))
    for unit in torch.eye(3, dtype=torch.float64):
        assert fresh(unit).abs().max() < 1e-12
        assert product(unit).abs().max() > 1e-2
    (of_held,) = torch.autograd.grad(held, logits, retain_graph=True)
    (of_whole,) = torch.autograd.grad(whole, logits, retain_graph=True)
    torch.testing.assert_close(of_held, of_whole)


def test_products_are_those_of_the_dense_hessian(study) -> None:
    logits = torch.tensor([0.4, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    value = study.curvature.objective(logits.log_softmax(dim=0)[:1], 8)
    product = study.curvature.hessian(value, [logits])
    dense = torch.autograd.functional.hessian(
        lambda x: study.curvature.objective(x.log_softmax(dim=0)[:1], 8), logits.detach()
    )
    found = torch.stack([product(unit) for unit in torch.eye(3, dtype=torch.float64)])
    torch.testing.assert_close(found, dense)


def test_lanczos_finds_the_most_negative_eigenvalue_of_a_preconditioned_matrix(study) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(60, 60, generator=generator)
    matrix = matrix + matrix.T - 30 * torch.outer(*[torch.randn(60, generator=generator)] * 2) / 60
    scale = torch.rand(60, generator=generator) + 0.5
    operator = study.curvature.preconditioned(lambda v: matrix @ v, scale)
    found = study.curvature.stiffest(operator, 60, steps=40)
    exact = np.linalg.eigvals((matrix / scale[:, None]).numpy()).real.min()
    assert -found.curvature == pytest.approx(exact, rel=1e-4)
    assert found.residual < 1e-2
    assert study.curvature.along(operator, found.vector) == pytest.approx(found.curvature, rel=1e-3)


def test_curvature_of_the_network_is_the_change_of_its_gradient(study, base) -> None:
    task = study.training.TASKS["sort"]
    policy = copy.deepcopy(base).double()
    look = study.measuring.Look(policy, task, 8, prompts=64)
    direction = torch.randn(look.gradient.numel(), generator=torch.Generator().manual_seed(1))
    direction = (direction / direction.norm()).double()
    image, step, sides = look.whole(direction), 1e-4, []
    start = torch.nn.utils.parameters_to_vector(policy.parameters()).detach()
    for sign in (1, -1):
        moved = copy.deepcopy(policy)
        torch.nn.utils.vector_to_parameters(start + sign * step * direction, moved.parameters())
        log_chance = study.measuring.completion_statistics(moved, look.prompts, look.answers)[0]
        value = study.curvature.objective(log_chance.sum(dim=1), 8) / look.length
        sides.append(study.curvature.gradient(value, list(moved.parameters())))
    slope = (sides[0] - sides[1]) / (2 * step)
    assert float((slope - image).norm() / image.norm()) < 1e-3
    # On samples of the present policy the held gradient is the whole one, but for their noise.
    assert float(torch.cosine_similarity(look.held_gradient, look.gradient, dim=0)) > 0.8


def test_without_lag_a_run_is_that_of_the_tables(study, base, easy, monkeypatch) -> None:
    job = study.job.Job(3e-4, 4, 3, False, 1, 6)
    monkeypatch.setitem(study.table.TASKS, "sort", easy)
    row = study.table.train_row(study.records.Run("sort", "s", job.config), base)
    found = [moment.logged for moment in study.training.follow(base, easy, job.config)]
    assert max(row["grad_norm"]) > 0.1
    for name in ("reward", "grad_norm"):
        assert row[name] == pytest.approx([step[name] for step in found], abs=1e-5)


def test_samples_older_than_the_run_are_those_of_its_start(study, base, easy) -> None:
    lagged = study.job.Job(1e-1, 4, 1, False, 1, 5, lag=9, optimizer="sgd")
    held = study.job.Job(1e-1, 4, 5, False, 1, 5, optimizer="sgd")
    fresh = study.job.Job(1e-1, 4, 1, False, 1, 5, optimizer="sgd")
    norms = [
        [moment.logged["grad_norm"] for moment in study.training.follow(base, easy, job.config)]
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


def test_runs_that_were_kept_are_found_again(study) -> None:
    assert study.job.Job(3e-4, 8, 16, False, 1, 256).path.name == "0.0003_8_16_0_1_256.json"
    others = {study.job.Job(3e-4, 8, 1, False, 1, 256, lag=a, optimizer=o).path
              for a in (0, 4) for o in ("adamw", "sgd")}  # fmt: skip
    assert len(others) == 4


def test_outcomes_bracket_the_ratio_they_need(study) -> None:
    cells = [
        {"interval": k, "lag": 0, "lost_a_third": lost, "runs": 3}
        for k, lost in ((1, 0), (4, 1), (16, 2), (64, 3))
    ]
    found = study.stiffness.implied(cells, 0.1)
    assert found["first_lost"] == [16, 0]
    assert found["low"] == pytest.approx(study.stiffness.limit(16, 0) / 0.1)
    assert found["high"] == pytest.approx(study.stiffness.limit(4, 0) / 0.1)
    assert found["low"] < found["high"]


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
    assert out.with_suffix(".svg").exists()
    after = {path for folder in (FOLDER, TRAINER) for path in (folder / ".cache").glob("*")}
    # Another study may be filling its cache; this one names none of its runs so.
    assert not {path for path in after - before if "_24" in path.name}
