"""The short form of `run.py`: what machines do to files, in seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from processes import python
from studies import modules_of

PARTS = ("damage", "single")
NAMES = ("run", "formats", "injuries", *PARTS)


@pytest.fixture(scope="module")
def faults() -> Iterator[ModuleType]:
    with modules_of(str(Path(__file__).parent), NAMES) as modules:
        yield modules["run"]


@pytest.mark.evidence
@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_lost_hung_or_printed_raw(faults, part, tmp_path):
    # In a process of its own: files are read in forks, which a worker's threads do not survive.
    done = python(faults.__file__, part, "--quick", "--findings", tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = json.loads(done.stdout)[part]
    assert faults.failures(part, found) == []


@pytest.mark.evidence
def test_a_reader_that_fails_is_a_finding(faults, tmp_path, monkeypatch):
    """Control: what reads, raises and hangs is told apart."""
    import formats

    def fails(folder: object) -> str:
        raise ZeroDivisionError("ours")

    example = formats.Example("made up", {"a": b"1 2 3"}, ("a",), fails)
    monkeypatch.setattr("damage.examples", lambda: [example])
    found = faults.run("damage", 20, findings=tmp_path)
    assert found["findings"] == 20
    assert faults.failures("damage", found) == ["damage: 20 findings"]
    assert "ZeroDivisionError" in found["examples_of_findings"][0]
    assert len(list(tmp_path.iterdir())) == 20
    # The same damage is made once more from the names alone.
    again = faults.run("again", 0, findings=tmp_path)
    assert (again["files"], again["findings"]) == (20, 20)
    whole = formats.Example("made up", {"a": b"1 2 3"}, ("a",), lambda folder: "read")
    monkeypatch.setattr("damage.examples", lambda: [whole])
    assert faults.run("again", 0, findings=tmp_path)["findings"] == 0
