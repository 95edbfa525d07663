"""The command that follows a run: watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.flags import Debug, pairs

if TYPE_CHECKING:
    from advisor.run.pilot_run import PilotRun


def watch(
    log: Annotated[Path, typer.Argument(help="Log of the run, or its folder; may not exist yet.")],
    posterior: Annotated[
        Path, typer.Option(help="posterior.nc, or the folder that advisor advise wrote.")
    ],
    pilots: Annotated[
        list[Path] | None,
        typer.Option(help="Logs of the pilots: fit anew with this run where it is due. Repeat."),
    ] = None,
    target_reward: Annotated[
        float | None, typer.Option(help="Also say how likely this train reward is reached.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help=r"Planned optimizer steps \[default: as logged, else as advised]."),
    ] = None,
    level: Annotated[float, typer.Option(help="P(stable) wanted.")] = 0.9,
    gpus: Annotated[int, typer.Option(help="GPUs of the run.", min=1)] = 1,
    once: Annotated[bool, typer.Option("--once", help="One update of what is there.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 10.0,
    silent_after: Annotated[
        float, typer.Option(help="Minutes without a new row after which that is said.", min=0.1)
    ] = 30.0,
    sidecar: Annotated[
        Path | None, typer.Option(help="pilots.toml with settings that the log does not hold.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of the run, e.g. --set group_size=8. Repeat."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Column of a table, e.g. --column reward=train/acc. Repeat."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only what is not 'go on'.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per update.")] = False,
    debug: Debug = False,
) -> None:
    """Follow a growing log: where it will end, whether it stays stable, and whether to stop it.

    Ends when the planned steps are done; exits with 5 where something is wrong with the run.

    [bold]Example[/]: advisor watch run/trainer_state.json --posterior study --target-reward 0.8
    """
    import warnings

    from rich.console import Console

    from advisor.errors import InputError
    from advisor.logs.read import read_runs
    from advisor.monitoring import Look, Watch, look
    from advisor.monitoring.follow import follow
    from advisor.monitoring.loading import load_posterior
    from advisor.monitoring.reading import reader
    from advisor.monitoring.refit import Refitter
    from advisor.monitoring.view import View

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        held, planned = load_posterior(posterior)
    for warning in said:
        typer.echo(f"Note: {warning.message}.", err=True)
    watched = Watch(held, target_reward=target_reward, planned_steps=steps, level=level)
    read = reader(
        sidecar=sidecar, overrides=pairs(settings, "--set"), columns=pairs(column, "--column")
    )

    refitted = Refitter(read_runs(pilots)) if pilots else None

    def forecast(run: PilotRun) -> Look:
        nonlocal watched
        if steps is None and run.hyperparameters.planned_steps is None:
            watched.planned_steps = planned
        found = look(watched, run, gpus=gpus)
        again = refitted(watched, run, found.update) if refitted else None
        if again is None:
            return found
        watched, line = again
        view.say(line)
        return look(watched, run, gpus=gpus)

    last: Look | None = None
    told: set[str] = set()
    view = View(Console(highlight=False), as_json=as_json, is_quiet=quiet)
    with view:
        if once:
            found = read(log)
            if len(found) > 1:
                raise InputError(
                    f"there are {len(found)} runs", path=log, advice="Give the log of one of them"
                )
            last = forecast(found[0])
            view.show(last, _logged(found[0]))
        else:
            for growth in follow(log, read, every=every, silent_after=60 * silent_after):
                for line in growth.said:
                    view.say(line)
                if growth.run is None:
                    continue
                try:
                    last = forecast(growth.run)
                except (InputError, ArithmeticError, ValueError) as error:
                    # A log may become readable, or named, while it grows.
                    if str(error) not in told:
                        view.say(f"no forecast: {error}")
                    told.add(str(error))
                    continue
                view.show(last, _logged(growth.run))
                if last.update.step >= last.update.planned_steps:
                    break
    if last is not None and last.advice.is_alarm:
        raise typer.Exit(ALARM)


ALARM = 5
"""Exit code where something is wrong with the run."""


def _logged(run: PilotRun) -> tuple[list[float], list[float]]:
    """Steps and finite rewards."""
    rows = [
        (step, reward)
        for step, reward in zip(run.step.tolist(), run.reward.tolist(), strict=True)
        if reward == reward
    ]
    return [step for step, _ in rows], [reward for _, reward in rows]
