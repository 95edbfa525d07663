"""What all commands show on a terminal: progress, notes, tables, files written."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from advisor.cli.flags import echo
from advisor.common import SAMPLING_AGAIN, ProgressLines, TimeLeft, harmless
from advisor.common import write_new as whole
from advisor.errors import InputError, writing

if TYPE_CHECKING:
    from advisor.study import Study

VERDICTS = {"FAIL": "red", "WARNING": "yellow", "INFO": "cyan", "PASS": "green"}
"""Colours of verdicts, in every table."""

WIDE = 200  # Columns of a table that goes to a file or a pipe


class HarmlessConsole(Console):
    """Console on which names out of logs do not steer the terminal; its own colours do."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render, with steering characters spelt out."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(harmless(segment.text), segment.style)

    def say(self, line: str = "", style: str = "") -> None:
        """Print a line as it is: without markup, and not wrapped."""
        self.print(Text(line, style=style), soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Leave a reader that went away to `advisor.cli.main`, which ends without a word."""
        raise BrokenPipeError


def output(*, stderr: bool = False, quiet: bool = False) -> HarmlessConsole:
    """Console as wide as the terminal, or wide enough for every table elsewhere."""
    console = HarmlessConsole(highlight=False, stderr=stderr, quiet=quiet)
    if not console.is_terminal:
        console.width = WIDE
    return console


def table(
    names: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Collection[str] = (),
    title: str | None = None,
) -> Table:
    """Table of texts that are no markup, verdicts coloured; the columns ``right`` hold numbers."""
    titled = None if title is None else Text(title)
    found = Table(title=titled, title_justify="left", header_style="bold", box=SIMPLE)
    for name in names:
        found.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        found.add_row(
            *(
                cell if isinstance(cell, Text) else Text(cell, VERDICTS.get(cell, ""))
                for cell in row
            )
        )
    return found


@contextmanager
def noted(*, quiet: bool = False) -> Iterator[None]:
    """Turn warnings into notes on standard error, without a line of code; or into nothing."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not quiet:
        for warning in caught:
            echo(f"Note: {warning.message}.", err=True)


def load(study: Path, *, quiet: bool = False) -> Study:
    """Load a study; warnings become notes."""
    from advisor.study import Study

    with noted(quiet=quiet):
        return Study.load(study)


def refuse_existing(file: Path) -> None:
    """Raise an ``InputError`` where a file that would be written exists."""
    if os.path.lexists(file):
        problem = "it exists: nothing was overwritten"
        raise InputError(problem, path=file, key="--out", advice="Move it, or choose another name")


def write_new(file: Path, data: bytes, *, with_folder: bool = False) -> None:
    """Write a file that does not exist yet, where asked with its folder."""
    refuse_existing(file)
    with writing("it", file, "--out", "file"):
        if not with_folder and not file.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        whole(file, data)


class Reporter:
    """Progress on standard error: a live bar on a terminal, a line per stage elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self.console = output(stderr=True, quiet=quiet)
        self._live: Progress | None = None
        self._last, self._left = ("", ""), TimeLeft()
        self._lines = ProgressLines(self.console.say)
        if self.console.is_terminal and not quiet:
            self._live = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[detail]}", style="dim"),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self._task = self._live.add_task("", total=None, detail="")

    def __enter__(self) -> Reporter:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, stage: str, share: float | None, detail: str) -> None:
        """Show what is happening; see ``advisor.common.Progress``."""
        if self._live is not None:
            if stage == SAMPLING_AGAIN and (stage, detail) != self._last:
                self.console.say(f"{stage}: {detail}")
            # One clock for the whole command: a new stage does not begin it anew.
            self._live.update(
                self._task,
                description=stage,
                detail=self._left(stage, share, detail),
                total=None if share is None else 1.0,
                completed=min(share or 0.0, 0.999),  # what is done stops rich's clock
            )
        else:
            self._lines(stage, share, detail)
        self._last = stage, detail
