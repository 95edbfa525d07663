"""In-house words are counted where a user or a reader of code meets them, and only fall."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = load("check_words")


@pytest.fixture
def tree(tmp_path):
    """A package of one module, with so many words allowed."""

    def built(code, allowed):
        for name, text in (
            ("advisor/one.py", code),
            ("scripts/budget.toml", f"[package]\nlines = 1\ndialect = {allowed}\n"),
        ):
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return tmp_path

    return built


@pytest.mark.evidence
def test_the_package_has_no_more_of_them_than_before(capsys):
    assert check.main([]) == 0, capsys.readouterr().out[-2000:]


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("told = 1", 1),
        ("def f(said_twice): return said_twice", 2),
        ("print(f'{1} lies beside the log')", 1),
        ("class Untold: pass", 1),
        ("from a import beside as alike", 2),
        ("run.anew()", 1),
        ('"""Told."""\nX = 1\n"""Said."""\n# beside', 0),
        ("stated, next_to, unaided = 'besides', 'retold', 'skin'", 0),
    ],
)
def test_names_and_texts_count_and_docstrings_do_not(tree, capsys, code, count):
    assert check.main([str(tree(code, 99))]) == 0
    assert f"{count} in-house words, 99 allowed" in capsys.readouterr().out


def test_one_more_than_allowed_fails_and_tightening_lowers_the_number_only(tree):
    root = tree("told = said = 1", 1)
    assert check.main([str(root), "--tighten"]) == 1
    assert "dialect = 1\n" in (root / "scripts/budget.toml").read_text()
    root = tree("told = 1", 5)
    assert check.main([str(root), "--tighten"]) == 0
    assert (root / "scripts/budget.toml").read_text() == "[package]\nlines = 1\ndialect = 1\n"
