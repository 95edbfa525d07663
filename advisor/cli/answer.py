"""In which form an answer is printed, and the one for a pull request: Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.study import Study


class Form(StrEnum):
    """Forms of an answer."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


@dataclass
class Shown:
    """How an answer is printed."""

    quiet: bool = False
    details: bool = False
    form: Form = Form.TEXT
    as_json: bool = False

    def __post_init__(self) -> None:
        """Take ``--json`` for the form that it is short for."""
        if self.as_json:
            self.form = Form.JSON


def markdown(study: Study, *, details: bool) -> str:
    """The answer in GitHub's Markdown: text, a table of what else could run, evidence."""
    from advisor.advice import percent
    from advisor.common import Words
    from advisor.findings import describe

    advice = study.recommendation
    shown = ["learning rate", "group size", "steps", "reward at the last step", "P(stable)"]
    rows = [
        [str(name), *(f"{c:.3g}" if c < 1000 else f"{c:,.0f}" for c in cells), percent(stable)]
        for name, *cells, stable in advice.table[shown].itertuples()
    ]
    evidence = ""
    if details:
        rest = advice.text.partition(advice.summary)[2].strip()
        evidence = f"{rest}\n\n{describe(study.posterior)}"
    is_pasted = re.compile(r"[\w.+@-]+=\S+(, [\w.+@-]+=\S+)*").fullmatch
    say = Words("advisor.cli", "markdown.md.j2", escaped=_escaped, is_pasted=is_pasted)
    return say("answer", advice, ["configuration", *shown], rows, evidence)


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: names out of logs make neither HTML nor cells."""
    out = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", out)
