"""A study folder: written whole or not at all, read back exactly, refused where it is none."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from simulated_runs import PLANS, made_up_posterior, rising, without_line
from undrawn import draw_nothing

import advisor.reporting
from advisor.advice import advise, export, next_pilot, what_if
from advisor.common import replacing, saving
from advisor.diagnosis import diagnose
from advisor.errors import InputError, KeptElsewhereError, StudyError
from advisor.model import Posterior
from advisor.runs import PilotRun
from advisor.study import Study, check_place

CONFIGS = {"trl_config.yaml", "verl_grpo.sh", "openrlhf_grpo.sh"}
NOTHING_LIVES = {"hazard.level": 2.0}


def answer(posterior, **asked):
    return advise(posterior, trials=40, weigh_pilots=False, **asked)


@pytest.fixture(scope="module")
def advice(posterior):
    return answer(posterior)


@pytest.fixture(scope="module")
def written(tmp_path_factory, posterior, advice):
    folder = tmp_path_factory.mktemp("studies") / "study"
    return folder, Study(posterior, advice).save(folder).files


@pytest.fixture
def study(written, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(written[0], tmp_path / "study")


@pytest.fixture
def no_drawing(monkeypatch):
    draw_nothing(monkeypatch)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# Round trip ------------------------------------------------------------------------------------


@pytest.mark.evidence
def test_what_is_loaded_is_what_was_written(written, posterior, advice):
    loaded = Study.load(written[0])
    again, said = loaded.posterior, loaded.recommendation
    assert said == advice
    assert said.text == advice.text
    assert again.meta == posterior.meta
    np.testing.assert_equal(again.draws, posterior.draws)
    np.testing.assert_equal(again.pilots, posterior.pilots)


@pytest.mark.evidence
def test_manifest_lists_every_file(written):
    folder, files = written
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {*manifest["files"], "manifest.json"} == contents(folder).keys()
    assert set(files) == contents(folder).keys()
    assert {"posterior.nc", "recommendation.json", "report.html"} | CONFIGS <= set(
        manifest["files"]
    )
    assert any(name.startswith("figures/") for name in manifest["files"])


# What is not a study is left alone ---------------------------------------------------------------


@pytest.mark.parametrize(
    "files",
    [
        {"notes.txt": b"keep me"},
        # Browsers call the description of an app so, too.
        {"manifest.json": b'{"name": "My page", "icons": []}', "index.html": b"keep me"},
        {"manifest.json": b"[1, 2]"},
        {"manifest.json": b"\xff\xfe\x00"},
    ],
)
def test_folder_that_is_no_study_is_left_alone(tmp_path, no_drawing, posterior, advice, files):
    folder = tmp_path / "precious"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    for attempt in (
        lambda: check_place(folder),
        lambda: Study(posterior, advice).save(folder),
    ):
        with pytest.raises(InputError, match="nothing was overwritten") as refused:
            attempt()
        assert refused.value.argument == "out"
        assert refused.value.path == str(folder)
    assert contents(folder) == files
    with pytest.raises(StudyError, match="it is no study"):
        Study.load(folder)


@pytest.mark.evidence
def test_failure_half_way_leaves_the_old_study_whole(study, monkeypatch, posterior):
    def full_disk(posterior: Any, advice: Any, path: Path, **parts: Any) -> None:
        raise OSError(28, "No space left on device")

    draw_nothing(monkeypatch)
    monkeypatch.setattr("advisor.common.saving.second_places", lambda path: iter(()))
    monkeypatch.setattr(advisor.reporting, "report", full_disk)
    before = contents(study)
    with pytest.raises(InputError, match="No space left on device"):
        Study(posterior, answer(posterior, steps=50)).save(study)
    assert contents(study) == before
    assert [path.name for path in study.parent.iterdir()] == ["study"]


# Damaged and older studies -----------------------------------------------------------------------


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def turned_into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.evidence
@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),
        cut_in_half,
        lambda path: path.write_bytes(b"\xff\xfe\x00\x01"),
        turned_into_a_folder,
    ],
)
@pytest.mark.parametrize("name", ["recommendation.json", "posterior.nc"])
def test_damaged_study_is_refused_in_one_sentence(
    study: Path, name: str, damage: Callable[[Path], None]
):
    damage(study / name)
    with pytest.raises(StudyError) as refused:
        Study.load(study)
    said = str(refused.value)
    assert said.startswith(f"{study / name}: ")
    assert refused.value.advice
    assert "\n" not in said
    # What a library says of its buffers helps nobody.
    assert "0x" not in said
    assert len(refused.value.problem) < 200


# Configurations ----------------------------------------------------------------------------------


def test_configuration_runs_what_was_advised(advice):
    config = yaml.safe_load(export(advice, "trl"))
    assert config["learning_rate"] == advice.settings.learning_rate
    assert config["num_generations"] == advice.settings.group_size
    assert config["max_steps"] == advice.steps
    assert "NOT a recommendation" not in export(advice, "trl")


@pytest.mark.parametrize("framework", ["trl", "verl", "openrlhf"])
def test_what_is_not_advised_is_marked(framework):
    infeasible = answer(without_line(made_up_posterior(moved=NOTHING_LIVES)), steps=240)
    contact = answer(made_up_posterior(PLANS[:1]), steps=240)
    assert (infeasible.kind, contact.kind) == ("infeasible", "next_pilot")
    for said in (infeasible, contact):
        text = export(said, framework)
        assert f"# NOT a recommendation ({said.kind})" in text


def test_what_is_written_of_a_next_pilot_is_that_pilot(posterior, advice):
    """The settings that an answer would not run in full must not be what a launch runs."""
    pilot = next_pilot(posterior, advice, steps=30)
    settings = pilot.settings.model_copy(update={"learning_rate": 1.23e-4})
    pilot = pilot.model_copy(update={"settings": settings})
    contact = advice.model_copy(update={"kind": "next_pilot", "next_pilot": pilot})
    text = export(contact, "trl")
    config = yaml.safe_load(text)
    assert (config["max_steps"], config["learning_rate"]) == (30, 1.23e-4)
    assert "# A pilot of 30 steps, not the full run: " in text
    assert "NOT a recommendation" not in text


@pytest.mark.evidence
def test_trainer_that_cannot_run_it_is_left_out(tmp_path, no_drawing, posterior, advice):
    settings = {"minibatches_per_refresh": 4, "planned_steps": 181}
    odd = advice.model_copy(
        update={"settings": advice.settings.model_copy(update=settings), "steps": 181}
    )
    saved = Study(posterior, odd).save(tmp_path / "study")
    assert CONFIGS & set(saved.files) == {"trl_config.yaml"}
    with pytest.raises(InputError, match="181 optimizer steps"):
        export(odd, "verl")


# Diagnosis and report --------------------------------------------------------------------------


@pytest.mark.evidence
def test_diagnosis_of_the_pilots_stands_in_the_study(tmp_path, no_drawing, posterior, advice):
    run = PilotRun(id="hot", path="hot.csv", step=np.arange(1.0, 41.0),
                   series={"reward": np.where(np.arange(40) < 20, 0.8, 0.0)})  # fmt: skip
    judged = [diagnose(run)]
    assert judged[0].collapse_step is not None
    Study(posterior, advice, tuple(judged)).save(tmp_path / "mine")
    assert list(Study.load(tmp_path / "mine").diagnoses) == judged
    Study(posterior, advice).save(tmp_path / "other")
    assert Study.load(tmp_path / "other").diagnoses == ()


@pytest.mark.evidence
def test_report_is_written_anew(tmp_path, no_drawing, posterior, advice, monkeypatch):
    study = tmp_path / "mine"
    Study(posterior, advice).save(study)
    seen = {}

    def noted(own, asked, path, **parts):
        seen.update(parts, steps=asked.steps)
        path.write_text("anew")
        return path

    monkeypatch.setattr(advisor.reporting, "report", noted)
    assert Study.load(study).report().read_text() == "anew"
    assert seen["steps"] == advice.steps
    assert {"trl", "verl"} <= set(seen["configs"])
    with pytest.raises(StudyError):
        Study.load(tmp_path).report()


# What a study can be asked ----------------------------------------------------------------------


@pytest.mark.evidence
def test_study_repeats_the_numbers_of_its_answer(written, advice):
    study = Study.load(written[0])
    (row,) = study.what_if().to_dict(orient="records")
    assert row["reward"] == pytest.approx(advice.reward.mean, rel=1e-12)
    assert row["p_stable"] == advice.stability.probability
    assert row["learning_rate"] == advice.settings.learning_rate
    assert row["completions"] == advice.cost.completions
    hotter = study.what_if(learning_rate=[advice.settings.learning_rate, 1e-2])
    assert hotter["reward"][0] == row["reward"]
    assert hotter["p_stable"][1] < row["p_stable"]


# A study is one thing ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other(tmp_path_factory, advice):
    """A study of another fit."""
    folder = tmp_path_factory.mktemp("others") / "study"
    other = made_up_posterior(PLANS[:4])
    with pytest.MonkeyPatch.context() as patched:
        draw_nothing(patched)
        Study(other, answer(other), (diagnose(PLANS[0].run(rising())),)).save(folder)
    return folder


@pytest.mark.evidence
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("name", ["posterior.nc", "recommendation.json"])
def test_parts_of_different_fits_are_refused(study, other, name, older):
    if older:  # versions that wrote no hashes
        manifest = json.loads((study / "manifest.json").read_text())
        assert manifest.pop("sha256").keys() >= {"posterior.nc", "recommendation.json"}
        (study / "manifest.json").write_text(json.dumps(manifest))
    Study.load(study)
    shutil.copy(other / name, study / name)
    with pytest.raises(StudyError, match=r"different fits|not the file that was written"):
        Study.load(study)


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "grpo-advisor study"}',
        '{"kind": "grpo-advisor study", "files": 7}',
        '{"kind": "grpo-advisor study", "files": [["a"]]}',
        '{"kind": "grpo-advisor study", "files": [], "sha256": 3}',
        "[" * 100_000,
        "{" + 200_000 * '"a":{',
        "null",
        "9" * 5000,
    ],
)
def test_odd_manifest_is_no_study(tmp_path, text):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "manifest.json").write_text(text)
    with pytest.raises(StudyError, match="it is no study"):
        Study.load(folder)
    with pytest.raises(InputError, match="it exists and is no study"):
        check_place(folder)


@pytest.mark.evidence
def test_killed_between_two_renames_the_older_is_still_read(study, other):
    older = saving._older(study)
    study.rename(older)
    assert Study.load(study).recommendation == Study.load(older).recommendation
    loaded = Study.load(other)
    with replacing(study) as draft:
        shutil.copytree(other, draft, dirs_exist_ok=True)
    assert Study.load(study).recommendation == loaded.recommendation
    assert [path.name for path in study.parent.iterdir()] == ["study"]


@pytest.mark.evidence
def test_page_that_cannot_be_written_leaves_the_older(study, monkeypatch):
    before = (study / "report.html").read_bytes()

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="the report cannot be written"):
        Study.load(study).report()
    assert (study / "report.html").read_bytes() == before
    assert not list(study.glob(".*"))


@pytest.mark.evidence
def test_study_whose_folder_another_holds_is_kept(
    tmp_path, no_drawing, posterior, advice, monkeypatch
):
    """A writer that was stopped, or that hangs on a network, costs nobody an answer."""
    monkeypatch.setattr(saving, "WAIT", 0.2)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "team" / "study"
    out.parent.mkdir()
    with (
        saving.owned(out),
        pytest.raises(KeptElsewhereError, match=r"does not end.*Nothing is lost") as said,
    ):
        Study(posterior, advice).save(out)
    assert Study.load(said.value.kept).recommendation == advice
    assert not out.exists()


@pytest.mark.evidence
def test_study_that_cannot_be_written_is_kept(tmp_path, no_drawing, posterior, advice, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(KeptElsewhereError, match="Nothing is lost") as said:
        Study(posterior, advice).save(tmp_path / "file" / "study")
    assert Study.load(said.value.kept).recommendation == advice
    with pytest.raises(InputError, match="the study cannot be written"):
        check_place(tmp_path / "file" / "study")


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_draws_that_are_not_finite_are_refused(posterior, tmp_path, value):
    draws = {name: values.copy() for name, values in posterior.draws.items()}
    draws["log_dispersion"][0, 0] = value
    replace(posterior, draws=draws, observations=None).save(tmp_path / "posterior.nc")
    with pytest.raises(StudyError, match="'log_dispersion' holds draws that are not finite"):
        Posterior.load(tmp_path / "posterior.nc")


def test_what_a_study_does_not_have_is_named(posterior, advice):
    loaded = Study(posterior, advice)
    with pytest.raises(InputError, match=r"no setting 'groupsize'\. Write group_size"):
        loaded.what_if(groupsize=4)
    with pytest.raises(InputError, match=r"no setting 'groupsize'\. Write group_size"):
        what_if(posterior, groupsize=4)
    with pytest.raises(InputError, match=r"no figure 'stabilty'\. Choose among decision, "):
        loaded.plot("stabilty")
