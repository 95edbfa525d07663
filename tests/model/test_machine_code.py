"""Machine code on disk: kept where the user says, and renewed with every formula."""

from __future__ import annotations

import shutil
from pathlib import Path

import numba
import pytest

from advisor.model.fast import density, kernel, machine_code
from advisor.model.fast.code_cache import SOURCES
from advisor.model.fast.machine_code import cache_folder, compiled

PACKAGE = Path(machine_code.__file__).parents[2]
FILES = SOURCES


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The sources copied, and the module looking at the copies."""
    for name in FILES:
        copy = tmp_path / "advisor" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, copy)
    monkeypatch.setattr(
        machine_code, "__file__", str(tmp_path / "advisor" / "model" / "fast" / "machine_code.py")
    )
    return tmp_path / "advisor"


def test_copies_have_the_folder_of_the_sources(elsewhere, monkeypatch):
    copied = cache_folder()
    monkeypatch.setattr(
        machine_code, "__file__", str(PACKAGE / "model" / "fast" / "machine_code.py")
    )
    assert cache_folder() == copied


@pytest.mark.parametrize("name", FILES)
def test_every_change_of_a_source_has_a_folder_of_its_own(elsewhere, name):
    before = cache_folder()
    source = elsewhere / name
    text = source.read_text(encoding="utf-8")
    source.write_text(text + "\n# changed\n", encoding="utf-8")
    changed = cache_folder()
    assert changed != before
    assert changed.parent == before.parent
    source.write_text(text, encoding="utf-8")
    assert cache_folder() == before


def test_other_files_do_not_matter(elsewhere):
    before = cache_folder()
    other = elsewhere / "findings" / "text.py"
    other.parent.mkdir()
    other.write_text("", encoding="utf-8")
    assert cache_folder() == before


def test_folder_that_numba_was_given_is_used(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert cache_folder().parent == tmp_path / "user" / "grpo-advisor"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().parent == Path.home() / ".cache" / "grpo-advisor"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    assert cache_folder().parent == tmp_path / "numba" / "grpo-advisor"


def test_code_is_kept_in_the_folder_and_numba_is_left_as_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(machine_code, "_FOLDER", str(tmp_path / "code"))
    given = numba.config.CACHE_DIR

    def twice(value: float) -> float:
        return 2.0 * value

    assert compiled(twice)(1.5) == 3.0
    assert given == numba.config.CACHE_DIR
    kept = [path.suffix for path in (tmp_path / "code").rglob("*") if path.is_file()]
    assert sorted(kept) == [".nbc", ".nbi"]


def test_modules_that_hold_compiled_code_are_watched():
    """What is compiled, and what its constants come from, is among the sources."""
    for module in (kernel, density):
        assert f"{module.__name__.removeprefix('advisor.').replace('.', '/')}.py" in SOURCES
    watched = {f"advisor.{name.removesuffix('.py').replace('/', '.')}" for name in SOURCES}
    for module in (kernel, density):
        for line in Path(module.__file__).read_text(encoding="utf-8").splitlines():
            unrelated = "machine_code" in line or "theory.arrays" in line  # types only
            if line.startswith("from advisor.") and not unrelated:
                named = line.split()[1]
                names = line.split(" import ")[1].split(" as ")[0]
                assert named in watched or f"{named}.{names}" in watched, line
