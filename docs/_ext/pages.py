"""What pages take from the project itself: priors, the public interface, links to other files.

A page asks by a line of its own, ``<!-- table: priors -->`` or ``<!-- api: verbs -->``, which stays
invisible where the page is read without a build.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import advisor
import advisor.theory
from advisor.model.presets import PriorRow, prior_table
from advisor.model.priors import load_priors, preset_names

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
DEFAULT_PRESET = "full_finetuning"

ASKED = re.compile(r"^<!-- (table|api|figure): ([\w./]+) -->$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(\.\./[^)#]*)(?=[)#])")


def repository() -> str:
    """Address of the repository, as pyproject.toml states it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Repository"])


def filled(docname: str, text: str) -> str:
    """Text of a page with its tables, and with links to files outside docs/ made absolute."""
    text = ASKED.sub(lambda asked: MAKERS[asked.group(1)](asked.group(2)), text)
    place = (DOCS / docname).parent

    def absolute(link: re.Match[str]) -> str:
        target = (place / link.group()).resolve()
        if target.is_relative_to(DOCS):
            return link.group()
        if not target.exists():
            raise FileNotFoundError(f"docs/{docname} links to {target}, which does not exist")
        return f"{repository()}/blob/main/{target.relative_to(ROOT)}"

    return LINK.sub(absolute, text)


def priors(_: str) -> str:
    """Table of the default preset, and what the others have in its place."""
    rows = prior_table(load_priors(DEFAULT_PRESET))
    out = ["| parameter | median [central 80 %] | why |", "|---|---|---|"]
    out += [f"| `{row.name}` | {_interval(row)} | {row.source} |" for row in rows]
    for name in preset_names():
        if name != DEFAULT_PRESET:
            out += ["", *_differences(name, rows)]
    return "\n".join(out)


def _differences(name: str, base: list[PriorRow]) -> Iterator[str]:
    """Lines of the table of one preset against the default."""
    preset = load_priors(name)
    yield f"**`{name}`**: {preset.description} It differs in:"
    yield ""
    yield "| parameter | median [central 80 %] | why |"
    yield "|---|---|---|"
    for row, usual in zip(prior_table(preset), base, strict=True):
        if (row.mean, row.sd) != (usual.mean, usual.sd):
            yield f"| `{row.name}` | {_interval(row)} | {row.source} |"


def _interval(row: PriorRow) -> str:
    return f"{row.median:.3g} [{row.lower:.3g}, {row.upper:.3g}]"


def api(kind: str) -> str:
    """Directives for the verbs, nouns or errors of ``advisor``, or for the names of ``theory``."""
    tests: dict[str, Callable[[Any], bool]] = {
        "verbs": inspect.isfunction,
        "nouns": lambda it: inspect.isclass(it) and not issubclass(it, Exception),
        "errors": lambda it: inspect.isclass(it) and issubclass(it, Exception),
        "theory": lambda it: getattr(it, "__module__", "").startswith("advisor.theory."),
    }
    home = advisor.theory if kind == "theory" else advisor
    names = [name for name in getattr(home, "__all__", vars(home)) if name[0] != "_"]
    lines = ["```{eval-rst}"]
    for name in names:
        found = getattr(home, name)
        if tests[kind](found):
            directive = "autofunction" if inspect.isfunction(found) else "autoclass"
            lines += [f".. {directive}:: {home.__name__}.{name}"]
            lines += ["   :members:"] if directive == "autoclass" and kind != "errors" else []
            lines += [""]
    return "\n".join([*lines, "```"])


def figure(name: str) -> str:
    """Picture of that name in docs/, if it is there."""
    return f"![{Path(name).stem.replace('_', ' ')}]({name})" if (DOCS / name).is_file() else ""


MAKERS = {"table": priors, "api": api, "figure": figure}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""

    def fill(_: Sphinx, docname: str, content: list[str]) -> None:
        content[0] = filled(docname, content[0])

    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "version": "1"}
