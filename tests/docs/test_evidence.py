"""Claims of the README and of the evidence page follow from committed results, verdicts too."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
MOST_WORDS_OF_README = 650
MOST_ROWS_OF_README = 9


@pytest.fixture(scope="module")
def render() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("render", ROOT / "docs/evidence/render.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def checkout(render, tmp_path):
    """Copy of the pages, the claims, and the results that they name."""
    for name in ("README.md", "docs/evidence/index.md", "docs/claims.toml"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)
    for one in tomllib.loads((ROOT / "docs/claims.toml").read_text(encoding="utf-8"))["claim"]:
        sources = [value[0] for value in one["numbers"].values() if isinstance(value, list)]
        for name in (f"{one['study']}/README.md", *sources):
            place = tmp_path / "case_studies" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "case_studies" / name, place)
    return tmp_path


def change(path: Path, *keys: str, to: float) -> None:
    """Put another number into a result."""
    whole = found = json.loads(path.read_text(encoding="utf-8"))
    for key in keys[:-1]:
        found = found[key]
    found[keys[-1]] = to
    path.write_text(json.dumps(whole), encoding="utf-8")


def test_the_pages_are_what_the_claims_and_results_say(render, capsys):
    assert render.main(["--check"]) == 0, capsys.readouterr().out


def test_another_result_makes_every_page_stale_and_its_verdict_another(render, checkout, capsys):
    assert render.main(["--check", "--root", str(checkout)]) == 0
    study = checkout / "case_studies/language_model"
    change(study / "loop.json", "summary", "advisor", "regret", to=0.001)
    known = ("loop", "best constant of the other tasks")
    change(study / "compared.json", *known, "difference", to=-0.064)
    assert render.main(["--check", "--root", str(checkout)]) == 1
    stale = re.findall(r"^(\S+) is not what docs/claims.toml says", capsys.readouterr().out, re.M)
    assert stale == ["README.md", "case_studies/language_model/README.md", "docs/evidence/index.md"]
    assert render.main(["--root", str(checkout)]) == 0
    assert render.main(["--check", "--root", str(checkout)]) == 0
    (row,) = [row for row in render.claims(checkout) if row.readme == 1]
    assert "regret 0.001" in row.measured
    assert row.verdict == "yes"


@pytest.mark.parametrize(
    ("difference", "error", "verdict"),
    [
        (-0.1, 0.04, "yes"),
        (-0.1, 0.06, "not yet shown"),
        (0.0, 0.0, "no"),
        (0.1, 0.06, "not yet shown"),
    ],
)
def test_a_difference_within_two_standard_errors_is_not_yet_shown(
    render, checkout, difference, error, verdict
):
    result = checkout / "case_studies/language_model/compared.json"
    change(result, "loop", "best pilot", "difference", to=difference)
    change(result, "loop", "best pilot", "standard_error", to=error)
    (row,) = [row for row in render.claims(checkout) if row.readme == 2]
    assert row.verdict == verdict


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"summary", "advisor", "runs"', '"summary", "nobody", "runs"', "runs = .* leads nowhere"),
        ('study = "diagnose"', 'study = "diagnosis"', "no study diagnosis"),
        (
            '["low >= 0", "no"],\n  ["True"',
            '["0 > 1", "no"],\n  ["0 > 1"',
            "no rule of its verdict",
        ),
        ('["True", "not yet shown"]', '["True", "perhaps"]', "'perhaps'} is none of"),
    ],
)
def test_a_claim_without_its_result_is_an_error(render, checkout, old, new, message):
    claims = checkout / "docs/claims.toml"
    text = claims.read_text(encoding="utf-8")
    assert old in text
    claims.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(render.ClaimError, match=message):
        render.claims(checkout)


def test_every_claim_is_shown_once_on_the_page_of_evidence(render):
    text = (ROOT / "docs/evidence/index.md").read_text(encoding="utf-8")
    for row in render.claims():
        assert text.count(f"| {row.on} | {row.measured} ") == 1, row.on


def test_the_readme_is_short_and_begins_with_the_language_model(render):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= MOST_WORDS_OF_README
    places = sorted(row.readme for row in render.claims() if row.readme)
    assert places == list(range(1, len(places) + 1))
    assert len(places) <= MOST_ROWS_OF_README
    (first,) = [row for row in render.claims() if row.readme == 1]
    assert first.study == "language_model"


def test_the_readme_shows_whole_lines_of_what_was_printed():
    printed = (ROOT / "docs/advise_output.txt").read_text(encoding="utf-8").splitlines()
    shown = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    lines = shown[0].splitlines()
    places = [printed.index(line) for line in lines]
    assert places == sorted(places)
    assert {line for line in printed if line.startswith("Caution")} <= set(lines)
    assert "NOT SUPPORTED" not in "".join(printed)
