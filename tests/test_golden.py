"""What is held equal while code is moved: names and commands here, logs and the demo by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from studies import script

SCRIPT = Path(__file__).parents[1] / "scripts" / "golden.py"


@pytest.fixture(scope="module")
def golden():
    return script(SCRIPT)


def test_names_and_commands_are_those_that_are_kept(golden):
    kept = json.loads(golden.GOLDEN.read_text())
    assert list(golden.differences(kept, golden.measured([], False))) == []


def test_what_is_gone_new_or_other_is_said(golden, tmp_path, capsys):
    before = golden.measured([], False)
    before["names"] = before["names"] | {"gone": True}
    before["commands"] = before["commands"] | {"advise": ["--old"]}
    del before["commands"]["plot"]
    file = tmp_path / "golden.json"
    file.write_text(json.dumps(before))
    assert golden.main(["--file", str(file)]) == 1
    said = capsys.readouterr().out
    assert "names: gone is gone" in said
    assert "commands: plot is new" in said
    assert "commands: advise was ['--old'], is " in said
    assert golden.main(["--file", str(file), "--write"]) == 0
    assert golden.main(["--file", str(file)]) == 0


def test_a_run_whose_reward_moved_has_another_digest(golden, tmp_path):
    rows = [{"step": step, "reward": step / 40} for step in range(1, 31)]
    log = tmp_path / "run.jsonl"
    digests = []
    for last in (rows[-1]["reward"], 0.5):
        rows[-1]["reward"] = last
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        digests += golden.runs(tmp_path).values()
    assert len(set(digests)) == 2
