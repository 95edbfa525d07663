"""The advised run as a trainer's configuration."""

from __future__ import annotations

from advisor.advice.answer_fields import NextPilot
from advisor.advice.recommendation import Recommendation
from advisor.errors import InputError
from advisor.runs import UNNAMED_MODEL, Settings, export_config, exports, find_trainer


def export(
    recommendation: Recommendation, trainer: str | None = None, devices: int | None = None
) -> str:
    """Text of a trainer's configuration that runs what was advised: the run, or the next pilot.

    Parameters
    ----------
    recommendation : Recommendation
    trainer : str, optional
        ``trl``, ``verl``, ``openrlhf`` or a registered one; by default that of the pilots.
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
    if recommendation.kind == "next_pilot" and recommendation.next_pilot is not None:
        return export_pilot(recommendation, recommendation.next_pilot, trainer, devices)
    settings, steps = recommendation.settings, recommendation.steps
    if settings.schedule not in (None, "constant"):
        steps = settings.planned_steps or steps
    mark = ""
    if recommendation.kind != "recommendation":
        mark = f"NOT a recommendation ({recommendation.kind}): see recommendation.json.\n"
    return _written(recommendation, settings, steps, trainer, devices, mark)


def export_pilot(
    recommendation: Recommendation,
    pilot: NextPilot,
    trainer: str | None = None,
    devices: int | None = None,
) -> str:
    """Text of a trainer's configuration that runs a next pilot; parameters as for `export`."""
    mark = f"A pilot of {pilot.steps} steps, not the full run. {pilot.reason}\n"
    return _written(recommendation, pilot.settings, pilot.steps, trainer, devices, mark)


def _written(
    recommendation: Recommendation,
    settings: Settings,
    steps: int,
    trainer: str | None,
    devices: int | None,
    mark: str,
) -> str:
    """Config of a run or a pilot, with where it comes from after its mark."""
    origin, target = recommendation.provenance, recommendation.target
    return export_config(
        settings,
        steps,
        trainer or _own(recommendation),
        devices=devices or recommendation.devices,
        model=None if target.model == UNNAMED_MODEL else target.model,
        note=f"{mark}Advised by grpo-advisor {origin.package} for {target.subject}, from pilots "
        f"{origin.data_sha256[:8]} under priors '{recommendation.priors}', "
        f"seed {recommendation.seed}.",
    )


def _own(recommendation: Recommendation) -> str:
    """Name of the export of the pilots' own trainer."""
    trainer = find_trainer(recommendation.trainer)
    if trainer is None or trainer.export is None:
        raise InputError(
            f"the pilots were trained with {recommendation.trainer}, for which no config is "
            "written",
            argument="to",
            advice=f"Choose one of {', '.join(exports())}",
        )
    return trainer.export.name


def trainer_configs(recommendation: Recommendation) -> dict[str, str]:
    """Config of every trainer that can run the advised settings; `missing_configs` has others."""
    return {
        name: text
        for name, text in _exported(recommendation).items()
        if not isinstance(text, InputError)
    }


def missing_configs(recommendation: Recommendation) -> dict[str, str]:
    """Trainers that cannot run the advised settings, and why."""
    return {
        name: str(error)
        for name, error in _exported(recommendation).items()
        if isinstance(error, InputError)
    }


def _exported(recommendation: Recommendation) -> dict[str, str | InputError]:
    found: dict[str, str | InputError] = {}
    for name in exports():
        try:
            found[name] = export(recommendation, name)
        except InputError as error:
            found[name] = error
    return found
