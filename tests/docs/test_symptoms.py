"""The page of symptoms says what `diagnose` answers, and every symptom has its cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import script

FOLDER = Path(__file__).parents[2] / "docs/howto"
CAUSES = {
    "reward flat": "WARNING  Advantage degeneracy",
    "KL explodes": "FAIL  Dynamical instability",
    "answers shrink": "FAIL  Reward hacking",
    "entropy gone": "FAIL  Policy concentration",
    "falls after a plateau": "FAIL  Collapse",
}


@pytest.fixture(scope="module")
def made():
    return script(FOLDER / "symptoms.py")


def test_answers_on_the_page_are_those_of_diagnose(made):
    """Where they differ: python docs/howto/symptoms.py"""
    assert made.answers() == (FOLDER / "symptoms_output.txt").read_text(encoding="utf-8")


def test_every_symptom_has_a_section_and_its_cause(made):
    page = (FOLDER / "symptoms.md").read_text(encoding="utf-8")
    printed = (FOLDER / "symptoms_output.txt").read_text(encoding="utf-8")
    assert list(made.symptoms()) == list(CAUSES)
    blocks = dict(
        block.split("]\n", 1) for block in ("\n" + printed).split("\n[") if "]\n" in block
    )
    for name, cause in CAUSES.items():
        assert f"## {name[0].upper()}{name[1:]}\n" in page
        assert f':start-after: "[{name}]"' in page
        assert cause in blocks[name]
        # The negative control: it is no cause of the others.
        others = [block for other, block in blocks.items() if other != name]
        assert cause in ("FAIL  Collapse", "WARNING  Advantage degeneracy") or not any(
            cause in block for block in others
        )
