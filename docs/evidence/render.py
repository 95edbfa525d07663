"""Write the tables of evidence from docs/claims.toml and the results that it names.

    python docs/evidence/render.py            # write README.md, docs/evidence/index.md, studies
    python docs/evidence/render.py --check    # write nothing; 1, and which page, where one is stale

A page takes a table between ``<!-- claims: NAME -->`` and ``<!-- end of claims -->``. NAME is a
group of claims, a study, or ``readme`` for the claims that the README shows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/evidence/index.md", "case_studies/*/README.md")
VERDICTS = ("yes", "no", "not yet shown")
MARKED = re.compile(r"(<!-- claims: ([\w ]+) -->\n).*?(<!-- end of claims -->)", re.DOTALL)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (abs, len, max, min, sum, zip)
}


class ClaimError(Exception):
    """A claim without its result: a path that leads nowhere, or no verdict."""


class Claim(NamedTuple):
    """One row of a table."""

    on: str
    group: str
    study: str
    measured: str
    short: str
    verdict: str
    readme: int | None


@cache
def read(path: Path) -> Any:
    """Contents of a result."""
    return json.loads(path.read_text(encoding="utf-8"))


def at(found: Any, keys: Sequence[str | int]) -> Any:
    """Value below some keys."""
    for place, key in enumerate(keys):
        if key == "*":
            parts = found.values() if isinstance(found, dict) else found
            return [at(part, keys[place + 1 :]) for part in parts]
        if isinstance(found, dict) and isinstance(key, str) and key.startswith("~"):
            (found,) = [value for name, value in found.items() if key[1:] in name]
        elif isinstance(found, list) and isinstance(key, str):
            field, _, wanted = key.partition("=")
            (found,) = [entry for entry in found if str(entry[field]) == wanted]
        else:
            found = found[key]
    return found


def numbers(asked: Mapping[str, Any], studies: Path) -> dict[str, Any]:
    """Values of a claim by name; later ones may use earlier ones."""
    out: dict[str, Any] = {}
    for name, source in asked.items():
        try:
            if isinstance(source, str):
                out[name] = evaluated(source, out)
            else:
                file, *keys = source
                filled = [key.format(**out) if isinstance(key, str) else key for key in keys]
                out[name] = at(read(studies / file), filled)
        except (KeyError, IndexError, ValueError, TypeError, OSError) as error:
            raise ClaimError(f"{name} = {source!r} leads nowhere: {error!r}") from error
    return out


def evaluated(expression: str, values: Mapping[str, Any]) -> Any:
    """Value of an expression of our own file; it sees numbers and a few functions only."""
    return eval(expression, {"__builtins__": {}, **FUNCTIONS, **values})


def claims(root: Path = ROOT) -> list[Claim]:
    """Every claim with its numbers filled in and its verdict decided.

    Parameters
    ----------
    root : Path
        A checkout: docs/claims.toml and the results under case_studies/ are read.

    Raises
    ------
    ClaimError
        A number or a study is missing, no rule of a verdict is true, or it is not in VERDICTS.
    """
    read.cache_clear()
    stated = tomllib.loads((root / "docs/claims.toml").read_text(encoding="utf-8"))["claim"]
    out = []
    for one in stated:
        studies = root / "case_studies"
        if not (studies / one["study"] / "README.md").is_file():
            raise ClaimError(f"{one['on']}: no study {one['study']}")
        values = numbers(one["numbers"], studies)
        true = [text for rule, text in one["verdict"] if evaluated(rule, values)]
        if not true:
            raise ClaimError(f"{one['on']}: no rule of its verdict is true")
        if unknown := {text for _, text in one["verdict"]} - set(VERDICTS):
            raise ClaimError(f"{one['on']}: verdict {unknown} is none of {VERDICTS}")
        full, short = (
            re.sub(" ?%", " %", text.format(**values))
            for text in (one["measured"], one.get("short", one["measured"]))
        )
        place = one.get("readme")
        out.append(Claim(one["on"], one["group"], one["study"], full, short, true[0], place))
    return out


def table(name: str, rows: Sequence[Claim], page: Path, root: Path) -> str:
    """Markdown of one table. A group names each study; a study's own page has the numbers below."""
    if name == "readme":
        chosen = sorted((row for row in rows if row.readme), key=lambda row: row.readme or 0)
    else:
        chosen = [row for row in rows if name in (row.group, row.study)]
    if not chosen:
        raise ClaimError(f"no claim in '{name}'")
    if name == chosen[0].study:
        rows_of_study = [f"| {row.on} | {row.verdict} |" for row in chosen]
        return "\n".join(["| claim | shown |", "|---|---|", *rows_of_study]) + "\n"
    out = ["| claim | measured | shown |", "|---|---|---|"]
    for row in chosen:
        link = os.path.relpath(root / "case_studies" / row.study / "README.md", page.parent)
        measured = f"{row.measured} ([{row.study}]({link}))" if name == row.group else row.short
        out.append(f"| {row.on} | {measured} | {row.verdict} |")
    return "\n".join(out) + "\n"


def rendered(page: Path, rows: Sequence[Claim], root: Path = ROOT) -> str:
    """Text of a page with its tables as they have to be."""

    def fill(mark: re.Match[str]) -> str:
        return f"{mark[1]}{table(mark[2], rows, page, root)}{mark[3]}"

    return MARKED.sub(fill, page.read_text(encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or say which are out of date."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout")
    given = parser.parse_args(arguments)
    rows, stale = claims(given.root), 0
    for page in sorted(path for pattern in PAGES for path in given.root.glob(pattern)):
        text = rendered(page, rows, given.root)
        if given.check and text != page.read_text(encoding="utf-8"):
            name = page.relative_to(given.root)
            print(f"{name} is not what docs/claims.toml says: run python docs/evidence/render.py")
            stale += 1
        elif not given.check:
            page.write_text(text, encoding="utf-8")
    return min(stale, 1)


if __name__ == "__main__":
    sys.exit(main())
