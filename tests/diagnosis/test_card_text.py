"""Cards as text: what a log calls its runs and rewards stays text."""

from __future__ import annotations

import json
import re

import numpy as np
from made_runs import falling, make, noise

from advisor.diagnosis import Diagnosis, diagnose

ROWS = 60
BAD = "<script>|"


def hacked(part):
    """A run that fails by a part of that name."""
    fallen = falling(ROWS, 30, 0.6, 0.1) + 0.02 * noise(1, ROWS)
    total = np.linspace(0, 3, ROWS)
    parts = {f"correct {part}": fallen, "format": total}
    return make(total + 0.01 * noise(2, ROWS), parts=parts).with_updates(id=f"a/{part}")


def test_a_hostile_name_is_text_in_json():
    found = diagnose(hacked(BAD))
    assert found.verdict == "FAIL"
    assert json.loads(Diagnosis.json_of([found]))[0]["id"] == f"a/{BAD}"


def test_card_lines_give_number_interval_threshold_and_source():
    card = diagnose(make(falling(ROWS, 30) + 0.02 * noise(1, ROWS))).card("collapse")
    lines = card.lines
    assert lines[0].startswith("FAIL  Collapse: The reward fell")
    assert re.search(r"share of the reward lost: 0\.9\d+ \[.*\], threshold 0.333 \(", lines[1])
    assert lines[2].startswith("  steps 3")
