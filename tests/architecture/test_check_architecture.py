"""The check of the architecture finds what it says it finds, in trees made up to break one rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import script

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_architecture.py"


@pytest.fixture(scope="module")
def check():
    return script(SCRIPT)


CONTRACT = """
[[tool.importlinter.contracts]]
name = "Data flows one way"
type = "layers"
containers = ["advisor"]
layers = ["cli", "middle | beside", "ground"]
"""

TABLE = """# Architecture

| room | purpose |
|---|---|
| `advisor/cli` | what the user types |
| `advisor/middle` | what is computed here |
| `advisor/beside.py` | what stands beside it |
| `advisor/ground` | what everything rests on |
"""

DOCUMENTED = '''
def draw(size):
    """Draw.

    Parameters
    ----------
    size : int

    Returns
    -------
    drawn : list
    """
    return [size]
'''


@pytest.fixture
def house(tmp_path, check):
    """A tree that breaks no rule, with files replaced or added by path; None leaves one out."""

    def built(files=None):
        filler = "\n".join(f"x{n} = {n}" for n in range(1000)) + "\n"
        tree = {
            "pyproject.toml": CONTRACT,
            "ARCHITECTURE.md": TABLE,
            "advisor/__init__.py": '__all__ = ["draw"]\nfrom advisor.middle import draw\n',
            "advisor/cli/__init__.py": "",
            "advisor/cli/app.py": "from advisor.middle import draw\n",
            "advisor/middle/__init__.py": "from advisor.middle.drawing import draw\n",
            "advisor/middle/drawing.py": "from advisor.ground import x1\n" + DOCUMENTED,
            "advisor/beside.py": "import advisor.ground\n",
            "advisor/ground/__init__.py": "x1 = 1\n",
            "case_studies/one/run.py": filler,
        }
        for path, text in {**tree, **(files or {})}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                file.write_text(text)
        return check.House(tmp_path)

    return built


def told(check, house):
    return "\n".join(f"{one.rule} {one.where}: {one.what}" for one in check.violations(house))


def test_a_sound_house_passes(check, house):
    assert check.violations(house()) == []


def test_only_what_reads_a_sentence_decides_by_one(check, house):
    tree = house({"advisor/beside.py": 'x = y == "go on" or "No run is here" or y in ("a", "b")\n'})
    assert tree.read_back == []
    read = house({"advisor/beside.py": 'x = y == "go on and on"\nz = ", " in y\n'})
    assert read.read_back == [("advisor.beside", 1), ("advisor.beside", 2)]


def test_tightening_lowers_what_fell_and_raises_nothing(check, house):
    roomy = ALLOWED.replace("beside = 10", "beside = 0") + "\n[words]\npages_dialect = 7\n"
    tree = house({"scripts/budget.toml": roomy, "advisor/beside.py": "ONE = 1\n"})
    assert check.main([str(tree.root), "--tighten"]) == 1
    budget = check.House(tree.root).budget
    assert budget["lines"]["beside"] == budget["package"]["constants"] == 0
    assert budget["lines"]["cli"] == 1
    assert budget["package"]["lines"] < 5000
    assert budget["words"] == {"pages_dialect": 7}  # counted by scripts/check_words.py


def body(lines, docstring=""):
    return f'def long():\n    """{docstring}"""\n' + "    x = 1\n" * lines


def many(count, docstring=""):
    names = ", ".join(f"a{n}" for n in range(count))
    return f'def wide({names}):\n    """{docstring}"""\n'


CIRCLE = {
    "advisor/ground/one.py": "from advisor.ground.two import b\na = 1\n",
    "advisor/ground/two.py": "def b():\n    from advisor.ground.one import a\n    return a\n",
}
FOR_TYPES = {
    "advisor/ground/one.py": "from advisor.ground import two\n",
    "advisor/ground/two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
    "    from .one import a\n",
}

ALLOWED = """[package]
lines = 5000
modules = 9
only_imported_by_one_sibling = 0
imports_past_a_face = 0
constants = 0
rooms = 4
floors = 3

[lines]
beside = 10
cli = 10
ground = 10
middle = 100
"""
BROKEN = {
    "a room above its lines": (
        {"scripts/budget.toml": ALLOWED, "advisor/cli/app.py": "\n" * 11},
        "budget cli: 11 of lines, above 10",
    ),
    "a room without a budget": (
        {"scripts/budget.toml": ALLOWED.replace("beside = 10", ""), "advisor/beside.py": "x = 1"},
        "budget beside: 1 of lines, above 0",
    ),
    "an import past a face": (
        {
            "scripts/budget.toml": ALLOWED,
            "advisor/ground/floor.py": "x1 = 1\n",
            "advisor/beside.py": "from advisor.ground.floor import x1\n",
        },
        "budget advisor: 1 of imports_past_a_face, above 0",
    ),
    "a module more, for one sibling": (
        {
            "scripts/budget.toml": ALLOWED,
            "advisor/cli/flags.py": "x = 1\n",
            "advisor/cli/app.py": "from advisor.cli import flags\n",
        },
        "budget advisor: 1 of only_imported_by_one_sibling, above 0",
    ),
    "constants more than allowed": (
        {"scripts/budget.toml": ALLOWED, "advisor/beside.py": "ONE, _TWO = 1, 2\nthree = 3\n"},
        "budget advisor: 2 of constants, above 0",
    ),
    "sentences that decide": (
        {
            "scripts/budget.toml": ALLOWED.replace("constants = 0", "constants = 1"),
            "advisor/beside.py": 'WORDS = "no run moved"\n'
            'x = WORDS in y or y.startswith("a run is")\n',
        },
        "budget advisor: 2 of conditions_on_sentences, above 0",
    ),
    "a class name taken twice": (
        {
            "scripts/budget.toml": ALLOWED,
            "advisor/beside.py": "class Run: ...\n",
            "advisor/cli/app.py": "class Run: ...\n",
        },
        "budget advisor: 1 of class_names_taken_twice, above 0",
    ),
    "a test that knows the rooms from within": (
        {
            "scripts/budget.toml": ALLOWED,
            "tests/test_x.py": "from advisor.ground.floor import x1\nfrom advisor.cli import y\n",
        },
        "budget advisor: 1 of imports_of_tests_past_a_face, above 0",
    ),
    "a room that no contract names": (
        {
            "advisor/attic.py": "",
            "ARCHITECTURE.md": TABLE + "| `advisor/attic.py` | old and dusty |\n",
        },
        "rooms attic: is missing in the import contract",
    ),
    "a room that no table describes": (
        {"ARCHITECTURE.md": TABLE.replace("| `advisor/beside.py` | what stands beside it |\n", "")},
        "rooms beside: is missing in the table",
    ),
    "a room that is described and gone": (
        {"ARCHITECTURE.md": TABLE + "| `advisor/cellar` | wine and more wine |\n"},
        "rooms cellar: stands in the table of ARCHITECTURE.md and does not exist",
    ),
    "a room that the contract names and is gone": (
        {"pyproject.toml": CONTRACT.replace('"ground"', '"ground", "cellar"')},
        "rooms cellar: stands in the import contract and does not exist",
    ),
    "a room without a purpose": (
        {"ARCHITECTURE.md": TABLE.replace("what everything rests on", "ground")},
        "rooms ground: has no purpose",
    ),
    "a table in another order": (
        {
            "ARCHITECTURE.md": TABLE.replace("cli", "X")
            .replace("ground", "cli")
            .replace("X", "ground")
        },
        "its table has another order",
    ),
    "a path that is gone": (
        {"ARCHITECTURE.md": TABLE + "See `advisor/ground/gone.py`.\n"},
        "paths ARCHITECTURE.md: 'advisor/ground/gone.py' does not exist",
    ),
    "a name that is gone": (
        {"ARCHITECTURE.md": TABLE + "See `advisor.middle.erase`.\n"},
        "paths ARCHITECTURE.md: 'advisor.middle.erase' is defined nowhere",
    ),
    "a circle through a lazy import": (CIRCLE, "advisor.ground.one -> advisor.ground.two -> "),
    "a circle for type checkers": (FOR_TYPES, "advisor.ground.one -> advisor.ground.two -> "),
    "an import of a higher floor": (
        {"advisor/ground/up.py": "def f():\n    from advisor.cli import app\n    return app\n"},
        "arrows advisor.ground.up: imports up: advisor.cli.app",
    ),
    "an import by name of a higher floor": (
        {"advisor/ground/up.py": 'import importlib\nimportlib.import_module("advisor.cli.app")\n'},
        "arrows advisor.ground.up: imports up: advisor.cli.app",
    ),
    "an import of a neighbour": (
        {"advisor/middle/more.py": "import advisor.beside\n"},
        "arrows advisor.middle.more: imports across: advisor.beside",
    ),
    "too many entries": (
        {f"advisor/room{n}.py": "" for n in range(30)},
        "size advisor: 35 top-level entries, above 22",
    ),
    "a long body": ({"advisor/ground/long.py": body(61)}, "long has a body of 61 lines"),
    "many parameters": ({"advisor/ground/wide.py": many(9)}, "wide has 9 parameters, above 8"),
    "an export without a docstring": (
        {"advisor/middle/drawing.py": "def draw(size):\n    return size\n"},
        "draw has no docstring",
    ),
    "an export by a stub without a docstring": (
        {
            "advisor/__init__.py": "",
            "advisor/__init__.pyi": "from advisor.middle import draw as draw\n",
            "advisor/middle/drawing.py": "def draw(size):\n    return size\n",
        },
        "draw has no docstring",
    ),
    "an undocumented parameter": (
        {"advisor/middle/drawing.py": DOCUMENTED.replace("size : int", "width : int")},
        "draw does not document its parameter 'size'",
    ),
    "an undocumented result": (
        {
            "advisor/middle/drawing.py": DOCUMENTED.replace("(size):", "(size) -> list:").replace(
                "    Returns\n    -------\n    drawn : list\n", ""
            )
        },
        "draw does not document what it returns",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_each_violation_is_found(check, house, what):
    files, expected = BROKEN[what]
    assert expected in told(check, house(files))


@pytest.mark.parametrize(
    "files",
    [
        {"advisor/ground/long.py": body(60)},
        {"advisor/ground/long.py": body(61, "Do.\n\n    Long because: it is one table.\n    ")},
        {"advisor/ground/wide.py": many(8)},
        {"advisor/ground/wide.py": many(9, "Do.\n\n    Many parameters because: a kernel.\n    ")},
        {"advisor/cli/wide.py": many(30)},
        {"ARCHITECTURE.md": TABLE + "See `advisor/middle/`, `advisor.draw(1)` and `1/3`.\n"},
        {"advisor/cli/lazy.py": "def f():\n    from advisor.ground import x1\n    return x1\n"},
    ],
    ids=["60 lines", "a reason", "8 parameters", "another reason", "the CLI", "names", "downwards"],
)
def test_what_is_allowed_passes(check, house, files):
    assert check.violations(house(files)) == []


def test_it_ends_with_1_and_says_where(check, house, capsys):
    house({"advisor/ground/long.py": body(61)})
    assert check.main([str(house().root)]) == 1
    assert "advisor/ground/long.py:1" in capsys.readouterr().out
    house({"advisor/ground/long.py": body(60)})
    assert check.main([str(house().root)]) == 0
    assert "No violations." in capsys.readouterr().out
