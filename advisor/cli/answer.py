"""In which form an answer is printed, and the one for a pull request: Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def markdown(study: Study, *, details: bool) -> Iterator[str]:
    """Lines of the answer in GitHub's Markdown: text, a table of what else could run, evidence."""
    from advisor.advice import in_trainer_names, percent
    from advisor.findings import describe

    advice = study.recommendation
    pasted = in_trainer_names(advice.settings, advice.trainer)
    yield f"### {advice.title}"
    before = ""
    for line in filter(None, advice.summary.splitlines()):
        is_code = line == pasted or line.startswith("  ")
        apart = "" if line.startswith("- ") and before.startswith("- ") else "\n"
        yield apart + (f"```text\n{line.strip()}\n```" if is_code else _escaped(line))
        before = line
    shown = ["learning rate", "group size", "steps", "reward at the last step", "P(stable)"]
    rows = [
        [str(name), *(f"{cell:.3g}" for cell in cells), percent(stable)]
        for name, *cells, stable in advice.table[shown].itertuples()
    ]
    yield "\n<details><summary>What else could be run</summary>\n"
    yield from _table(["configuration", *shown], rows)
    yield "\n</details>\n"
    yield "<details><summary>What was assumed</summary>\n"
    yield from (f"- {_escaped(line)}" for line in advice.assumptions)
    yield "\n</details>"
    if details:
        _, _, rest = advice.text.partition(advice.summary)
        yield "\n<details><summary>Evidence</summary>\n"
        yield f"```text\n{rest.strip()}\n\n{describe(study.posterior)}\n```\n\n</details>"
    made = advice.provenance
    data = f"data {made.data_sha256[:8]}, seed {advice.seed}"
    yield f"\n<sub>grpo-advisor {made.package}, {data}</sub>"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table in Markdown; the first column holds names, the others numbers."""
    yield f"| {' | '.join(names)} |"
    yield f"|{' --- |' + ' ---: |' * (len(names) - 1)}"
    for row in rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: names out of logs make neither HTML nor cells."""
    out = text.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    for sign in "`*_[]|#":
        out = out.replace(sign, "\\" + sign)
    return out
