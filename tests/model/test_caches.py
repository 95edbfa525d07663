"""Folders of other libraries: a temporary one where theirs cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from processes import python

from advisor.model.compat import use_caches

NOWHERE = "/dev/null/home"
"""No folder can be made below a file, not even by root."""
NAMES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")


@pytest.fixture
def home(monkeypatch):
    """Set where a home is; nothing else says where caches lie."""

    def at(place):
        monkeypatch.setenv("HOME", str(place))
        for name in NAMES:
            monkeypatch.setenv(name, "")  # what is set here is put back after the test
            monkeypatch.delenv(name)

    return at


def test_a_home_that_cannot_be_written_is_left_for_a_temporary_folder(home):
    home(NOWHERE)
    use_caches()
    found = {os.environ["XDG_CACHE_HOME"], os.environ["MPLCONFIGDIR"]}
    (folder,) = found
    assert Path(folder).is_dir()
    Path(folder, "arviz").mkdir()


def test_a_home_that_can_be_written_is_used(home, tmp_path):
    home(tmp_path)
    use_caches()
    assert not [name for name in NAMES if name in os.environ]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_only_what_cannot_be_written_is_replaced(home, tmp_path, monkeypatch):
    home(NOWHERE)
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "fonts"))
    use_caches()
    assert os.environ["MPLCONFIGDIR"] == str(tmp_path / "fonts")
    assert os.environ["XDG_CACHE_HOME"] != ""


@pytest.mark.evidence
def test_arviz_and_matplotlib_load_in_a_read_only_home_without_a_word():
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    code = (
        "from advisor.model.compat import import_arviz, use_caches; import os\n"
        "import_arviz(); import pymc, matplotlib.font_manager\n"
        "print(os.environ['XDG_CACHE_HOME'])"
    )
    done = python("-W", "ignore", "-c", code, env=clean | {"HOME": NOWHERE})
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(done.stdout.strip()).exists()  # gone with the process
