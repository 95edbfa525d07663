"""A posterior from its file, or from the folder of a study."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.errors import InputError
from advisor.model import Posterior

POSTERIOR = "posterior.nc"
ANSWER = "recommendation.json"


def load_posterior(path: str | Path) -> tuple[Posterior, int | None]:
    """Load a posterior from its file or a study's folder, and the steps that the study planned."""
    at = Path(path)
    file = at / POSTERIOR if at.is_dir() else at
    if not file.is_file():
        raise InputError(
            "there is no posterior",
            path=file,
            argument="posterior",
            advice="Give posterior.nc, or the folder that advisor advise wrote",
        )
    return Posterior.load(file), _planned(file.parent / ANSWER)


def _planned(answer: Path) -> int | None:
    try:
        steps = json.loads(answer.read_text(encoding="utf-8")).get("steps")
    except (OSError, ValueError, AttributeError):
        return None
    return steps if isinstance(steps, int) else None
