"""``advisor plot`` as the user of a finished study meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from undrawn import draw_nothing

from advisor.advice import advise
from advisor.study import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, posterior: Any) -> Path:
    folder = tmp_path_factory.mktemp("plot") / "study"
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        Study(posterior, advise(posterior, trials=40)).save(folder)
    return folder


@pytest.fixture
def plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any) -> Any:
    """Run the command in an empty folder; its exit code and what it said."""
    monkeypatch.chdir(tmp_path)

    def once(*arguments: object) -> tuple[int, str]:
        code, out, err = run("plot", *arguments)
        return code, " ".join((out + err).split())

    return once


@pytest.mark.evidence
def test_one_figure_in_the_format_asked_for(study: Path, plot: Any, tmp_path: Path) -> None:
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for kind, start in starts.items():
        assert plot(study, "posteriors", "--format", kind)[0] == 0
        assert (study / "figures" / f"posteriors.{kind}").read_bytes().startswith(start)
    assert plot(study, "posteriors", "--out", "new/folder/f.svg")[0] == 0
    assert (tmp_path / "new/folder/f.svg").read_bytes().startswith(b"<?xml")
    assert plot(study, "posteriors")[0] == 0
    assert (study / "figures/posteriors.png").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.evidence
def test_nothing_of_the_users_is_overwritten(study: Path, plot: Any, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    kept = tmp_path / "figures" / "posteriors.png"
    kept.write_text("mine")
    code, said = plot(study, "all", "--out", "figures")
    assert code == 2
    assert "nothing was overwritten" in said
    assert [path.name for path in kept.parent.iterdir()] == ["posteriors.png"]
    assert kept.read_text() == "mine"
    assert plot(study, "posteriors", "--out", kept)[0] == 2
