"""Dialect, long sentences and bare P are counted where a person reads them, and only fall."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from studies import script

SCRIPTS = Path(__file__).parents[2] / "scripts"


check = script(SCRIPTS / "check_words.py")


@pytest.fixture
def tree(tmp_path):
    """A checkout of some files, with so many of each kind allowed."""

    def built(files, allowed):
        budget = "".join(f"{kind} = {allowed}\n" for kind in check.KINDS)
        files = {"scripts/budget.toml": f"[package]\nlines = 1\n\n[words]\n{budget}", **files}
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return tmp_path

    return built


def counts(root: Path) -> dict[str, int]:
    """Kinds of which something was found."""
    return {kind: count for kind, count in check.counted(check.everything(root)).items() if count}


@pytest.mark.evidence
def test_no_count_is_above_its_budget(capsys):
    assert check.main([]) == 0, capsys.readouterr().out[-2000:]


LONG = "The run " + "is very " * 15 + "long."
SHORT = "The run " + "is very " * 13 + "long."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The log tells its rate.", {"pages_dialect": 1}),
        ("Intervals hold 79 % and the curve goes on by it.", {"pages_dialect": 2}),
        ("It is the prior's word.", {"pages_dialect": 1}),
        ("One is worth more with P 55 %.", {"pages_bare_p": 1}),
        (LONG, {"pages_long_sentences": 1}),
        (f"- {LONG}\n- {LONG}", {"pages_long_sentences": 2}),
        ("| a | b |\n|---|---|\n| x | One is better with P 60 % |", {"pages_bare_p": 1}),
        # Nothing of the kind:
        ("The log contains its rate. Intervals cover 79 %.", {}),
        ("Hold the run. Pilots run besides; retold, skin.", {}),
        ("P(stable), P (diverges), `P`, $P G$ and the P-value.", {}),
        ("Stable where\n\n$$\nk<1, \\qquad P G>2.\n$$ (T1)\n\nSo be it.", {}),
        (SHORT, {}),
        (f"{SHORT} {SHORT}", {}),
        (f"- {SHORT}\n- {SHORT}", {}),
        ("```text\nThe log tells, with P 55 %.\n```", {}),
        ("Run `advisor told` and [this](docs/worlds/README.md).", {}),
    ],
)
def test_a_page_is_read_as_a_person_reads_it(tree, text, found):
    assert counts(tree({"README.md": text}, 0)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('"""The log tells."""', {"docstrings_dialect": 1}),
        (f'def f():\n    """{LONG}"""', {"docstrings_long_sentences": 1}),
        ("print(f'{1} lies beside the log')", {"texts_dialect": 1}),
        ("print(f'with P {1:.0%} it is better')", {"texts_bare_p": 1}),
        ("print('a part of what ' 'was told')", {"texts_dialect": 1}),
        ("def f(said_twice): return said_twice", {"names_dialect": 2}),
        ("from a import beside as alike", {"names_dialect": 2}),
        # Nothing of the kind:
        ('"""The log contains."""\n# beside', {}),
        ("stated, next_to, key = 'told', 'P', r'(told) \\w+'", {}),
        (
            'def f(x):\n    """Give.\n\n    x : '
            + "int, " * 40
            + 'int\n        A number.\n    """',
            {},
        ),
    ],
)
def test_docstrings_texts_and_names_of_the_package_count(tree, code, found):
    assert counts(tree({"advisor/one.py": code}, 0)) == found


def test_texts_of_toml_tables_count(tree):
    table = '[card]\nwords = "The reward stands still."\nkeys = ["told", "The run is dead."]\n'
    assert counts(tree({"advisor/cards.toml": table}, 0)) == {"texts_dialect": 1}


def test_one_more_than_allowed_fails_and_names_place_and_remedy(tree, capsys):
    root = tree({"README.md": "The log tells its rate, and tells it twice."}, 1)
    assert check.main([str(root)]) == 1
    printed = capsys.readouterr().out
    assert "README.md: 'tells': write 'contain, show, read'" in printed
    assert "pages_dialect: 2, 1 allowed" in printed
    assert check.main([str(tree({"README.md": "The log tells its rate."}, 1))]) == 0


def test_tightening_lowers_a_budget_and_never_raises_it(tree):
    root = tree({"README.md": "The log tells its rate, and tells it twice."}, 1)
    assert check.main([str(root), "--tighten"]) == 1
    text = (root / "scripts/budget.toml").read_text(encoding="utf-8")
    assert text.startswith("[package]\nlines = 1\n")
    assert "pages_dialect = 1\n" in text
    assert len(re.findall(r"^\w+ = 0$", text, re.MULTILINE)) == len(check.KINDS) - 1
