"""What is published: does a stranger's install run the main job?"""

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml
from processes import python

ROOT = Path(__file__).parents[1]


def built(kind, folder):
    """The package as a file of a kind."""
    python("-m", "hatchling", "build", "-t", kind, "-d", folder, cwd=ROOT, check=True)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return built("sdist", tmp_path_factory.mktemp("sdist"))


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
    quiet = ("-q", "--no-deps", "--no-compile", "--disable-pip-version-check")
    python("-m", "pip", "install", *quiet, "--target", site, wheel, check=True, cwd=tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(site), "NO_COLOR": "1"}
    there = {"env": environment, "cwd": tmp_path}
    where = python("-c", "import advisor; print(advisor.__file__)", check=True, **there)
    assert where.stdout.startswith(str(site))
    done = python("-m", "advisor", "demo", "--out", "study", **there)
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
        assert answer in python("-m", "advisor", *question, check=True, **there).stdout


@pytest.mark.evidence
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_stranger_installs_it_and_its_smoke_tests_pass(wheel, sdist, tmp_path, version):
    """In an environment that holds nothing else, with the tests of the source distribution."""
    own = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    own |= {"PYENV_VERSION": version, "NO_COLOR": "1", "NUMBA_CACHE_DIR": str(tmp_path / "numba")}

    def run(*command, where=tmp_path):
        return subprocess.run(
            list(map(str, command)), env=own, cwd=where, capture_output=True, text=True, check=False
        )

    try:
        is_there = run(f"python{version}", "-c", "").returncode == 0
    except FileNotFoundError:
        is_there = False
    if not is_there:
        pytest.skip(f"no Python {version} here")
    made = run(f"python{version}", "-m", "venv", "env")
    assert made.returncode == 0, made.stderr
    python = tmp_path / "env/bin/python"
    installed = run(python, "-m", "pip", "install", "-q", f"grpo-advisor[test] @ {wheel.as_uri()}")
    assert installed.returncode == 0, installed.stderr[-2000:]
    where = run(python, "-c", "import advisor; print(advisor.__file__, advisor.__version__)").stdout
    assert where.startswith(str(tmp_path / "env"))
    assert where.split()[1] in wheel.name
    demo = run(tmp_path / "env/bin/advisor", "demo", "--out", "study")
    assert demo.returncode == 0, demo.stderr[-2000:]
    check_study(tmp_path / "study")
    (tmp_path / "source").mkdir()
    assert run("tar", "-xf", sdist, "-C", "source").returncode == 0
    (source,) = (tmp_path / "source").iterdir()
    shutil.rmtree(source / "advisor")  # what is tested is what was installed
    smoke = ["-m", "smoke", "-n", "0", "--ignore", "tests/test_package.py", "tests"]
    tested = run(python, "-m", "pytest", "-q", *smoke, where=source)
    assert tested.returncode == 0, tested.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", tested.stdout)[1]) >= 10


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
    for seed in (1, 2):
        came = last_evaluations(f"m_lr1.5e-4_g8_k1_seed{seed}")
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
