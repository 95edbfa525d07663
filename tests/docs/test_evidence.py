"""Every number of the evidence pages and of the README follows from a committed result."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("derive", ROOT / "docs/evidence/derive.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


derive = load()
PAGES = derive.pages()
LINK_OR_CODE = re.compile(r"\]\([^)]*\)|`[^`]*`|docs/theory, T\d+|arXiv:[\d.]+")
NUMBER = re.compile(r"\d*\.\d+|\d+ ?%|\d+ of \d+")


@pytest.fixture(scope="module")
def right() -> dict[str, str]:
    return derive.numbers()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_marked_number_is_that_of_the_result(page, right):
    assert derive.wrong(page.read_text(encoding="utf-8"), right) == []


def test_the_evidence_pages_mark_hundreds_of_numbers():
    marked = sum(len(derive.MARKED.findall(page.read_text(encoding="utf-8"))) for page in PAGES)
    assert marked > 200


def unmarked(text: str) -> list[str]:
    """Decimals, percentages and counts that carry no name, beside the levels of a question."""
    text = derive.MARKED.sub("", LINK_OR_CODE.sub("", text))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    # The first column names what was asked; levels of intervals and of shares are no results.
    cells = [cell for row in rows for cell in row.split("|")[2:]]
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    kept = re.sub(r"80 %|95 %|5 %", "", " ".join([*cells, *prose]))
    kept = re.sub(r"(at|below|above|of|P [<>]) 0\.\d+|1\.01|T\d+", "", kept)
    return NUMBER.findall(kept)


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda path: path.name)
def test_no_result_stands_without_a_name(page):
    assert unmarked(page.read_text(encoding="utf-8")) == []


def test_a_result_without_a_name_is_found():
    assert unmarked("The error was 0.139 on these runs.") == ["0.139"]
    assert unmarked("| runs | 12 of 13 |") == ["12 of 13"]


def test_a_number_that_differs_from_the_result_is_found(right):
    text = "error 0.999<!--forecast.all.advisor.mae--> of the range"
    assert derive.wrong(text, right) == ["forecast.all.advisor.mae is 0.156, not 0.999"]
    assert "not derived" in derive.wrong("0.1<!--forecast.nobody-->", right)[0]
    assert derive.wrong(derive.corrected(text, right), right) == []


def test_another_result_makes_the_page_wrong(tmp_path):
    studies = tmp_path / "case_studies"
    shutil.copytree(
        ROOT / "case_studies",
        studies,
        ignore=lambda folder, names: [
            name
            for name in names
            if not (Path(folder) / name).is_dir() and not name.endswith((".json", ".jsonl.gz"))
        ],
    )
    loop = studies / "closed_loop/closed_loop.json"
    result = json.loads(loop.read_text(encoding="utf-8"))
    result["summary"]["advisor, small pilots"]["regret_mean"] *= 2
    loop.write_text(json.dumps(result), encoding="utf-8")
    page = (ROOT / "docs/evidence/advice.md").read_text(encoding="utf-8")
    assert derive.wrong(page, derive.numbers(studies)) == ["loop.advisor.mean is 0.006, not 0.003"]


def test_the_readme_shows_what_the_demo_printed():
    printed = (ROOT / "docs" / "demo_output.txt").read_text(encoding="utf-8")
    assert f"```text\n{printed}```" in (ROOT / "README.md").read_text(encoding="utf-8")
