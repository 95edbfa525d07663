"""``advisor watch``: follow a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from advisor.cli import flags
from advisor.errors import AdvisorError, InputError

if TYPE_CHECKING:
    from advisor.monitoring import Growth, View, WatchReport
    from advisor.runs import PilotRun

ALARM = 5
"""Exit code where something is wrong with the run."""


def watch(
    log: str,
    posterior: Path,
    *,
    pilots: list[str] | None = None,
    target_reward: float | None = None,
    steps: int | None = None,
    level: float = 0.9,
    gpus: int = 1,
    once: bool = False,
    every: float = 10.0,
    silent_after: float = 30.0,
    stated: flags.Stated,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Follow a growing log: where it will end, whether it stays stable, and whether to stop it.

    Ends when the planned steps are done; exits with 5 where something is wrong with the run. With
    --quiet it prints only what is not 'go on', with --json one object per update. With --pilots it
    fits anew, with this run among them, where the pilots alone do not explain it. A run that a
    tracker has (wandb:ENTITY/PROJECT/RUN) is looked at with --once.

    [bold]Example[/]: advisor watch run/trainer_state.json --posterior study --target-reward 0.8
    """
    from advisor.cli.terminal import HarmlessConsole
    from advisor.monitoring import View, follow, reader
    from advisor.runs import is_source

    if not once and is_source(log):
        raise InputError(
            "a tracker does not tell when a run has grown, so that it cannot be followed",
            path=log,
            advice="Look at it with --once, again whenever you like, or name the log that the "
            "trainer writes (of W&B wandb/run-*/run-*.wandb)",
        )
    asked = {"target_reward": target_reward, "planned_steps": steps, "level": level}
    forecast = Forecast(posterior, pilots or [], gpus, asked)
    read = reader(**stated.keywords)
    last: WatchReport | None = None
    with View(HarmlessConsole(highlight=False), as_json=as_json, is_quiet=quiet) as view:
        if once:
            runs = read(log)
            if len(runs) > 1:
                raise InputError(
                    f"there are {len(runs)} runs", path=log, advice="Give the log of one of them"
                )
            last = forecast(runs[0], view)
        else:
            silence = 60 * silent_after
            for growth in follow(Path(log), read, every=every, silent_after=silence):
                last = _grown(forecast, growth, view) or last
                if last is not None and last.update.step >= last.update.planned_steps:
                    break
    if last is not None and last.decision.is_alarm:
        raise typer.Exit(ALARM)


class Forecast:
    """What a run's rows say under the posterior, fitted again with the run where that is due."""

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
        self.refused: set[str] = set()

    def __call__(self, run: PilotRun, view: View) -> WatchReport:
        """Judge the run as it stands now, and show it."""
        from advisor.cli.terminal import noted
        from advisor.monitoring import watch_report

        if not self._is_length_given and run.hyperparameters.planned_steps is None:
            self._watch.planned_steps = self._advised_steps
        with noted(quiet=True):  # what numpy thinks of an odd row is no note for a user
            found = watch_report(self._watch, run, gpus=self._gpus)
            again = self._refit(self._watch, run, found.update) if self._refit else None
            if again is not None:
                self._watch, line = again
                view.say(line)
                found = watch_report(self._watch, run, gpus=self._gpus)
        is_logged = run.reward == run.reward
        view.show(found, (run.step[is_logged].tolist(), run.reward[is_logged].tolist()))
        return found


def _grown(forecast: Forecast, growth: Growth, view: View) -> WatchReport | None:
    """Show what a look at a growing log found."""
    for line in growth.said:
        view.say(line)
    if growth.run is None:
        return None
    try:
        return forecast(growth.run, view)
    except Exception as error:
        # A log may become readable, or named, while it grows; and a row that is a fault of ours
        # must not end the watch over the rows after it.
        own = isinstance(error, AdvisorError | ArithmeticError | ValueError)
        text = str(error) if own else f"{type(error).__name__}: {error}"
        if text not in forecast.refused:
            view.say(f"no forecast: {text}")
        forecast.refused.add(text)
        return None
