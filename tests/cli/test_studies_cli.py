"""``advisor studies`` as a user meets it: folders without a store, a store without a server."""

from __future__ import annotations

import json
import shutil

import pytest

from advisor.advice import advise
from advisor.cli.app import main
from advisor.study.study import Study
from advisor.testing import made_up_posterior


def run(arguments, capsys, code=0):
    with pytest.raises(SystemExit) as stopped:
        main(["studies", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    assert (stopped.value.code or 0) == code, captured.err + captured.out
    assert "Traceback" not in captured.err
    return captured.out if code == 0 else captured.err


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with two studies, one of them two levels down, and one that is damaged."""
    folder = tmp_path_factory.mktemp("studies")
    posterior = made_up_posterior()
    for at, steps in ((folder / "may", 100), (folder / "old" / "april", 200)):
        answer = advise(posterior, steps=steps, trials=20, weigh_pilots=False)
        Study(posterior, answer).save(at)
    shutil.copytree(folder / "may", folder / "broken")
    (folder / "broken" / "recommendation.json").write_text("{")
    shutil.copytree(folder / "may", folder / "half-copied")
    (folder / "half-copied" / "posterior.nc").unlink()
    return folder


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/team.db"


def test_folders_are_listed_without_any_store_and_a_damaged_study_is_named(saved, capsys):
    shown = run(["list", saved], capsys)
    assert "may" in shown
    assert "april" in shown
    assert "2 studies" in shown
    told = json.loads(run(["list", saved, "--json"], capsys))
    assert {one["name"]: one["steps"] for one in told} == {"may": 100, "april": 200}
    with pytest.raises(SystemExit):
        main(["studies", "list", str(saved)])
    said = capsys.readouterr().err
    assert "broken" in said
    assert "half-copied" in said


def test_filters_are_the_same_for_folders_and_for_a_store(saved, store, capsys):
    run(["put", saved / "may", saved / "old" / "april", "--store", store], capsys)
    for where in ([saved], ["--store", store]):
        for filters, count in (
            (["--task", "sort"], 2),
            (["--task", "gsm8k"], 0),
            (["--kind", "infeasible"], 0),
            (["--since", "2099-01-01"], 0),
            (["--since", "2000-01-01", "--model", "tiny-m"], 2),
        ):
            told = json.loads(run(["list", *where, *filters, "--json"], capsys))
            assert len(told) == count, (where, filters)


def test_a_study_is_stored_once_and_found_by_name(saved, store, capsys):
    assert "may: stored" in run(["put", saved / "may", "--store", store], capsys)
    assert "was there already" in run(["put", saved / "may", "--store", store], capsys)
    run(["put", saved / "old" / "april", "--store", store, "--name", "spring"], capsys)
    told = json.loads(run(["compare", "may", "spring", "--store", store, "--json"], capsys))
    lines = {line["name"]: line for part in told["sections"] for line in part["lines"]}
    assert (lines["steps"]["one"], lines["steps"]["other"]) == (100, 200)
    assert lines["steps"]["differs"]
    assert not lines["task"]["differs"]
    assert "nobody" in run(["compare", "may", "nobody", "--store", store], capsys, code=2)


def test_the_store_may_stand_in_the_environment(saved, store, capsys, monkeypatch):
    monkeypatch.setenv("ADVISOR_STORE", store)
    run(["put", saved / "may"], capsys)
    assert len(json.loads(run(["list", "--json"], capsys))) == 1


def test_without_a_store_that_is_said(saved, capsys, monkeypatch):
    monkeypatch.delenv("ADVISOR_STORE", raising=False)
    assert "--store" in run(["put", saved / "may"], capsys, code=2)


def test_what_is_no_study_is_not_stored(saved, store, capsys):
    assert "no study" in run(["put", saved, "--store", store], capsys, code=2)
    assert "not the file that was written" in run(
        ["put", saved / "broken", "--store", store], capsys, code=2
    )
    assert json.loads(run(["list", "--store", store, "--json"], capsys)) == []


@pytest.mark.parametrize("where", ["folder", "store"])
@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (["--kind", "recomendation"], ["--kind", "'recomendation'", "next_pilot"]),
        (["--since", "20261101"], ["--since", "'20261101' is no date"]),
        (["--since", "1.11.2026"], ["--since", "'1.11.2026' is no date", "2026-11-01"]),
    ],
)
def test_a_filter_that_nothing_can_pass_is_refused(saved, store, capsys, where, filters, words):
    place = [saved] if where == "folder" else ["--store", store]
    message = run(["list", *place, *filters], capsys, code=2)
    assert all(word in message for word in words), message


def test_a_folder_that_is_not_there_is_no_empty_list(saved, capsys):
    assert "no such folder" in run(["list", saved / "mya"], capsys, code=2)
