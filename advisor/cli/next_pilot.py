"""``advisor next-pilot``: the pilot that would improve the decision most for its price."""

from __future__ import annotations

import json

from advisor.cli import flags
from advisor.cli.echo import echo


def next_pilot(
    study: flags.StudyFolder,
    steps: flags.PilotSteps = None,
    seed: flags.SimulationSeed = None,
    to: flags.PilotTrainer = None,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Name the pilot whose result would improve the decision most for its price.

    [bold]Examples[/]: advisor next-pilot study --steps 60
    / advisor next-pilot study --to trl > pilot.yaml
    """
    from advisor.advice import export_pilot, in_trainer_names, pilot_reason
    from advisor.cli.terminal import load

    loaded = load(study, quiet=quiet)
    advice, pilot = loaded.recommendation, loaded.next_pilot(steps=steps, seed=seed)
    if as_json:
        echo(json.dumps(pilot.model_dump(mode="json"), indent=2))
        return
    if to is not None:
        echo(export_pilot(advice, pilot, to), nl=False)
        return
    echo(
        f"{in_trainer_names(pilot.settings, advice.trainer)}\n\n{pilot.steps} steps. "
        f"Why: {pilot_reason(pilot)}"
    )
