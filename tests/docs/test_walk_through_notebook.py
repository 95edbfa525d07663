"""The executed notebook of the walk-through holds the cells of its script, and no error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from studies import script

FOLDER = Path(__file__).parents[2] / "docs/walk_through"


make = script(FOLDER / "make_notebook.py")
NOTEBOOK: dict[str, Any] = json.loads(make.NOTEBOOK.read_text(encoding="utf-8"))


def sources() -> list[tuple[bool, str]]:
    return [(c["cell_type"] == "markdown", "".join(c["source"])) for c in NOTEBOOK["cells"]]


def test_cells_are_those_of_the_script():
    script = make.SCRIPT.read_text(encoding="utf-8")
    assert sources() == [tuple(cell) for cell in make.cells(script)]
    assert len(sources()) > 10


def test_every_cell_ran_and_none_failed():
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [out for cell in code for out in cell["outputs"]]
    assert {out["output_type"] for out in outputs} <= {"stream", "display_data", "execute_result"}
    assert sum("P(stable" in "".join(out.get("text", "")) for out in outputs) >= 1


def test_no_path_of_a_machine_is_told():
    text = json.dumps(NOTEBOOK)
    assert not re.search(r"/(?:home|root|tmp|usr|Users|work)/|[A-Z]:\\\\", text)
