"""Errors a user can act on.

::

    AdvisorError              exit code 1   our fault
    ├── InputError            exit code 2   a file, flag or sidecar: file, row, key, what to do
    │   ├── RateContradictionError  exit code 2   log and settings name different learning rates
    │   ├── FlatRewardError   exit code 3   no pilot's reward ever changed: no curve to learn from
    │   ├── NoRewardError           exit code 2   a run without rewards enough for a curve
    │   │   └── BrokenRewardError   exit code 2   most rewards of a run are NaN or infinite
    │   ├── SourceError             exit code 2   a tracker's server or client gives no runs
    │   ├── KeptElsewhereError      exit code 2   a result had to be written elsewhere
    │   └── StudyError        exit code 2   a saved study cannot be read by this version
    ├── CannotTellError       exit code 3   infeasible, or the pilots do not hold the answer
    └── NotConvergedError     exit code 4   the sampler did not converge; no number is given
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LONGEST_WORD = 300  # Characters of one word of an error; damaged files have values of thousands
LONGEST_PROBLEM = 1200  # Characters of what was wrong: its place and what to do are still seen


class AdvisorError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 1


class InputError(AdvisorError):
    """Something the user gave is wrong, and the user can correct it.

    Parameters
    ----------
    problem : str
        What was wrong, as a sentence without its full stop.
    path : path-like, optional
        The file that contains it.
    row : int, optional
        One-based row (or line) of that file.
    key : str, optional
        The key or column in that file.
    argument : str, optional
        The argument of a function, or several with commas. Arguments are in backticks in the
        text, here as in ``problem`` and ``advice``: the command line writes flags in their place.
    advice : str, optional
        What to do, as a sentence without its full stop.
    """

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        row: int | None = None,
        key: str | None = None,
        argument: str | None = None,
        advice: str | None = None,
    ) -> None:
        self.problem = problem = brief(problem)
        self.path = None if path is None else str(path)
        self.row = row
        self.key = None if key is None else brief(key)
        self.argument = argument
        self.advice = advice
        where = [self.path] if self.path else []
        where += [] if row is None else [f"row {row}"]
        where += [] if key is None else [f"key '{self.key}'"]
        where += [] if argument is None else [f"`{argument.replace(', ', '`, `')}`"]
        text = f"{', '.join(where)}: {problem}." if where else f"{problem}."
        if advice:
            text += f" {brief(advice)}."
        super().__init__(text)


def brief(text: str) -> str:
    """Text without the middle of words, and of a whole, that are too long to be read."""
    words = re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda word: _ends(word[0], LONGEST_WORD), text)
    return words if len(words) <= LONGEST_PROBLEM else _ends(words, LONGEST_PROBLEM)


def _ends(text: str, most: int) -> str:
    """First and last part, and how many characters are not shown."""
    kept = most // 3
    return f"{text[:kept]} [{len(text) - 2 * kept:,} characters] {text[-kept:]}"


@contextmanager
def writing(what: str, path: str | Path, key: str, place: str = "folder") -> Iterator[None]:
    """Name the argument or flag (``key``) where what it asks for cannot be written.

    ``what`` is the subject of the sentence; ``place`` is what to choose another of.
    """
    try:
        yield
    except OSError as error:
        problem = f"{what} cannot be written ({error.strerror or error})"
        named, advice = key.removeprefix("--"), f"Choose a {place} you may write to"
        raise InputError(problem, path=path, argument=named, advice=advice) from error


class RateContradictionError(InputError):
    """Settings name another learning rate than the log's peak; ``logged`` is that peak."""

    def __init__(self, problem: str, *, logged: float, **where: Any) -> None:
        super().__init__(problem, **where)
        self.logged = logged


class FlatRewardError(InputError):
    """The pilots are in order, and no reward of theirs ever changed."""

    exit_code = 3


class NoRewardError(InputError):
    """A run has no reward, or too few rows with one to show a curve."""


class BrokenRewardError(NoRewardError):
    """Most rewards of a run are NaN or infinite."""


class SourceError(InputError):
    """A tracker's client is missing or not logged in, reaches no server, or finds no such runs."""


class KeptElsewhereError(InputError):
    """A result could not be written to its place, as ``error`` says, but was to ``kept``."""

    def __init__(self, error: InputError, kept: Path) -> None:
        said = f"Nothing is lost: it is in {kept}"
        super().__init__(error.problem, path=error.path, argument=error.argument, advice=said)
        self.kept = kept


class StudyError(InputError):
    """A saved study has another schema, is incomplete, or is no study."""


class CannotTellError(AdvisorError):
    """The question has no honest answer from these pilots (infeasible or not enough)."""

    exit_code = 3


class NotConvergedError(AdvisorError):
    """The sampler failed its convergence gate; numbers from it would mislead."""

    exit_code = 4
