"""Consoles that print a block per step: its number, then its metrics in tables, lists or dicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.dict_lines import ITEM, find_dicts
from advisor.logfiles.log_file import LogFile
from advisor.logfiles.logged import Claim, Logged, Reader
from advisor.logfiles.table import TableBuilder
from advisor.trainers.generic.console_lines import ANSI, NUMBER
from advisor.trainers.keys import has_evaluation_key, has_reward_key, kept_keys

SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ""})
SEARCHED = 8 << 20
"""Bytes in which the first blocks are sought: start-up messages may fill a console before."""

LEAST_BLOCKS = 3
"""Blocks with a reward and steps of their own by which a console is known."""

LONGEST = 20_000
"""Characters of a line that are looked at."""

MARK = re.compile(
    r"\b(?P<name>Train step|training_step|Step|step|Iteration|iteration|Rollout|rollout)"
    r"\s*[:=#]?\s*(?P<step>\d{1,9})(?:\s*/\s*(?P<planned>\d{1,9}))?(?=[\s:=*\]]|$)"
)
"""A step by its number; of several on a line the one over the whole run comes first in the list."""

DICT_MARK = re.compile(r"\b(?P<name>rollout|step|eval|perf)\s+(?P<step>\d{1,9}):\s*(?=\{')")
IS_NUMBER = re.compile(NUMBER)
KEY = re.compile(r"[A-Za-z][\w./@%() -]{1,90}")
LISTED = re.compile(
    rf"^\s*(?:[•*·-]\s+)?(?P<key>[A-Za-z][\w./@ -]{{1,60}}?)\s*[:=]\s*(?P<value>{NUMBER})"
    r"(?P<unit>%|s)?\s*(?:\(.*\))?\s*$"
)
PAIR = re.compile(rf"(?P<key>[A-Za-z][\w./@-]{{0,80}}):\s*(?P<value>{NUMBER})(?=\s|$|\|)")
PANEL = re.compile("╭─+ Metrics ─+")
OWN_STEP = "training_step"
BARS = re.compile("[│┃║|]")
FRAME = "│┃║"


def claims(log: LogFile) -> bool:
    """Whether a console prints blocks of which some hold a reward, each under its step."""
    if log.suffix not in SUFFIXES:
        return False
    try:
        head = log.head_text()
        if b"eward" not in head and b"score" not in head and len(head) < limits.HEAD_BYTES:
            return False
        if b"\0" in head:
            return False
        blocks = _Blocks()
        seen: set[int] = set()
        read_on = 0
        for line in log.lines(strict=False):
            read_on += len(line.text)
            for block in blocks.take(line.number, line.text):
                if block.has_reward:
                    seen.add(block.step)
            if len(seen) >= LEAST_BLOCKS:
                return True
            if read_on > SEARCHED:
                break
        seen |= {block.step for block in blocks.end() if block.has_reward}
    except InputError:
        return False
    return len(seen) >= LEAST_BLOCKS


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a console; blocks of one step are one row."""
    (log,) = logs
    builder = TableBuilder(log.path, kept_keys(columns))
    blocks = _Blocks()
    last: _Block | None = None
    planned: int | None = None

    def add(block: _Block) -> None:
        nonlocal last
        if last is not None and block.step == last.step:
            last.cells.update(block.cells)
            return
        if last is not None and last.cells:
            builder.add(last.number, {**last.cells, "step": last.step})
        last = block

    for line in log.lines(strict=False):
        for block in blocks.take(line.number, line.text):
            add(block)
            planned = block.planned or planned
    for block in blocks.end():
        add(block)
    if last is not None and last.cells:
        builder.add(last.number, {**last.cells, "step": last.step})
    if not len(builder):
        raise InputError(
            "no block of the console holds metrics",
            path=log.path,
            advice="Give the console in which the trainer printed its metrics by step",
        )
    yield Logged(builder.build(), planned_steps=planned)


class _Block:
    """Metrics under one number."""

    def __init__(self, number: int, step: int, planned: int | None) -> None:
        self.number, self.step, self.planned = number, step, planned
        self.cells: dict[str, float] = {}

    @property
    def has_reward(self) -> bool:
        return bool(self.cells) and (has_reward_key(self.cells) or has_evaluation_key(self.cells))


class _Blocks:
    """Puts the lines of a console together, block by block."""

    def __init__(self) -> None:
        self._open: _Block | None = None
        self._panel = ""

    def take(self, number: int, line: str) -> Iterator[_Block]:
        """Blocks that a line ends."""
        if len(line) > LONGEST:
            line = line[:LONGEST]
        text = ANSI.sub("", line) if "\x1b" in line else line
        if "{'" in text:
            marked = DICT_MARK.search(text)
            if marked is not None:
                yield from self._marked(number, marked, None)
                self._dict(text[marked.end() :])
                return
        if PANEL.search(text):
            # A panel of open-instruct; its number stands inside.
            if self._open is not None:
                yield self._open
            step = self._open.step + 1 if self._open is not None else 1
            self._open, self._panel = _Block(number, step, None), ""
            return
        is_framed = any(bar in text for bar in FRAME)
        if not is_framed and ("tep" in text or "ollout" in text or "teration" in text):
            marks = list(MARK.finditer(text))
            if marks:
                # "Epoch 1/2 Step 3/10 Train step 3/20": the last counts over the whole run.
                yield from self._marked(number, marks[-1], marks[-1].group("planned"))
                return
        if self._open is None:
            return
        if is_framed:
            self._framed(text)
        elif text.lstrip()[:2].lstrip("{")[:1] == "'":
            # A dict that is printed over several lines.
            for item in ITEM.finditer(text):
                self._put(item[1], item[2] or item[3] or item[4], None)
        elif found := LISTED.match(text):
            self._put(found.group("key"), found.group("value"), found.group("unit"))
        elif ":" in text and "/" in text:
            for pair in PAIR.finditer(text):
                if "/" in pair.group("key"):
                    self._put(pair.group("key"), pair.group("value"), None)

    def end(self) -> Iterator[_Block]:
        """The block that is open at the end."""
        if self._open is not None:
            yield self._open

    def _marked(self, number: int, mark: re.Match[str], planned: str | None) -> Iterator[_Block]:
        step = int(mark.group("step"))
        if self._open is not None and self._open.step == step:
            return
        if self._open is not None:
            yield self._open
        self._open = _Block(number, step, int(planned) if planned else None)
        self._panel = ""

    def _dict(self, text: str) -> None:
        for found in find_dicts(text):
            for key, value in found.cells.items():
                self._put(key, value, None)
            return

    def _framed(self, text: str) -> None:
        """Cells between bars: keys and values in turn, or a group and its pairs."""
        parts = [part.strip() for part in BARS.split(text)]
        pairs = [(a, b) for a, b in pairwise(parts) if IS_NUMBER.fullmatch(b)]
        if pairs and all(KEY.fullmatch(a) for a, _ in pairs):
            for key, value in pairs:
                self._put(key, value, None)
            return
        inner = text.strip().strip(FRAME)
        group = re.match(r"\s{0,3}([a-z][\w-]{1,40})\s{1,40}(?=[\w./@-]{1,80}:\s)", inner)
        self._panel = group.group(1) if group is not None else self._panel
        rest = inner[group.end() :] if group is not None else inner
        for pair in PAIR.finditer(rest):
            name = pair.group("key")
            self._put(
                name if self._panel in ("", "other") else f"{self._panel}/{name}",
                pair.group("value"),
                None,
            )

    def _put(self, key: str, value: str, unit: str | None) -> None:
        try:
            number = float(value)
        except ValueError:
            return
        if self._open is None:
            return
        self._open.cells[key.strip()] = number / 100 if unit == "%" else number
        if key == OWN_STEP and number == int(number) >= 0:
            self._open.step = int(number)


READER = Reader(
    "console of blocks (metrics of a step below its number)",
    claims,
    read,
    claim=Claim.PAIRS,
)
