"""The short form of case_studies/faults: what machines do to files, in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
from studies import modules_of

PARTS = ("damage", "kills", "disks", "writers", "journals")
NAMES = ("run", "formats", "injuries", "commands", *PARTS)


@pytest.fixture(scope="module")
def faults() -> Iterator[ModuleType]:
    with modules_of("faults", NAMES) as modules:
        yield modules["run"]


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_lost_hung_or_printed_raw(faults, part, tmp_path):
    found = faults.run(part, faults.QUICK[part], findings=tmp_path)
    assert faults.failures(part, found) == [], found
    if part == "disks" and "why" in found:
        pytest.skip(found["why"])


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
