"""Arguments that an OpenRLHF console shows: the command, the printed namespace, the bars."""

from __future__ import annotations

import re
from typing import Any

from advisor.runs.logfiles.config_files import Scalar, literal
from advisor.runs.trainers.openrlhf.progress_bars import Bar

PROGRAM = re.compile(r"openrlhf\.cli\.train_ppo\w{0,20}")
OPENING = re.compile(r"[Nn]amespace\(")
CLOSING = re.compile(r"\s*\)")
NAME = re.compile(r"[\s,]*([A-Za-z_]\w{0,100})=")
QUOTED = re.compile(r"'(?:[^'\\]|\\.){0,2000}'|\"(?:[^\"\\]|\\.){0,2000}\"")
BRACKETED = re.compile(r"[(\[][^()\[\]]{0,2000}[)\]]")
BARE = re.compile(r"[^,()\[\]]{1,200}")
DEEPEST = 8
MARK = "n_samples_per_prompt"
"""An argument of every version, which no other printed namespace has."""

WORD = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s\"']+")
FLAG = re.compile(r"--([A-Za-z][\w.-]{0,100})(?:=(.*))?", re.DOTALL)
ENDS = frozenset({"|", "&", "&&", ";", ">", ">>", "2>&1", "&>", "||"})

LONGEST = 1 << 16
MOST_LINES = 400
"""Lines over which a command may be written."""


class PrintedArguments:
    """Collects arguments from the lines of a console."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self._command: list[str] = []

    def feed(self, text: str) -> None:
        """Take a line."""
        if self._command:
            self._command.append(text[:LONGEST])
        elif "openrlhf.cli.train_ppo" in text:
            program = PROGRAM.search(text)
            self._command = [text[program.end() :][:LONGEST]] if program else []
        elif MARK in text:
            opening = OPENING.search(text)
            if opening is not None:
                self.settings |= parse_namespace(text[opening.start() :][:LONGEST])
        if self._command and (not text.rstrip().endswith("\\") or len(self._command) > MOST_LINES):
            self.settings |= parse_command("\n".join(self._command))
            self._command = []

    def see(self, bar: Bar) -> None:
        """Take what the title of a bar tells."""
        self.settings.setdefault("num_episodes" if bar.is_episode else "max_epochs", bar.turns)
        if bar.is_episode and bar.pairs:  # without a postfix it counts prompts (since 0.9.3)
            self.settings["num_rollouts_per_episodes"] = bar.total


def parse_command(text: str) -> dict[str, Any]:
    """Arguments of a command line, from behind the program's name."""
    found: dict[str, Any] = {}
    name, values = "", []
    for word in (*WORD.findall(text.replace("\\\n", " ")), "|"):
        flag = FLAG.fullmatch(word)
        is_end = word in ENDS
        if flag is None and not is_end:
            values.append(word.strip("\"'"))
            continue
        if name:
            found[name] = literal(" ".join(values)[:500]) if values else True
        if is_end or flag is None:
            break
        name = flag.group(1)
        values = [flag.group(2).strip("\"'")] if flag.group(2) is not None else []
    return found


def parse_namespace(text: str) -> dict[str, Scalar]:
    """Arguments of a printed namespace by dotted names, up to where it breaks off."""
    found: dict[str, Scalar] = {}
    opening = OPENING.match(text)
    if opening is None:
        return found
    outer, at = [""], opening.end()
    while outer:
        closing = CLOSING.match(text, at)
        if closing is not None:
            outer.pop()
            at = closing.end()
            continue
        name = NAME.match(text, at)
        if name is None:
            break
        key, at = outer[-1] + name.group(1), name.end()
        inner = OPENING.match(text, at)
        if inner is not None:
            if len(outer) > DEEPEST:
                break
            outer.append(f"{key}.")
            at = inner.end()
            continue
        value = QUOTED.match(text, at) or BRACKETED.match(text, at) or BARE.match(text, at)
        if value is None or value.end() == len(text):
            break  # what stands last on a cut line may have lost digits
        at = value.end()
        written = value.group()
        found[key] = written[1:-1] if written[0] in "([" else literal(written)
    return found
