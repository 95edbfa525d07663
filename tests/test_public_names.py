"""The public names: verbs and nouns, one table, seen by type checkers, cheap to import."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from processor_time import times_a_plain_application
from simulated_runs import Plan, made_up_posterior, rising

import advisor
from advisor.advice import AXES
from advisor.cli import app
from advisor.reporting import Missing

STUB = Path(advisor.__file__).with_suffix(".pyi")
HEAVY = ("pymc", "arviz", "optuna", "matplotlib", "numba", "scipy", "pandas", "pydantic", "numpy")
NOUNS = {
    *("Study", "Posterior", "PilotRun", "Settings", "PartialSettings", "Request", "Priors"),
    *("Recommendation", "Sampling", "InputError", "NotConvergedError"),
}
MOST_PARAMETERS = 9
MOST_NAMES = 33
"""Thirty-two and the version."""
ELSEWHERE = ("demo", "priors", "mcp", "show")
"""Commands that are no verb of Python."""


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


def test_every_name_is_there():
    assert advisor.__all__ == sorted(advisor.__all__)
    for name in advisor.__all__:
        assert getattr(advisor, name) is not None
    assert set(advisor.__all__) >= NOUNS
    assert len(advisor.__all__) <= MOST_NAMES
    older = {name for names in advisor._OLDER.values() for name in names.split()}
    assert not older & set(advisor.__all__)
    assert all(getattr(advisor, name) is not None for name in older)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(advisor, "nonsense")  # noqa: B009


def test_commands_and_functions_have_the_same_names():
    commands = typer.main.get_command(app).commands
    verbs = {name.replace("-", "_") for name in commands} - set(ELSEWHERE)
    assert verbs <= set(advisor.__all__), verbs - set(advisor.__all__)
    assert set(ELSEWHERE) <= commands.keys()
    for verb in verbs:
        assert inspect.isfunction(getattr(advisor, verb))


def test_no_module_hides_a_verb():
    modules = {module.name for module in pkgutil.iter_modules(advisor.__path__)}
    assert not modules & set(advisor.__all__)


def test_no_function_has_more_parameters_than_one_can_remember():
    for name in advisor.__all__:
        found = getattr(advisor, name)
        if inspect.isfunction(found):
            assert len(inspect.signature(found).parameters) <= MOST_PARAMETERS, name


@pytest.mark.evidence
def test_import_is_cheap():
    code = f"import sys, advisor\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert times_a_plain_application("import advisor") < 1


@pytest.mark.evidence
def test_loading_a_study_needs_no_sampler():
    code = (
        "import sys\nfrom advisor import Study\n"
        "print([name for name in ('pymc', 'arviz', 'pytensor') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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


def test_verbs_are_themselves_in_another_process():
    assert advisor.fit is advisor.fit
    assert pickle.loads(pickle.dumps(advisor.fit)) is advisor.fit
