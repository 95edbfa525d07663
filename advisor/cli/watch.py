"""``advisor watch``: follow a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from advisor.cli import flags

if TYPE_CHECKING:
    from advisor.monitoring import View, WatchReport
    from advisor.runs import PilotRun

ALARM = 5
"""Exit code where something is wrong with the run."""


def watch(
    log: flags.Log,
    posterior: flags.WatchPosterior,
    pilots: flags.Pilots = None,
    target_reward: flags.TargetReward = None,
    steps: flags.PlannedSteps = None,
    level: flags.Level = 0.9,
    gpus: flags.Gpus = 1,
    once: flags.Once = False,
    every: flags.Every = 10.0,
    silent_after: flags.SilentAfter = 30.0,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Follow a growing log: where it will end, whether it stays stable, and whether to stop it.

    Ends when the planned steps are done; exits with 5 where something is wrong with the run. With
    --quiet it prints only what is not 'go on', with --json one object per update. With --pilots it
    fits anew, with this run among them, where the pilots alone do not explain it. A run that a
    tracker has (wandb:ENTITY/PROJECT/RUN) is looked at with --once.

    [bold]Example[/]: advisor watch run/trainer_state.json --posterior study --target-reward 0.8
    """
    from advisor.cli.terminal import HarmlessConsole
    from advisor.monitoring import View, reader

    if not once:
        _refuse_source(log)
    asked = {"target_reward": target_reward, "planned_steps": steps, "level": level}
    forecast = Forecast(posterior, pilots or [], gpus, asked)
    read = reader(**flags.stated(sidecar, settings, column))
    with View(HarmlessConsole(highlight=False), as_json=as_json, is_quiet=quiet) as view:
        if once:
            last: WatchReport | None = _once(forecast, read(log), log, view)
        else:
            last = _follow(
                forecast, view, Path(log), read, every=every, silent_after=60 * silent_after
            )
    if last is not None and last.decision.is_alarm:
        raise typer.Exit(ALARM)


class Forecast:
    """What a run's rows say under the posterior, fitted anew with the run where that is due."""

    def __init__(
        self, posterior: Path, pilots: list[str], gpus: int, asked: dict[str, Any]
    ) -> None:
        from advisor.cli.terminal import noted
        from advisor.monitoring import Refitter, Watch, load_posterior
        from advisor.runs import read_runs

        with noted():
            known, self._advised_steps = load_posterior(posterior)
        self._watch = Watch(known, **asked)
        self._is_length_given = asked["planned_steps"] is not None
        self._refit = Refitter(read_runs(pilots)) if pilots else None
        self._gpus = gpus

    def __call__(self, run: PilotRun, view: View) -> WatchReport:
        """Judge the run as it stands now."""
        from advisor.cli.terminal import noted

        with noted(quiet=True):  # what numpy thinks of an odd row is no note for a user
            return self._judged(run, view)

    def _judged(self, run: PilotRun, view: View) -> WatchReport:
        from advisor.monitoring import watch_report

        if not self._is_length_given and run.hyperparameters.planned_steps is None:
            self._watch.planned_steps = self._advised_steps
        found = watch_report(self._watch, run, gpus=self._gpus)
        again = self._refit(self._watch, run, found.update) if self._refit else None
        if again is None:
            return found
        self._watch, line = again
        view.say(line)
        return watch_report(self._watch, run, gpus=self._gpus)


def _refuse_source(log: str) -> None:
    """Raise an ``InputError`` where a log is no file that grows."""
    from advisor.errors import InputError
    from advisor.runs import is_source

    if is_source(log):
        raise InputError(
            "a tracker does not tell when a run has grown, so that it cannot be followed",
            path=log,
            advice="Look at it with --once, again whenever you like, or name the log that the "
            "trainer writes (of W&B wandb/run-*/run-*.wandb)",
        )


def _once(forecast: Forecast, runs: list[PilotRun], log: str, view: View) -> WatchReport:
    """Show one update of what a log holds now."""
    from advisor.errors import InputError

    if len(runs) > 1:
        raise InputError(
            f"there are {len(runs)} runs", path=log, advice="Give the log of one of them"
        )
    last = forecast(runs[0], view)
    view.show(last, _logged(runs[0]))
    return last


def _follow(
    forecast: Forecast, view: View, log: Path, read: Any, *, every: float, silent_after: float
) -> WatchReport | None:
    """Show an update whenever the log grows, until the planned steps are done."""
    from advisor.errors import AdvisorError
    from advisor.monitoring import follow

    last: WatchReport | None = None
    said: set[str] = set()
    for growth in follow(log, read, every=every, silent_after=silent_after):
        for line in growth.said:
            view.say(line)
        if growth.run is None:
            continue
        try:
            last = forecast(growth.run, view)
        except Exception as error:
            # A log may become readable, or named, while it grows; and a row that is a fault of ours
            # must not end the watch over the rows after it.
            own = isinstance(error, AdvisorError | ArithmeticError | ValueError)
            text = str(error) if own else f"{type(error).__name__}: {error}"
            if text not in said:
                view.say(f"no forecast: {text}")
            said.add(text)
            continue
        view.show(last, _logged(growth.run))
        if last.update.step >= last.update.planned_steps:
            break
    return last


def _logged(run: PilotRun) -> tuple[list[float], list[float]]:
    """Steps and finite rewards."""
    rows = [
        (step, reward)
        for step, reward in zip(run.step.tolist(), run.reward.tolist(), strict=True)
        if reward == reward
    ]
    return [step for step, _ in rows], [reward for _, reward in rows]
