"""The registry-shaped packages: each loads from its folder and runs a short study, offline."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import optuna
import pytest
import yaml
from hub_packages import REGISTRY, loaded

from advisor import InputError

TABLES = Path(__file__).parents[2] / "case_studies" / "tiny_transformer" / "tables"
PACKAGES = ("samplers/grpo_advisor", "pruners/grpo_advisor", "benchmarks/grpo_replay")
Problem = loaded("benchmarks/grpo_replay").Problem


@pytest.fixture(scope="module")
def problem():
    return Problem("mod_m")


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_what_the_registry_asks_for(package):
    folder = REGISTRY / package
    assert {path.name for path in folder.iterdir() if path.name != "__pycache__"} == {
        "__init__.py",
        "README.md",
        "LICENSE",
        "example.py",
        *(["runs.jsonl"] if package == "benchmarks/grpo_replay" else []),
    }
    text = (folder / "README.md").read_text()
    _, header, body = text.split("---\n", 2)
    told = yaml.safe_load(header)
    assert list(told) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert package.split("/")[0].removesuffix("s") in told["tags"]
    assert all(isinstance(version, str) for version in told["optuna_versions"])
    for part in ("## Abstract", "## APIs", "## Installation", "## Example"):
        assert part in body
    for name in loaded(package).__all__:
        assert name in body
        assert name in (folder / "example.py").read_text()
    compile((folder / "example.py").read_text(), "example.py", "exec")


def test_replayed_runs_are_those_of_the_tables():
    lines = (REGISTRY / "benchmarks/grpo_replay/runs.jsonl").read_text().splitlines()
    rows = [
        json.loads(line)
        for name in ("mod_m.jsonl", "late_collapse.jsonl")
        for line in (TABLES / name).read_text().splitlines()
    ]
    asked = [row for row in rows if (row["task"], row["size"]) != ("mod", "s")]
    assert len(asked) == len(lines) == 80
    for row, line in zip(asked, lines, strict=True):
        assert row == row | json.loads(line)


@pytest.mark.parametrize("table", Problem.tables)
def test_every_run_of_a_table_is_replayed_by_its_own_settings(table):
    problem = Problem(table)
    assert len(problem.rows) == {"mod_m": 40, "sort_m": 20, "sort_s": 20}[table]
    for row in problem.rows:
        own = {
            "learning_rate": row["lr"],
            "group_size": row["G"],
            "minibatches_per_refresh": row["K"],
        }
        assert problem.replayed(own) is row
        assert problem.rewards(own) == row["reward"]
        # A little off the rate of a run it is still that rate which answers, dead or alive.
        near = problem.replayed(own | {"learning_rate": 1.05 * row["lr"]})
        assert near["lr"] == row["lr"]


def test_a_table_that_is_none_is_refused():
    with pytest.raises(InputError, match=r"there is no table 'mod_xl'.*mod_m, sort_m, sort_s"):
        Problem("mod_xl")


def test_pruner_ends_replayed_runs_that_died(problem):
    pruner = loaded("pruners/grpo_advisor").AdvisorPruner(steps=problem.steps)
    values = {id(row): np.mean(row["reward"][-20:]) for row in problem.rows}
    ordered = sorted(problem.rows, key=lambda row: values[id(row)])
    study = optuna.create_study(direction="maximize", pruner=pruner)
    for row in (ordered[-1], ordered[0]):
        study.enqueue_trial(
            {
                "learning_rate": row["lr"],
                "group_size": row["G"],
                "minibatches_per_refresh": row["K"],
            }
        )
    study.optimize(problem, n_trials=2)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED"]
    assert study.trials[1].last_step < problem.steps
