"""A forecast is scored only under a preset that has not learned from the run."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.errors import InputError
from advisor.model import Priors
from advisor.runs import PilotRun, fingerprint


def check_no_leakage(runs: Sequence[PilotRun], preset: Priors) -> None:
    """Refuse a preset that has learned from one of the runs, or from a part of it."""
    learned = [run for run in runs if fingerprint(run) in preset.learned_from]
    if learned:
        others = f" and {len(learned) - 1} more" if len(learned) > 1 else ""
        raise InputError(
            f"the preset '{preset.name}' has learned from run '{learned[0].id}'{others}: its "
            "forecasts of them would look better than they are",
            path=learned[0].path,
            argument="priors",
            advice="Name a preset that has not seen them, or leave them out",
        )
