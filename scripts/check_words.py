"""Count dialect, long sentences and bare P in everything a person reads; counts may only fall.

``python scripts/check_words.py`` prints each count next to its budget, ``[words]`` of
``scripts/budget.toml``, and ends with 1 where one is above it. ``--list KIND`` prints each case
and what to write instead. ``--tighten`` lowers the budget to today's counts and never raises it.

=========== ===================================================================================
place       what is read
=========== ===================================================================================
pages       README, docs, READMEs of studies and of packages next to the package
docstrings  of the package
texts       strings of the package with a blank in them, and those of its TOML tables
names       identifiers of the package: dialect only
=========== ===================================================================================
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
MOST_WORDS = 30
"""Of a sentence."""

PAGES = ("*.md", "docs/**/*.md", "case_studies/**/*.md", "optunahub/**/*.md", "tests/faults/*.md")
DIALECT = {
    "told|untold|tell|tells|telling": "contain, show, read",
    "said|unsaid|says? of|speaks? of": "predicted, printed, stated",
    "heard": "read",
    "stands?|stood|standing": "is, is in",
    "beside": "next to, compared with",
    "anew": "again",
    "kin": "similar runs",
    "alike": "equal, similar",
    "aside": "apart from",
    "worlds?": "simulated task, task",
    "strangers?'?": "other repositories",
    "strays?|strayed": "misses",
    "mends?|mended": "fix, correct",
    "foresees?|foreseen|foretold": "predict",
    "whoever": "a user who",
    "nobody": "no one",
    "owes?|owed": "comes from",
    "taught|teach|teaches": "gives no gradient, was learned from",
    "daring": "high",
    "lent": "borrowed",
    "thereof|thereby|henceforth": "so",
    "came to|comes to|come to": "reached, ended at",
    "(?:go|goes|went|gone|going) on": "continues",
    "carr(?:y|ies|ied) on": "extrapolate",
    "(?:what )?(?:becomes?|became) of": "the end of",
    "of so many": "of n",
    "that which": "what",
    r"\w+'s word|word of the \w+": "comes from",
    "ha(?:s|ve) it": "states",
    "(?:is|are) none": "is not one",
    "(?:is|was|were) ours": "chosen here",
    "in sight of": "with these runs seen",
    "but for": "except",
    "for good": "without recovering",
    "so far out": "at this distance",
    "what is known": "the known rate",
    "bears? out": "supports",
    "(?:intervals?|%|bands?) (?:still )?(?:hold|holds|held)": "cover",
    r"(?:hold|holds|held) (?:\d|what they)": "cover",
    "goals? (?:met|missed)": "a verdict: yes, no, not yet shown",
    "as far as": "where",
    "too (?:sure|sharp)": "intervals too narrow",
    "(?:is|was|are|were) asked (?:of|about)": "is predicted",
}
"""Words of the project's own dialect, and what to write instead."""

FINDERS = {
    re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.I): to for words, to in DIALECT.items()
}
NAMES = ("told", "untold", "said", "beside", "anew", "kin", "alike", "heard", "aside")
BARE_P = re.compile(r"(?<![\w`$\\-])P(?![\w(`$'=-]|\s*\()")
CODE = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$|``[^`]+``|(?::\w+:)?`[^`]+`", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|<!--.*?-->|<[^>\s][^>]*>", re.DOTALL)
FENCE = re.compile(r"\A---\n.*?\n---\n|^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
NO_SENTENCE = re.compile(r"^\s*(?:>>>.*|\*{0,2}\w[\w, *]* : .*)$", re.MULTILINE)
"""Of a docstring: an example, a parameter and its type."""

INDENTED = re.compile(r"^ {4,}\S.*$", re.MULTILINE)
BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s|#|\|)|\n[-=~]{3,}\n|\n(?=>>>)")
END = re.compile(r"(?<![A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?])[)\"'*_]*\s+(?=[A-Z`*_(\"'\d])")
WORD = re.compile(r"[^\W_]")
PLAIN = re.compile(r"[A-Za-z]{2,}[,;:]? [A-Za-z(]")
"""Of a string that is read by a person; a key, a pattern and a format have no such pair."""

PATTERN = re.compile(r"\\[bdswn(]|\(\?|\[\^|SELECT |PRAGMA ")
FIELDS = ("id", "arg", "attr", "name", "asname")
"""Where a node of the syntax tree keeps an identifier."""


class Found(NamedTuple):
    """Something that is counted: of what kind, where, and what to do."""

    kind: str
    where: str
    what: str


def sentences(text: str) -> Iterator[str]:
    """Sentences of running text; a row of a table and a point of a list end one."""
    for block in BREAK.split(text):
        cells = block.split("|") if block.lstrip().startswith("|") else [block]
        for cell in cells:
            yield from (" ".join(one.split()) for one in END.split(cell))


def faults(place: str, where: str, text: str) -> Iterator[Found]:
    """Dialect, long sentences and bare P of one text, code left out."""
    plain = CODE.sub("Code", text)
    for finder, instead in FINDERS.items():
        for use in finder.finditer(plain):
            yield Found(f"{place}_dialect", where, f"'{use[0]}': write '{instead}'")
    for use in BARE_P.finditer(plain):
        near = " ".join(plain[max(0, use.start() - 20) : use.end() + 20].split())
        yield Found(f"{place}_bare_p", where, f"'{near}': write P(stable) or P(better)")
    for sentence in sentences(plain):
        count = sum(bool(WORD.search(word)) for word in sentence.split())
        if count > MOST_WORDS:
            yield Found(f"{place}_long_sentences", where, f"{count} words: {sentence[:70]} ...")


def page(text: str) -> str:
    """Running text of a page: no code, no formulas, no addresses."""
    text = CODE.sub("Code", FENCE.sub("", text))
    return LINK.sub(lambda link: link[1] or "", INDENTED.sub("", text))


def of_module(where: str, tree: ast.Module) -> Iterator[Found]:
    """What is counted in the docstrings, the texts and the names of a module."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    filled = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(one) for node in filled for one in node.values}
    for node in ast.walk(tree):
        at = f"{where}:{getattr(node, 'lineno', 0)}"
        if id(node) in docstrings and isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield from faults("docstrings", at, NO_SENTENCE.sub("", cleandoc(node.value)))
        elif isinstance(node, ast.JoinedStr):
            texts = [one.value if isinstance(one, ast.Constant) else "0" for one in node.values]
            yield from shown(at, "".join(map(str, texts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in parts:
                yield from shown(at, node.value)
        else:
            yield from named(at, node)


def shown(where: str, text: str) -> Iterator[Found]:
    """What is counted in a string, where a person may read it."""
    if PLAIN.search(text) and not PATTERN.search(text):
        yield from faults("texts", where, text)


def named(where: str, node: ast.AST) -> Iterator[Found]:
    """Words of the dialect in an identifier."""
    for name in (getattr(node, field, None) for field in FIELDS):
        for part in name.lower().split("_") if isinstance(name, str) else ():
            if part in NAMES:
                yield Found("names_dialect", where, f"'{part}' in {name}")


def strings(value: Any) -> Iterator[str]:
    """Every string of a TOML table."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def everything(root: Path) -> Iterator[Found]:
    """What is counted in a checkout."""
    for file in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        text = page(file.read_text(encoding="utf-8"))
        yield from faults("pages", str(file.relative_to(root)), text)
    for file in sorted((root / "advisor").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        yield from of_module(str(file.relative_to(root)), tree)
    for file in sorted((root / "advisor").rglob("*.toml")):
        for text in strings(tomllib.loads(file.read_text(encoding="utf-8"))):
            yield from shown(str(file.relative_to(root)), text)


KINDS = (
    *(f"{place}_{what}" for place in ("pages", "docstrings", "texts") for what in
      ("dialect", "long_sentences", "bare_p")),
    "names_dialect",
)  # fmt: skip


def counted(found: Iterable[Found]) -> dict[str, int]:
    """Number of each kind."""
    kinds = [one.kind for one in found]
    return {kind: kinds.count(kind) for kind in KINDS}


def main(arguments: list[str] | None = None) -> int:
    """Print the counts, and 1 where one is more than the budget allows."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--list", choices=KINDS, help="print each of one kind")
    parser.add_argument("--tighten", action="store_true", help="lower the budget to what is there")
    given = parser.parse_args(arguments)
    found = list(everything(given.root))
    budget = given.root / "scripts" / "budget.toml"
    text = budget.read_text(encoding="utf-8")
    allowed = tomllib.loads(text)["words"]
    above = 0
    for kind, count in counted(found).items():
        most = int(allowed[kind])
        above += count > most
        if given.list == kind or (count > most and given.list is None):
            print("\n".join(f"{one.where}: {one.what}" for one in found if one.kind == kind))
        print(f"{kind}: {count}, {most} allowed")
        if given.tighten and count < most:
            text = re.sub(rf"^{kind} = \d+$", f"{kind} = {count}", text, flags=re.MULTILINE)
    if given.tighten:
        budget.write_text(text, encoding="utf-8")
    return min(above, 1)


if __name__ == "__main__":
    sys.exit(main())
