"""The numbers of the theory page are unique, and every citation in the project has its place."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITATION = re.compile(r"docs/(theory|model), ((?:[TM]\d+(?:, | and | to )?)+)")
DEFINED = re.compile(r"^\$\$ \(([TM]\d+)\)$|^\(([TM]\d+)\)=$", re.MULTILINE)
SOURCES = ("advisor/**/*.py", "priors/*.toml", "tests/**/*.py", "case_studies/**/*.py")
PAGES = ("case_studies/*/README.md", "docs/**/*.md")


def defined(page: str) -> list[str]:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    return [first or second for first, second in DEFINED.findall(text)]


def cited(text: str) -> set[tuple[str, str]]:
    """Pages and numbers that a text cites; a comment's line may break between the two."""
    text = re.sub(r"\s*\n\s*#?\s*", " ", text)
    found = CITATION.findall(text)
    return {(page, name) for page, names in found for name in re.findall(r"[TM]\d+", names)}


def missing(text: str) -> set[tuple[str, str]]:
    return {(page, name) for page, name in cited(text) if name not in defined(page)}


def test_numbers_are_given_once_and_none_is_left_out():
    for page, letter in (("theory", "T"), ("model", "M")):
        names = defined(page)
        assert len(names) == len(set(names))
        assert set(names) == {f"{letter}{number}" for number in range(1, len(names) + 1)}
    assert len(defined("theory")) >= 39


def test_every_citation_in_code_priors_and_studies_has_its_equation():
    this = Path(__file__).resolve()
    for pattern in (*SOURCES, *PAGES):
        for path in ROOT.glob(pattern):
            if path != this and ".cache" not in path.parts:
                assert missing(path.read_text(encoding="utf-8")) == set(), path


def test_a_citation_without_an_equation_is_found():
    assert missing("so (docs/theory, T8 and T999)") == {("theory", "T999")}
    assert missing("so (docs/theory,\n    # T998)") == {("theory", "T998")}
