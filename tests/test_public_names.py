"""The public names: verbs and nouns, one table, seen by type checkers, cheap to import."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from simulated_runs import Plan, made_up_posterior, rising

import advisor
from advisor.advice import AXES
from advisor.reporting import Missing

STUB = Path(advisor.__file__).with_suffix(".pyi")


TWO_RUNS = [Plan().run(rising(40), name=name) for name in ("a", "b")]


def is_private(node):
    """Whether a stub's import is for its own annotations."""
    return all(name.asname is None or name.asname.startswith("_") for name in node.names)


def stubbed():
    """Names that the stub imports, by their modules."""
    found = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):  # written out, for its keywords
            found.setdefault(advisor._HOME[node.name], set()).add(node.name)
        if isinstance(node, ast.ImportFrom) and not is_private(node):
            found.setdefault(node.module, set()).update(name.name for name in node.names)
            # A name is public in a stub only where it is imported under itself.
            assert all(name.asname == name.name for name in node.names)
    return found


def test_type_checkers_read_the_same_names():
    listed: dict[str, set[str]] = {}
    for names in (advisor._NAMES, advisor._OLDER):
        for home, own in names.items():
            listed.setdefault(home, set()).update(own.split())
    assert stubbed() == listed


def test_keywords_are_written_out_for_completion():
    """Control: the fields of the models themselves, which the stub must not fall behind."""
    of_advise, of_what_if = (
        [line.target.id for line in node.body if isinstance(line, ast.AnnAssign)]
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert of_advise == [*advisor.Request.model_fields, *advisor.Search.model_fields]
    assert of_what_if == [*AXES, "steps"]


def test_homes_of_the_table_are_modules():
    for home, names in advisor._NAMES.items():
        module = importlib.import_module(home)
        assert all(hasattr(module, name) for name in names.split())


def test_errors_of_the_call_itself_stay_as_they_are(monkeypatch):
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'runs'"):
        advisor.fit()
    with pytest.raises(advisor.InputError, match="there is no argument 'nonsense'"):
        advisor.advise(made_up_posterior(), nonsense=3)

    def failing(run: advisor.PilotRun):
        raise TypeError("our own")

    monkeypatch.setattr(importlib.import_module("advisor.diagnosis"), "diagnose", failing)
    with pytest.raises(TypeError, match="our own"):
        advisor.diagnose(TWO_RUNS[0])


def test_values_that_cannot_be_are_named():
    posterior = made_up_posterior(draws=20)
    for verb, wrong, said in (
        ("what_if", {"learning_rate": "fast"}, "`learning_rate`: 'fast' is no learning_rate. Give"),
        ("watch", {"settings": {"lr": 1e-6}}, "key 'lr', `settings`: 1e-06 is not allowed: no se"),
        ("watch", {"settings": {"learning_rate": "x"}}, "key 'learning_rate', `settings`: 'x' is"),
    ):
        with pytest.raises(advisor.InputError, match=re.escape(said)):
            getattr(advisor, verb)(posterior, **wrong)


def test_trainers_and_places_that_cannot_be_are_named(tmp_path):
    posterior = made_up_posterior(draws=20)
    advice = advisor.advise(posterior, steps=60, trials=20, weigh_pilots=False)
    with pytest.raises(advisor.InputError, match="`trainer`: 'x' is none of the trainers"):
        advisor.export(advice, "x")
    with pytest.raises(advisor.InputError, match="`path`: the report cannot be written"):
        advisor.report(posterior, advice, tmp_path, drawn=[Missing("a", "none", "none")])
    (tmp_path / "file").touch()
    with pytest.raises(advisor.InputError, match="`folder`: the figures cannot be written"):
        advisor.plot(posterior, advice, tmp_path / "file", drawn=[])
