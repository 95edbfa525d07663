"""The versions that printed the demo are written down, are allowed, and the pages name the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from studies import script

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "docs" / "demo-environment-3.11.txt"


@pytest.fixture(scope="module")
def tool():
    return script(ROOT / "scripts" / "lock_environment.py")


def locked_versions():
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def test_every_dependency_is_locked_at_a_version_that_it_allows(tool):
    versions = locked_versions()
    for line in tool.dependencies():
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate({"python_version": "3.11"}):
            assert need.specifier.contains(versions[canonicalize_name(need.name)]), line
    assert "pytensor" in versions  # not asked for by name: pymc needs it
    assert "sphinx" not in versions  # an extra's


def test_what_is_needed_in_turn_is_locked_too(tool):
    found = tool.locked(["pandas>=2; python_version > '3'", "absent-package; python_version < '3'"])
    assert {"pandas", "numpy"} <= found.keys()
    assert "absent-package" not in found
