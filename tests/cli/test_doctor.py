"""``advisor doctor``: whether a fit can run, said without loading what would run it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from processor_time import times_a_plain_application
from rich.console import Console

from advisor.cli import installation as doctor
from advisor.cli.app import main
from advisor.cli.doctor import show
from advisor.cli.installation import EXTRAS, examine, is_compiled
from advisor.model.fast import code_cache

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ask(capsys):
    def once(*flags, code=0):
        with pytest.raises(SystemExit) as stopped:
            main(["doctor", *flags])
        assert (stopped.value.code or 0) == code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return captured

    return once


def without(monkeypatch, *names, **others):
    """Pretend that packages are missing, or are of another version."""
    real = metadata.version

    def version(name):
        if name in names:
            raise metadata.PackageNotFoundError(name)
        return others.get(name) or real(name)

    monkeypatch.setattr(metadata, "version", version)


@pytest.fixture
def printed():
    """What a terminal of 200 columns would show."""

    def of(health):
        console = Console(width=200, highlight=False, color_system=None, record=True)
        with console.capture() as capture:
            show(health, console)
        return capture.get()

    return of


def test_here_a_fit_can_run(ask):
    text = ask().out
    for name in ("advisor", "Python", "pymc", "arviz", "nutpie", "numba", "pytensor", "optuna"):
        assert f"  {name} " in text
    assert platform.python_version() in text
    assert metadata.version("numpy") in text
    assert "Samples:  nutpie" in text
    assert "A fit can run." in text
    assert ask("--quiet").out == ""


def test_json_holds_everything(ask):
    found = json.loads(ask("--json").out)
    assert found["can_fit"] is True
    assert found["problems"] == []
    versions = {package["name"]: package["version"] for package in found["packages"]}
    assert versions["nutpie"] == metadata.version("nutpie")
    assert found["cache"].keys() == {
        "folder",
        "bytes",
        "is_warm",
        "is_writable",
        "other_folders",
        "other_bytes",
    }
    assert found["cpus"] >= 1


def test_it_is_quick_and_loads_none_of_it():
    code = (
        "import sys\nfrom advisor.cli.app import main\n"
        "try:\n    main(['doctor'])\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = ('pymc', 'pytensor', 'arviz', 'nutpie', 'numba', 'numpy', 'pandas', 'optuna',\n"
        "    'matplotlib', 'scipy', 'torch')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
    assert times_a_plain_application(code) < 4


@pytest.mark.parametrize(
    ("missing", "others", "words"),
    [
        (["nutpie"], {}, ["nutpie is missing", "pip install 'nutpie"]),
        ([], {"pymc": "4.0"}, ["pymc 4.0 will not do", "pip install 'pymc"]),
        (["numba", "optuna"], {}, ["numba is missing", "optuna is missing"]),
    ],
)
def test_what_is_missing_is_exit_code_2_with_what_to_do(ask, monkeypatch, missing, others, words):
    without(monkeypatch, *missing, **others)
    captured = ask(code=2)
    assert "A fit cannot run." in captured.out
    assert all(word in captured.err for word in words), captured.err
    assert all(line.startswith("Problem: ") for line in captured.err.splitlines())
    found = json.loads(ask("--json", code=2).out)
    assert found["can_fit"] is False
    assert len(found["problems"]) == len(missing) + len(others)
    quiet = ask("--quiet", code=2)
    assert quiet.out == ""
    assert quiet.err == captured.err


def test_another_python_is_a_problem(monkeypatch, ask):
    monkeypatch.setattr(platform, "python_version", lambda: "3.9.1")
    assert "Python 3.9.1 is not supported" in ask(code=2).err


def test_versions_cannot_be_compared_by_hand(monkeypatch, ask):
    without(monkeypatch, "packaging")
    assert "pip install packaging" in ask(code=2).err


def test_a_checkout_that_is_not_installed_is_judged_by_what_is_there(monkeypatch):
    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", unknown)
    found = examine()
    assert found.can_fit
    assert {"numba", "nutpie", "pymc"} <= {package.name for package in found.packages}


# Extras ------------------------------------------------------------------------------------------


def test_every_extra_for_users_is_told():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    assert EXTRAS.keys() == extras.keys() - {"test", "lint", "docs", "notebook"}
    for name, (packages, _) in EXTRAS.items():
        asked = " ".join(extras[name])
        assert all(package in asked for package in packages)


def test_extras_are_no_condition(monkeypatch, printed):
    without(monkeypatch, "torch", "trl", "psycopg", "distributed", "ray")
    found = examine()
    assert found.can_fit
    assert not any(extra.is_there for extra in found.extras)
    text = printed(found)
    assert "missing psycopg" in text
    assert "pip install 'grpo-advisor[trainer]'" in text


# Cache -------------------------------------------------------------------------------------------


def test_folder_is_the_one_that_is_used(monkeypatch, tmp_path):
    from advisor.model.fast.machine_code import cache_folder

    assert code_cache.code_folder() == cache_folder()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert code_cache.code_folder().parent == tmp_path / "grpo-advisor"


def test_a_new_place_is_cold_and_others_are_counted(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    old = tmp_path / "grpo-advisor" / "0123456789abcdef"
    old.mkdir(parents=True)
    (old / "code.nbc").write_bytes(b"0" * 1000)
    cache = examine().cache
    assert not cache.is_warm
    assert cache.is_writable
    assert (cache.bytes, cache.other_folders, cache.other_bytes) == (0, 1, 1000)


def test_a_place_that_cannot_be_written_is_said_and_keeps_no_fit(monkeypatch, ask):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    captured = ask()
    assert "/proc/nothing" in captured.out
    assert "Set NUMBA_CACHE_DIR to a folder that you may write to." in captured.out
    assert "NOT WRITABLE" in captured.out


def test_a_fit_says_the_same_of_such_a_place(tmp_path):
    code = (
        "import numpy as np\n"
        "from advisor.model.fast.machine_code import compiled\n"
        "def twice(value):\n    return 2.0 * value\n"
        "print(compiled(twice)(1.5), compiled(twice)(2.5))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"NUMBA_CACHE_DIR": "/proc/nothing", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "3.0 5.0\n"
    assert "machine code is not kept in /proc/nothing" in done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1


@pytest.mark.slow
def test_compiled_code_is_found_and_aged(tmp_path):
    """Against numba itself: cold before, warm after, cold for another numba."""
    code = (
        "from advisor.cli.installation import is_compiled, _version\n"
        "from advisor.model.fast.code_cache import code_folder\n"
        "print(is_compiled(code_folder(), _version('numba')))\n"
        "import advisor\n"
        "from advisor.model.fast.density import draw_of\n"
        "from advisor.model.fast.sampler_coordinates import place\n"
        "from advisor.model.fast.tables import shape_of\n"
        "cohort = advisor.cohort_of(advisor.read_runs(advisor.demo_folder()))\n"
        "placed = place(cohort, advisor.load_priors('small_models'))\n"
        "draw_of(placed.block, shape_of(cohort))(placed.start(0))\n"
        "print(is_compiled(code_folder(), _version('numba')))\n"
        "print(is_compiled(code_folder(), '0.1.2'), is_compiled(code_folder(), None))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True", "False", "False"]


def test_damaged_code_is_cold(tmp_path):
    version = "".join(platform.python_version_tuple()[:2])
    files = [
        tmp_path / code_cache.code_name(f"density.{name}", version, "9.9.9", "0")
        for name in doctor.COMPILED
    ]
    for file in files:
        code_cache.write_code(file, b"code")
    assert is_compiled(tmp_path, "9.9.9")
    files[0].write_bytes(files[0].read_bytes()[:-1])
    assert not is_compiled(tmp_path, "9.9.9")
