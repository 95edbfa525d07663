"""The advised run as a trainer's configuration."""

from __future__ import annotations

from advisor.advice.recommendation import Recommendation
from advisor.errors import InputError
from advisor.trainers.export import export_config
from advisor.trainers.registry import exports


def export(recommendation: Recommendation, trainer: str, devices: int | None = None) -> str:
    """Text of a trainer's configuration that runs what was advised.

    Parameters
    ----------
    recommendation : Recommendation
    trainer : str
        ``trl``, ``verl``, ``openrlhf`` or a registered one.
    devices : int, optional
        By default those that the advice was for.

    Returns
    -------
    text : str

    Raises
    ------
    InputError
        There is no such trainer, or it cannot run these settings; nothing is rounded.

    Notes
    -----
    A decaying schedule keeps the length of the budget: cut short, it would be another schedule. A
    run with a goal is then stopped by hand where the goal is reached.
    """
    settings, origin = recommendation.settings, recommendation.provenance
    steps = recommendation.steps
    if settings.schedule not in (None, "constant"):
        steps = settings.planned_steps or steps
    note = [
        f"Advised by grpo-advisor {origin.package} for {recommendation.target.model} on "
        f"{recommendation.target.task}, from pilots {origin.data_sha256[:8]} under priors "
        f"'{recommendation.priors}', seed {recommendation.seed}."
    ]
    if recommendation.kind != "recommendation":
        note.insert(0, f"NOT a recommendation ({recommendation.kind}): see recommendation.json.")
    return export_config(
        settings,
        steps,
        trainer,
        devices=devices or recommendation.devices,
        model=recommendation.target.model,
        note="\n".join(note),
    )


def trainer_configs(recommendation: Recommendation) -> dict[str, str]:
    """Config of every trainer that can run the advised settings; `export` tells of others."""
    found = {}
    for name in exports():
        try:
            found[name] = export(recommendation, name)
        except InputError:
            continue
    return found
