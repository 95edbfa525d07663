"""A remark as a value: its kind, what it is about, and the values that its sentence is filled with.

Sentences, weights and audiences stand in ``notes.toml``. The program decides by kinds; it never
reads a sentence back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from advisor.text import read_toml

words = partial(read_toml, __file__, "notes.toml")  # Audience and sentence of every kind, by weight

if TYPE_CHECKING:

    class _Named(type):
        def __getattr__(cls, name: str) -> Kind: ...

    class Kind(str, metaclass=_Named):
        """For type checkers; a test holds every kind that the program names to the table."""

else:
    Kind = StrEnum("Kind", {name.upper(): name for name in words()})
    Kind.__doc__ = "Kinds of remarks, in the order of ``notes.toml``: `Kind.FIRST_LOOK`."


@dataclass(frozen=True)
class Note:
    """A remark: an assumption, a warning or a caution."""

    kind: Kind
    about: str = ""  # A run, or how many; empty where it concerns all
    values: dict[str, Any] = field(default_factory=dict)  # Of its sentence, by name

    @property
    def audience(self) -> str:
        """Who needs it: ``headline``, ``caution`` or ``assumption``."""
        return str(words()[self.kind]["audience"])

    @property
    def weight(self) -> int:
        """Place among the remarks: 0 is shown first."""
        return list(words()).index(self.kind)

    @property
    def sentence(self) -> str:
        """Words of its kind, filled with its values."""
        return str(words()[self.kind]["text"]).format(**self.values)

    def __str__(self) -> str:
        """Sentence, and what it is about."""
        return self.sentence + (f" [{self.about}]" if self.about else "")

    def __hash__(self) -> int:
        return hash((self.kind, str(self)))


def note(kind: Kind, about: str = "", **values: Any) -> Note:
    """Remark of a kind, with the values of its sentence by name."""
    return Note(kind, about, values)


def stated(text: str, kind: Kind = Kind.ASSUMPTION) -> Note:
    """Remark of which only the sentence is known."""
    return Note(kind, values={"text": text})


def of_saved(given: Any) -> Any:
    """Remark of a file, which held a sentence before remarks had kinds; one of them decides."""
    if not isinstance(given, str):
        return given
    is_known = given == words()[Kind.NONE_MOVED]["saved_as"]
    return Note(Kind.NONE_MOVED) if is_known else stated(given)


def kinds(notes: Iterable[Note]) -> set[Kind]:
    """Kinds among some remarks."""
    return {one.kind for one in notes}
