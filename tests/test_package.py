"""The wheel: does a stranger's install run the main job?"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_carries_presets_demo_data_and_templates(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for path in [*ROOT.glob("priors/*.toml")]:
        assert f"advisor/_data/priors/{path.name}" in names
    pilots = [name for name in names if name.endswith("trainer_state.json")]
    for folder, count in (("pilots", 12), ("demo/pilots", 4), ("demo/full_runs", 5)):
        assert sum(name.startswith(f"advisor/_data/{folder}/") for name in pilots) == count
        assert f"advisor/_data/{folder}/pilots.toml" in names
    assert "advisor/py.typed" in names
    assert any(name.endswith(".j2") for name in names)
    assert not any(name.startswith(("tests/", "case_studies/")) for name in names)


@pytest.mark.smoke
@pytest.mark.evidence
def test_the_installed_wheel_runs_the_demo_outside_the_checkout(wheel, tmp_path):
    site = tmp_path / "site"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile"),
            *("--disable-pip-version-check", "--target", str(site), str(wheel)),
        ],
        check=True,
        cwd=tmp_path,
    )
    environment = {**os.environ, "PYTHONPATH": str(site), "NO_COLOR": "1"}
    where = subprocess.run(
        [sys.executable, "-c", "import advisor; print(advisor.__file__)"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(site))
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "demo", "--out", "study"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for stage in ("Loading the sampler", "Checking convergence"):
        assert stage in done.stderr
    first = done.stdout.split("\n\n")[1]
    assert first.startswith("learning_rate=")
    check_study(tmp_path / "study")
    for question, answer in (
        (["what-if", "study", "--group-size", "8"], "K (mini-batches x epochs)"),
        (["export", "study", "--to", "verl"], "rollout.n="),
    ):
        asked = subprocess.run(
            [sys.executable, "-m", "advisor", *question],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer in asked.stdout


def last_evaluations(run):
    log = ROOT / "case_studies/tiny_transformer/demo/full_runs" / run / "trainer_state.json"
    rows = json.loads(log.read_text())["log_history"]
    values = [row["eval_reward"] for row in rows if "eval_reward" in row and row["step"] > 540]
    assert len(values) == 3
    return sum(values) / len(values)


def check_study(study):
    advice = json.loads((study / "recommendation.json").read_text())
    settings = advice["settings"]
    assert advice["kind"] == "recommendation"
    assert advice["target"]["model"] == "tiny-m"
    assert advice["stability"]["probability"] >= advice["level"] == 0.9
    assert 1e-4 <= settings["learning_rate"] <= 1e-3
    # Evaluations of the full runs that were trained at 1.5e-4, over their last tenth.
    for came in (
        last_evaluations("m_lr1.5e-4_g8_k1_seed1"),
        last_evaluations("m_lr1.5e-4_g8_k1_seed2"),
    ):
        assert advice["reward"]["low"] < came < advice["reward"]["high"]
    assert advice["pilots_cost"] <= 0.25 * advice["cost"]["completions"]
    config = yaml.safe_load((study / "trl_config.yaml").read_text())
    interval = (
        config["num_iterations"]
        * config["steps_per_generation"]
        / config["gradient_accumulation_steps"]
    )
    assert interval == settings["minibatches_per_refresh"] * settings["epochs_per_refresh"]
    assert config["num_generations"] == settings["group_size"]
    assert config["learning_rate"] == settings["learning_rate"]
    manifest = json.loads((study / "manifest.json").read_text())
    assert all((study / name).stat().st_size > 0 for name in manifest["files"])
    assert {"posterior.nc", "report.html", "figures/stability.svg"} <= set(manifest["files"])


def test_the_licence_and_the_entry_point_are_declared(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    (entries,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert "License-Expression: Apache-2.0" in archive.read(metadata).decode()
    assert "advisor = advisor.cli.app:main" in archive.read(entries).decode()
