"""Make walk_through.ipynb, executed, out of the cells of walk_through.py.

    pip install -e '.[notebook]'
    python docs/walk_through/make_notebook.py      # a minute

The script is the source: change it, then run this. A test holds the two to the same cells.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
SCRIPT, NOTEBOOK = HERE / "walk_through.py", HERE / "walk_through.ipynb"

MARK = re.compile(r"^# %%(?P<kind> \[markdown\])?\n", re.MULTILINE)


class Cell(NamedTuple):
    """A cell of the script."""

    is_text: bool
    source: str


def cells(script: str) -> list[Cell]:
    """Cells of a script in the percent format; what stands before the first mark is left out."""
    marks = list(MARK.finditer(script))
    ends = [mark.start() for mark in marks[1:]] + [len(script)]
    found = []
    for mark, end in zip(marks, ends, strict=True):
        source, is_text = script[mark.end() : end].strip("\n"), mark["kind"] is not None
        if is_text:
            source = "\n".join(
                line.removeprefix("#").removeprefix(" ") for line in source.split("\n")
            )
        found.append(Cell(is_text, source))
    return found


def _tidy(cell: Any) -> None:
    """Put what a cell printed into one piece; warnings of the kernel hold paths and are dropped."""
    streams = [out for out in cell.get("outputs", ()) if out.output_type == "stream"]
    printed = "".join(out.text for out in streams if out.name == "stdout")
    if streams:
        others = [out for out in cell.outputs if out.output_type != "stream"]
        one = {"output_type": "stream", "name": "stdout", "text": printed}
        cell.outputs = [*([type(streams[0])(one)] if printed else []), *others]


def main() -> None:
    """Run every cell in a fresh folder and keep what it printed."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook()
    for number, (is_text, source) in enumerate(cells(SCRIPT.read_text(encoding="utf-8"))):
        make = nbformat.v4.new_markdown_cell if is_text else nbformat.v4.new_code_cell
        notebook.cells.append(make(source, id=f"cell-{number}"))
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    # The kernel starts in another folder and has to find the same package.
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path[1:] if path)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        _tidy(cell)
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, NOTEBOOK)
    print(f"{NOTEBOOK.name}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
