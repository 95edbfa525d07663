"""Planted changes: each is still there to be planted, its test exists, and the script sees both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from studies import script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def planted():
    return script(ROOT / "scripts" / "planted.py")


def test_each_change_can_be_planted_and_its_test_is_there(planted):
    rows = planted.changes()
    assert len(rows) >= 20
    for one in rows:
        text = (ROOT / one.file).read_text(encoding="utf-8")
        compile(one.planted(text), one.file, "exec")
        file, _, name = one.seen_by.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    with pytest.raises(ValueError, match="found 0 times, not once"):
        rows[0].planted("another text")


def test_the_page_holds_every_change(planted):
    assert planted.PAGE.read_text(encoding="utf-8") == planted.table(planted.changes())


@pytest.mark.evidence
def test_a_change_that_matters_is_seen_and_one_that_does_not_is_not(planted):
    threshold = next(one for one in planted.changes() if one.old == "LITTLE = 0.01")
    for change, code in ((threshold, 1), (threshold._replace(new="LITTLE = 1e-2"), 0)):
        with planted.copied(change) as root:
            assert planted.ended(root, [change.seen_by])[0] == code
