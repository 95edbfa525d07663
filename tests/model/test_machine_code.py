"""Machine code on disk: kept where the user says, and renewed with every formula."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import numba
import pytest

from advisor.model.fast import machine_code

PACKAGE = Path(machine_code.__file__).parents[2]
FILES = machine_code.SOURCES


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


@pytest.mark.parametrize("name", FILES)
def test_every_change_of_a_source_has_a_folder_of_its_own(elsewhere, name):
    before = machine_code.cache_folder()
    source = elsewhere / name
    text = source.read_text(encoding="utf-8")
    source.write_text(text + "\n# changed\n", encoding="utf-8")
    changed = machine_code.cache_folder()
    assert changed != before
    assert changed.parent == before.parent
    source.write_text(text, encoding="utf-8")
    assert machine_code.cache_folder() == before


def test_code_is_kept_in_the_folder_and_numba_is_left_as_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(machine_code, "_FOLDER", str(tmp_path / "code"))
    given = numba.config.CACHE_DIR

    def twice(value: float) -> float:
        return 2.0 * value

    assert machine_code.compiled(twice)(1.5) == 3.0
    assert given == numba.config.CACHE_DIR
    (kept,) = (tmp_path / "code").iterdir()
    assert kept.suffix == ".code"
    assert f"numba{numba.__version__}" in kept.name


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A function in a cache of its own, and how often it was compiled."""
    folder = tmp_path / "code"
    monkeypatch.setattr(machine_code, "_FOLDER", str(folder))
    monkeypatch.setattr(machine_code.KeptCode, "has_complained", False)

    def again() -> int:
        def thrice(value: float) -> float:
            return 3.0 * value

        code = machine_code.compiled(thrice)
        assert code(1.5) == 4.5
        return sum(code.stats.cache_misses.values())

    return again, folder


def flipped(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 1
    file.write_bytes(whole)


def of_another_kind(file: Path) -> None:
    machine_code.write_code(file, pickle.dumps(("what", "numba", "does", "not", "know")))


def not_a_pickle(file: Path) -> None:
    machine_code.write_code(file, b"")


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:40]),
        flipped,
        of_another_kind,
        not_a_pickle,
        Path.unlink,
    ],
)
def test_damaged_code_is_compiled_anew(counted, damage):
    again, folder = counted
    assert again() == 1
    assert again() == 0
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    damage(file)
    assert again() == 1
    assert again() == 0
    assert len(file.read_bytes()) == len(whole)


def test_code_of_another_user_is_not_run(counted, monkeypatch):
    again, folder = counted
    again()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (file,) = folder.iterdir()
    if file.stat().st_uid:
        assert again() == 1
    os.chown(file, 4321, -1) if os.geteuid() == 0 else None
    assert machine_code.read_code(file) is None


def test_disk_that_takes_no_code_is_said_once_and_passed_over(counted, monkeypatch):
    again, folder = counted

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="machine code is not kept in .*No space left") as said:
        assert again() == again() == 1
    assert len(said) == 1
    assert list(folder.iterdir()) == []


def test_user_without_a_home_has_a_cache(monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", staticmethod(homeless))
    assert machine_code.code_folder("", PACKAGE).parent.parent.name == f"cache-{os.getuid()}"
