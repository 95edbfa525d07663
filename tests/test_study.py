"""A study folder: written whole or not at all, read back exactly, refused where it is none."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from synthetic import PLANS, made_up

import advisor.reporting
from advisor.advice import recommend
from advisor.diagnosis import diagnose
from advisor.errors import InputError, StudyError
from advisor.model.posterior import SCHEMA
from advisor.run.pilot_run import PilotRun
from advisor.study.study import (
    MANIFEST,
    check_folder,
    load_diagnoses,
    load_study,
    rewrite_report,
    trainer_config,
    write_study,
)

CONFIGS = {"trl_config.yaml", "verl_grpo.sh", "openrlhf_grpo.sh"}
NOTHING_LIVES = {"hazard.level": 2.0}


def silent(stage: str, share: float | None, detail: str) -> None:
    pass


def answer(posterior, **asked):
    return recommend(posterior, trials=40, weigh_pilots=False, **asked)


@pytest.fixture(scope="module")
def posterior():
    return made_up()


@pytest.fixture(scope="module")
def advice(posterior):
    return answer(posterior)


@pytest.fixture(scope="module")
def written(tmp_path_factory, posterior, advice):
    folder = tmp_path_factory.mktemp("studies") / "study"
    files = write_study(folder, posterior, advice, silent)
    return folder, files


@pytest.fixture
def study(written, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(written[0], tmp_path / "study")


@pytest.fixture
def no_drawing(monkeypatch):
    """Figures and report take seconds and are not what is asked here."""
    monkeypatch.setattr(advisor.reporting, "draw_all", lambda *given, **more: None)
    monkeypatch.setattr(
        advisor.reporting,
        "write_report",
        lambda posterior, advice, path, **parts: path.write_text("report"),
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# Round trip ------------------------------------------------------------------------------------


def test_what_is_loaded_is_what_was_written(written, posterior, advice):
    again, said = load_study(written[0])
    assert said == advice
    assert said.text == advice.text
    assert again.meta == posterior.meta
    assert again.draws.keys() == posterior.draws.keys()
    for name, values in posterior.draws.items():
        np.testing.assert_array_equal(again.draws[name], values)
    for name, values in posterior.pilots.items():
        np.testing.assert_array_equal(again.pilots[name], values)


def test_manifest_lists_every_file(written):
    folder, files = written
    manifest = json.loads((folder / MANIFEST).read_text())
    assert {*manifest["files"], MANIFEST} == contents(folder).keys()
    assert {path.relative_to(folder).as_posix() for path in files} == contents(folder).keys()
    assert {"posterior.nc", "recommendation.json", "report.html"} | CONFIGS <= set(
        manifest["files"]
    )
    assert any(name.startswith("figures/") for name in manifest["files"])


def test_new_study_takes_the_place_of_the_old(study, no_drawing, posterior, advice):
    longer = answer(posterior, steps=advice.steps + 1)
    write_study(study, posterior, longer, silent)
    assert load_study(study)[1] == longer
    assert not (study / "figures").exists()
    assert [path.name for path in study.parent.iterdir()] == ["study"]


def test_empty_folder_is_taken(tmp_path, no_drawing, posterior, advice):
    (tmp_path / "mine").mkdir()
    write_study(tmp_path / "mine", posterior, advice, silent)
    assert load_study(tmp_path / "mine")[1] == advice


def test_missing_parents_are_made(tmp_path, no_drawing, posterior, advice):
    write_study(tmp_path / "a" / "b" / "study", posterior, advice, silent)
    assert load_study(tmp_path / "a" / "b" / "study")[1] == advice


# What is not a study is left alone ---------------------------------------------------------------


def with_notes(folder: Path) -> None:
    (folder / "notes.txt").write_text("keep me")


def of_a_web_page(folder: Path) -> None:
    """A ``manifest.json`` is also what browsers call the description of an app."""
    (folder / MANIFEST).write_text('{"name": "My page", "icons": []}')
    (folder / "index.html").write_text("keep me")


def with_a_list_for_a_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text("[1, 2]")


def with_a_binary_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize(
    "fill", [with_notes, of_a_web_page, with_a_list_for_a_manifest, with_a_binary_manifest]
)
def test_folder_that_is_no_study_is_left_alone(tmp_path, no_drawing, posterior, advice, fill):
    folder = tmp_path / "precious"
    folder.mkdir()
    fill(folder)
    before = contents(folder)
    for attempt in (
        lambda: check_folder(folder),
        lambda: write_study(folder, posterior, advice, silent),
    ):
        with pytest.raises(InputError, match="nothing was overwritten") as refused:
            attempt()
        assert refused.value.argument == "out"
        assert refused.value.path == str(folder)
    assert contents(folder) == before
    with pytest.raises(StudyError, match="it is no study"):
        load_study(folder)


def test_file_of_that_name_is_left_alone(tmp_path, posterior, advice):
    (tmp_path / "study").write_text("keep me")
    with pytest.raises(InputError, match="nothing was overwritten"):
        write_study(tmp_path / "study", posterior, advice, silent)
    assert (tmp_path / "study").read_text() == "keep me"


@pytest.mark.parametrize("name", ["notes.txt", "figures/mine.png"])
def test_study_with_files_of_the_user_is_left_alone(study, no_drawing, posterior, advice, name):
    (study / name).write_text("keep me")
    before = contents(study)
    with pytest.raises(InputError, match=re.escape(f"'{name}'")) as refused:
        write_study(study, posterior, advice, silent)
    assert "nothing was overwritten" in str(refused.value)
    assert contents(study) == before
    assert load_study(study)[1] == advice


def test_parent_that_is_a_file_is_refused(tmp_path, no_drawing, posterior, advice):
    (tmp_path / "file").write_text("keep me")
    with pytest.raises(InputError, match="the study cannot be written") as refused:
        write_study(tmp_path / "file" / "study", posterior, advice, silent)
    assert refused.value.argument == "out"


def test_failure_half_way_leaves_the_old_study_whole(study, monkeypatch, posterior, advice):
    def full_disk(posterior: Any, advice: Any, path: Path, **parts: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(advisor.reporting, "draw_all", lambda *given, **more: None)
    monkeypatch.setattr(advisor.reporting, "write_report", full_disk)
    before = contents(study)
    with pytest.raises(InputError, match="No space left on device"):
        write_study(study, posterior, answer(posterior, steps=50), silent)
    assert contents(study) == before
    assert [path.name for path in study.parent.iterdir()] == ["study"]


# Damaged and older studies -----------------------------------------------------------------------


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00\x01")


def turned_into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage", [Path.unlink, emptied, cut_in_half, binary, turned_into_a_folder]
)
@pytest.mark.parametrize("name", ["recommendation.json", "posterior.nc"])
def test_damaged_study_is_refused_in_one_sentence(
    study: Path, name: str, damage: Callable[[Path], None]
):
    damage(study / name)
    with pytest.raises(StudyError) as refused:
        load_study(study)
    said = str(refused.value)
    assert said.startswith(f"{study / name}: ")
    assert refused.value.advice
    assert "\n" not in said
    # What a library says of its buffers helps nobody.
    assert "0x" not in said
    assert len(refused.value.problem) < 200


def test_answer_of_an_older_version_is_refused(study):
    path = study / "recommendation.json"
    said = json.loads(path.read_text())
    del said["frontier"]
    path.write_text(json.dumps(said))
    with pytest.raises(StudyError, match=r"\(at 'frontier'\).*another version.*advise"):
        load_study(study)


def test_posterior_of_an_older_schema_is_refused(study, posterior):
    provenance = posterior.meta.provenance.model_copy(update={"schema_version": SCHEMA - 1})
    older = replace(posterior, meta=posterior.meta.model_copy(update={"provenance": provenance}))
    older.save(study / "posterior.nc")
    with pytest.raises(StudyError, match=f"schema {SCHEMA - 1}, this version reads {SCHEMA}"):
        load_study(study)


def test_posterior_of_another_version_is_warned_of(study, posterior):
    provenance = posterior.meta.provenance.model_copy(update={"package": "0.0.1"})
    older = replace(posterior, meta=posterior.meta.model_copy(update={"provenance": provenance}))
    older.save(study / "posterior.nc")
    with pytest.warns(UserWarning, match=r"fitted by version 0\.0\.1"):
        load_study(study)


def test_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(StudyError, match="it is no study"):
        load_study(tmp_path / "nowhere")


# Configurations ----------------------------------------------------------------------------------


def test_configuration_runs_what_was_advised(advice):
    config = yaml.safe_load(trainer_config(advice, "trl"))
    assert config["learning_rate"] == advice.settings.learning_rate
    assert config["num_generations"] == advice.settings.group_size
    assert config["max_steps"] == advice.steps
    assert "NOT a recommendation" not in trainer_config(advice, "trl")


def test_run_with_a_goal_ends_there_unless_its_schedule_decays(advice):
    """A schedule that decays was planned for the whole budget, and would be another if cut."""
    earlier = advice.model_copy(update={"steps": 60})
    assert advice.settings.planned_steps == advice.steps > 60
    assert yaml.safe_load(trainer_config(earlier, "trl"))["max_steps"] == 60
    decaying = advice.settings.model_copy(update={"schedule": "cosine"})
    earlier = earlier.model_copy(update={"settings": decaying})
    assert yaml.safe_load(trainer_config(earlier, "trl"))["max_steps"] == advice.steps


@pytest.mark.parametrize("framework", ["trl", "verl", "openrlhf"])
def test_what_is_not_advised_is_marked(framework):
    infeasible = answer(made_up(moved=NOTHING_LIVES), steps=240)
    contact = answer(made_up(PLANS[:1]), steps=240)
    assert (infeasible.kind, contact.kind) == ("infeasible", "next_pilot")
    for said in (infeasible, contact):
        text = trainer_config(said, framework)
        assert f"# NOT a recommendation ({said.kind})" in text


def test_trainer_that_cannot_run_it_is_left_out(tmp_path, no_drawing, posterior, advice):
    settings = {"minibatches_per_refresh": 4, "planned_steps": 181}
    odd = advice.model_copy(
        update={"settings": advice.settings.model_copy(update=settings), "steps": 181}
    )
    files = write_study(tmp_path / "study", posterior, odd, silent)
    assert CONFIGS & {path.name for path in files} == {"trl_config.yaml"}
    with pytest.raises(InputError, match="181 optimizer steps"):
        trainer_config(odd, "verl")


# Diagnosis and report --------------------------------------------------------------------------


def test_diagnosis_of_the_pilots_stands_in_the_study(tmp_path, no_drawing, posterior, advice):
    run = PilotRun(id="hot", path="hot.csv", step=np.arange(1.0, 41.0),
                   series={"reward": np.where(np.arange(40) < 20, 0.8, 0.0)})  # fmt: skip
    judged = [diagnose(run)]
    assert judged[0].collapse_step is not None
    write_study(tmp_path / "mine", posterior, advice, silent, judged)
    assert load_diagnoses(tmp_path / "mine") == judged
    write_study(tmp_path / "other", posterior, advice, silent)
    assert load_diagnoses(tmp_path / "other") == []


def test_report_is_written_anew(tmp_path, no_drawing, posterior, advice, monkeypatch):
    study = tmp_path / "mine"
    write_study(study, posterior, advice, silent)
    seen = {}

    def noted(own, asked, path, **parts):
        seen.update(parts, steps=asked.steps)
        path.write_text("anew")
        return path

    monkeypatch.setattr(advisor.reporting, "write_report", noted)
    assert rewrite_report(study).read_text() == "anew"
    assert seen["steps"] == advice.steps
    assert {"trl", "verl"} <= set(seen["configs"])
    with pytest.raises(StudyError):
        rewrite_report(tmp_path)
