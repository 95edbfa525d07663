"""Cards as text: what a log calls its runs and rewards stays text."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import FEW, falling, make, noise, rising

from advisor.runs.diagnosis import diagnose
from advisor.runs.diagnosis.diagnose import (
    as_markdown,
    card_lines,
    diagnosis_json,
    plain,
    printable,
)

ROWS = 60
BAD = "<script>|"


def hacked(part):
    """A run that fails by a part of that name."""
    fallen = falling(ROWS, 30, 0.6, 0.1) + 0.02 * noise(1, ROWS)
    total = np.linspace(0, 3, ROWS)
    parts = {f"correct {part}": fallen, "format": total}
    return make(total + 0.01 * noise(2, ROWS), parts=parts).with_updates(id=f"a/{part}")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BAD, r"&lt;script&gt;\|"),
        ("a&lt;b", "a&amp;lt;b"),
        ("*bold* `code` ~~out~~", r"\*bold\* \`code\` \~\~out\~\~"),
        ("learning_rate __init__ _x_", r"learning_rate \_\_init\_\_ \_x\_"),
        ("[here](http://x)", r"[here\](http://x)"),
        ("[0.1, 0.2]", "[0.1, 0.2]"),
        ("$x$ # y \\", r"\$x\$ \# y \\"),
        ("two\nlines\r\n\tand\x1b[31m red\u2028", "two lines and [31m red"),
    ],
)
def test_markdown_shows_text_as_it_is(text, wanted):
    assert plain(text) == wanted


@pytest.mark.evidence
@FEW
@given(text=st.text(max_size=40))
def test_no_text_ends_a_cell_a_line_or_opens_a_tag(text):
    shown = plain(text)
    assert not re.search(r"[<>\n\r\x00-\x1f\u2028\u2029]", shown)
    assert not re.search(r"(?<!\\)(\\\\)*[|`*]", shown)
    assert "](" not in shown.replace(r"\](", "")


def test_a_hostile_name_is_text_everywhere():
    found = diagnose(hacked(BAD))
    text = as_markdown([found])
    assert found.verdict == "FAIL"
    assert "<" not in text
    assert r"## a/&lt;script&gt;\|" in text
    assert r"correct &lt;script&gt;\| fell from 0.6" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in table)
    assert json.loads(diagnosis_json([found]))[0]["id"] == f"a/{BAD}"


def test_control_characters_do_not_reach_a_terminal():
    found = diagnose(hacked("\x1b[31mred\n"))
    assert all(line.isprintable() for card in found.cards for line in card_lines(card))
    assert printable("a\x07b\n") == "a b "


def test_markdown_lists_runs_and_what_is_wrong():
    failing = make(falling(ROWS, 30) + 0.02 * noise(1, ROWS)).with_updates(id="failing")
    text = as_markdown([diagnose(make(rising(ROWS))), diagnose(failing)])
    assert "| folder/run | PASS |  | nothing wrong |" in text
    assert re.search(r"\| failing \| FAIL \| 3\d \| Collapse: ", text)
    assert text.count("\n## ") == 1
    assert "**FAIL Collapse: " in text
    assert "- change: Resume from a checkpoint" in text
    assert text.endswith("\n")


def test_card_lines_give_number_interval_threshold_and_source():
    card = diagnose(make(falling(ROWS, 30) + 0.02 * noise(1, ROWS))).card("collapse")
    lines = card_lines(card)
    assert lines[0].startswith("FAIL  Collapse: The reward fell")
    assert re.search(r"share of the reward lost: 0\.9\d+ \[.*\], threshold 0.333 \(", lines[1])
    assert lines[2].startswith("  steps 3")


def test_json_is_a_list_of_whole_diagnoses():
    runs = [make(rising(ROWS)), make(np.full(ROWS, np.nan)), make(np.zeros(0))]
    document = json.loads(diagnosis_json([diagnose(run) for run in runs]))
    for one in document:
        assert set(one) == {"id", "path", "run", "verdict", "collapse_step", "cards"}
        assert len(one["cards"]) == 7
    assert diagnosis_json([]) == "[]"
