"""Texts of templates: every name that a macro uses is known to the words that load it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import jinja2.nodes
import pytest
from jinja2.meta import find_undeclared_variables

import advisor
from advisor.common import Kind, Words

FOLDER = Path(advisor.__file__).parent
SPOKEN = {
    "advice/answer.txt.j2": ("advisor.advice.wording", "say_of_answer"),
    "advice/pilots.txt.j2": ("advisor.advice.wording", "say_of_pilots"),
    "backtesting/backtest.txt.j2": ("advisor.backtesting.scores", "_say"),
    "cli/inspect.txt.j2": ("advisor.cli.inspection", "WORDS"),
    "findings/describe.txt.j2": ("advisor.findings.gates", "say"),
    "model/words.txt.j2": ("advisor.model.priors", "say"),
    "monitoring/watch.txt.j2": ("advisor.monitoring.decision", "_say"),
    "reporting/figures.txt.j2": ("advisor.reporting.figure", "_TEXTS"),
}
MADE_WHEN_CALLED = {"cli/markdown.md.j2": {"escaped", "is_pasted"}, "cli/what_if.txt.j2": set()}


def unknown(text: str, known: set[str]) -> set[str]:
    """Names of a template that nothing gives it."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    tree = environment.parse(text)
    # Of a name that one branch sets, Jinja thinks that another may use it.
    own = {name.name for name in tree.find_all(jinja2.nodes.Name) if name.ctx == "store"}
    return find_undeclared_variables(tree) - known - own - {"form"}


@pytest.mark.parametrize("file", SPOKEN)
def test_macros_use_names_that_are_known(file: str) -> None:
    module, name = SPOKEN[file]
    words: Words = getattr(import_module(module), name)
    text = (FOLDER / file).read_text(encoding="utf-8")
    assert unknown(text, set(words._known)) == set()
    assert unknown(
        text.replace("{% macro", "{{ nobody_gives_this }}{% macro", 1), set(words._known)
    )


def test_every_text_template_is_listed() -> None:
    found = {file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*.j2")}
    assert found - {"reporting/assets/report.html.j2"} == {*SPOKEN, *MADE_WHEN_CALLED}


def test_kinds_of_remarks_are_those_that_the_program_names() -> None:
    """The table gives the names: no type checker sees one that is misspelt."""
    code = [file.read_text(encoding="utf-8") for file in FOLDER.rglob("*.py")]
    named = {name for text in code for name in re.findall(r"\bKind\.([A-Z_]+)\b", text)}
    assert named == {kind.name for kind in Kind}
    with pytest.raises(AttributeError):
        Kind.FIRST_LOKO  # noqa: B018
