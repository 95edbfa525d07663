"""What became of an item: a result, or a failure with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LOST = "worker lost"
"""Kind of failure of an item whose worker died each time it was tried."""


@dataclass(frozen=True)
class Outcome:
    """Result of an item, or why there is none.

    Attributes
    ----------
    name : str
        Of the item.
    result : object
        As JSON gives it back, fresh or kept; None where it failed.
    kind : str or None
        Class of the error; None where there was none.
    problem : str or None
        Its text.
    is_final : bool
        Whether it stands: a result, or an error that the package raised on purpose, which the same
        item would meet again. Others are tried again by the next call.
    seconds : float
        Wall time on its worker.
    """

    name: str
    result: Any = None
    kind: str | None = None
    problem: str | None = None
    is_final: bool = True
    seconds: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether there is no result."""
        return self.kind is not None

    @property
    def text(self) -> str:
        """Name and reason of a failure, on one line."""
        return f"{self.name}: {' '.join((self.problem or self.kind or 'done').split())}"
