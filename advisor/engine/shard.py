"""A part of the items, for plain job arrays."""

from __future__ import annotations

import re
from typing import NamedTuple

from advisor.errors import InputError


class Shard(NamedTuple):
    """Every ``parts``-th item, from the ``number``-th on; ``number`` counts from 1."""

    number: int
    parts: int

    def holds(self, index: int) -> bool:
        """Whether the item at this place is of this part."""
        return index % self.parts == self.number - 1

    @property
    def suffix(self) -> str:
        """For names of files: parts that run side by side write into files of their own."""
        return f".{self.number}-of-{self.parts}"


def shard_of(text: str | None) -> Shard | None:
    """Part of the items as a user writes it.

    Parameters
    ----------
    text : str or None
        ``3/8`` for the third of eight.

    Returns
    -------
    shard : Shard or None

    Raises
    ------
    InputError
        It is no part.
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError(
            f"'{text}' is no part of the items",
            argument="shard",
            advice="Write 3/8 for the third of eight",
        )
    return Shard(int(found[1]), int(found[2]))
