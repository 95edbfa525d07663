"""Count in-house words among the names and the shown texts of the package; the count may only fall.

``python scripts/check_words.py`` prints every use, and ends with 1 where there are more than
``dialect`` in ``scripts/budget.toml`` allows; ``--tighten`` lowers that number to what is there.
Docstrings and comments are not counted: users do not see them, and they may quote.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = ("told", "untold", "said", "beside", "anew", "kin", "alike", "heard", "aside")
ALLOWED = re.compile(r"^dialect = (\d+)$", re.MULTILINE)
PARTS = re.compile(r"[A-Za-z]+")
FIELDS = ("id", "arg", "attr", "name", "asname")
"""Where a node of the syntax tree keeps an identifier."""


def uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines of a module, and the name or the text that holds an in-house word."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts = [] if id(node) in docstrings else [node.value]
        else:
            texts = [name for field in FIELDS if isinstance(name := getattr(node, field, 0), str)]
        for text in texts:
            for part in PARTS.findall(text.replace("_", " ")):
                if part.lower() in WORDS:
                    yield getattr(node, "lineno", 0), f"{part.lower()} in {text.strip()[:60]!r}"


def main(arguments: list[str] | None = None) -> int:
    """Print the uses, and 1 where they are more than the budget allows."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--tighten", action="store_true", help="lower the budget to what is there")
    given = parser.parse_args(arguments)
    found = []
    for file in sorted((given.root / "advisor").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        place = file.relative_to(given.root)
        found += [f"{place}:{line}: {what}" for line, what in uses(tree)]
    budget = given.root / "scripts" / "budget.toml"
    text = budget.read_text(encoding="utf-8")
    allowed = int(tomllib.loads(text)["package"]["dialect"])
    print("\n".join([*found, f"{len(found)} in-house words, {allowed} allowed"]))
    if given.tighten and len(found) < allowed:
        budget.write_text(ALLOWED.sub(f"dialect = {len(found)}", text), encoding="utf-8")
    return 1 if len(found) > allowed else 0


if __name__ == "__main__":
    sys.exit(main())
