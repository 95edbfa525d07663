"""What joblib is told of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Backend:
    """An engine that is connected.

    Attributes
    ----------
    backend : str or joblib backend
    jobs : int
        1 for this process itself.
    streams : bool
        Whether it hands out results as they come; otherwise items go in waves.
    """

    backend: Any
    jobs: int
    streams: bool
