"""What the pages say of the package is so: names in examples, formats, commands, links."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

import advisor
from advisor.cli import app
from advisor.runs import readers

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
LINKED = [*PAGES, *ROOT.glob("*.md"), *sorted((ROOT / "case_studies").glob("**/README.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"^advisor ([a-z-]+)", re.MULTILINE)


def fences(language: str) -> list[tuple[Path, str]]:
    return [
        (page, code)
        for page in (*PAGES, ROOT / "CONTRIBUTING.md")
        for found, code in FENCE.findall(page.read_text(encoding="utf-8"))
        if found == language
    ]


def exists(name: str) -> bool:
    """Whether a public name, or a module of the package, is there."""
    module = ROOT / name.replace(".", "/")
    public = name.removeprefix("advisor.") in advisor.__all__
    return public or module.with_suffix(".py").is_file() or module.is_dir()


def unknown(code: str) -> set[str]:
    """Names of the package that an example uses and that do not exist."""
    used = {node.module or "" for node in ast.walk(ast.parse(code)) if type(node) is ast.ImportFrom}
    names = {name for name in used if name.startswith("advisor")}
    names |= {f"advisor.{name}" for name in re.findall(r"\badvisor\.(\w+)\b(?!\.\w+ import)", code)}
    return {name for name in names if not exists(name)}


@pytest.mark.parametrize(("page", "code"), fences("python"), ids=lambda value: str(value)[-30:])
def test_examples_use_names_that_exist(page, code):
    assert unknown(code) == set()


def test_names_in_running_text_exist():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = {f"advisor.{name}" for name in re.findall(r"`advisor\.(\w+)", text)}
    assert {name for name in named if not exists(name)} == set()


def test_an_example_with_a_wrong_name_is_found():
    wrong = "import advisor\nadvisor.nobody()\nfrom advisor.no_room import x"
    assert unknown(wrong) == {"advisor.no_room", "advisor.nobody"}


def test_commands_exist():
    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    used = {name for _, code in fences("sh") for name in COMMAND.findall(code)}
    assert used <= known
    assert len(used) >= 8


def test_every_format_that_is_read_has_a_row():
    named = [reader.name.partition(" (")[0] for reader in readers()]
    text = (ROOT / "docs/logs.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")}
    assert set(named) - rows == set()
    assert len(named) >= 12


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    gone = [link for link in links if not (page.parent / link).exists()]
    assert gone == []


RESULT = re.compile(r"`(\w+\.json)`")


@pytest.mark.parametrize(
    "page", sorted((ROOT / "case_studies").glob("*/README.md")), ids=lambda page: page.parent.name
)
def test_results_that_a_study_names_are_there(page):
    named = set(RESULT.findall(page.read_text(encoding="utf-8")))
    assert {name for name in named if not any(page.parent.rglob(name))} == set()


def test_forecasts_of_the_demo_on_its_study_page_are_those_it_prints():
    forecast = re.compile(r"\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\]")
    printed = (ROOT / "docs/demo_output.txt").read_text(encoding="utf-8")
    page = (ROOT / "case_studies/tiny_transformer/README.md").read_text(encoding="utf-8")
    outcomes = printed.partition("Forecast and outcome")[2]
    assert forecast.findall(page.partition("## The demo")[2]) == forecast.findall(outcomes) != []


MOST_STUDIES = 12


def test_every_study_has_its_line_and_there_are_twelve_at_most():
    folders = {path.parent.name for path in ROOT.glob("case_studies/*/README.md")}
    text = (ROOT / "case_studies/README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\w+)\]\(\1/README\.md\) \|", text, re.MULTILINE)
    assert sorted(listed) == sorted(folders)
    assert len(listed) <= MOST_STUDIES
