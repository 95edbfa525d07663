"""``advisor inspect``, ``diagnose`` and ``watch``: what logs hold, and how their runs go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from advisor.cli import flags
from advisor.cli.flags import echo
from advisor.common import counted
from advisor.errors import AdvisorError, CannotTellError, InputError

if TYPE_CHECKING:
    from advisor.cli.terminal import HarmlessConsole
    from advisor.diagnosis import Diagnosis
    from advisor.monitoring import Growth, View, WatchReport
    from advisor.runs import Inspection, PilotRun

FAILED = 5  # Exit code where a run fails a check, or something is wrong with one that continues


class FailOn(StrEnum):
    """Mildest verdict at which a command fails."""

    FAIL = "fail"
    WARNING = "warning"
    NEVER = "never"


def inspect(
    logs: list[str],
    *,
    stated: flags.Stated,
    explained: bool = False,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Show which runs a folder holds, what was understood, and what to add before a fit."""
    from advisor.cli.inspection import explain, show
    from advisor.cli.terminal import output
    from advisor.runs import inspect as inspect_logs

    found = inspect_logs(logs, **stated.keywords)
    if as_json:
        echo(found.to_json())
    else:
        console = output()
        if found.runs:  # or the error names the files and why
            show(found, console, quiet=quiet)
        if not quiet and (ready := [run for run in found.train_runs if not run.needs]):
            echo(_advised(found, ready))
        if explained:
            explain(found, console)
    require_runs(found, logs)
    if found.is_flat:
        raise typer.Exit(CannotTellError.exit_code)


def _advised(found: Inspection, ready: Sequence[PilotRun]) -> str:
    """What advise answers about the runs that lack nothing, where it refuses them."""
    from advisor.model import cohort_of

    try:
        if not found.is_flat:
            cohort_of(ready)
    except InputError as error:
        return f"Together advisor advise would refuse them: {error}"
    gpus = gpus_of(ready)
    named = f"{counted(gpus, 'GPU')}, as the settings have it" if gpus else "one GPU"
    return f"advisor advise counts GPU-hours of {named}, unless --gpus says how many."


def gpus_of(runs: Iterable[PilotRun]) -> int | None:
    """GPUs of all runs whose settings contain a number, where it is one; None otherwise."""
    stated = {run.gpus for run in runs if run.gpus is not None}
    return stated.pop() if len(stated) == 1 else None


def require_runs(found: Inspection, logs: Sequence[str | Path]) -> None:
    """Raise an ``InputError`` where no run was found."""
    if not found.runs:
        named = all(Path(path).is_file() for path in logs)  # of which each says what to do
        instead = None if named else "a folder that holds"
        raise found.refused(logs, "no run was found", instead)


def diagnose(
    logs: list[str],
    *,
    stated: flags.Stated,
    posterior: Path | None = None,
    fail_on: FailOn = FailOn.FAIL,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Distinguish reward hacking, dead advantages, lost entropy, instability and collapse."""
    from advisor.cli.terminal import output
    from advisor.diagnosis import Diagnosis
    from advisor.runs import inspect as inspect_logs

    found = inspect_logs(logs, **stated.keywords)
    broken = [Diagnosis.of_broken(*one[:2]) for one in found.unread if one.kind == "broken"]
    if not broken:
        require_runs(found, logs)
    judged = [*_judge(found.runs, posterior, quiet=quiet), *broken]
    if as_json:
        echo(Diagnosis.json_of(judged))
    else:
        _show(judged, output(), with_cards=not quiet)
    verdicts = {str(one.verdict) for one in judged}
    for path, reason, kind in found.unread:
        if kind == "log":
            echo(f"Not read: {path}: {reason}", err=True)
    failing = {"fail": ("FAIL",), "warning": ("FAIL", "WARNING"), "never": ()}[fail_on.value]
    if verdicts.intersection(failing):
        raise typer.Exit(FAILED)


def _judge(runs: Sequence[PilotRun], posterior: Path | None, *, quiet: bool) -> list[Diagnosis]:
    """Diagnose runs, with their distance from the refresh limit where a posterior is given."""
    from advisor.diagnosis import diagnose as judge

    if posterior is None:
        return [judge(run, siblings=runs) for run in runs]
    from advisor.cli.terminal import noted
    from advisor.forecast import refresh_margin
    from advisor.monitoring import load_posterior

    with noted(quiet=quiet):
        known, _ = load_posterior(posterior)
    found = [refresh_margin(known, run) or (None, None) for run in runs]
    return [judge(run, one[0], one[1], siblings=runs) for run, one in zip(runs, found, strict=True)]


def _show(found: Sequence[Diagnosis], console: HarmlessConsole, *, with_cards: bool) -> None:
    """Print a table of runs and, below it, the cards: all of a single run, else the bad ones."""
    from advisor.cli.terminal import VERDICTS, table

    rows = []
    for one in found:
        step = "" if one.collapse_step is None else f"{one.collapse_step:.0f}"
        rows.append((one.shown_id, one.verdict, step, one.headline))
    names = ("run", "verdict", "collapse at step", "says")
    console.print(table(names, rows, right=("collapse at step",)))
    if not with_cards:
        return
    is_alone = len(found) == 1
    for one in found:
        cards = sorted(one.cards, key=lambda card: card.status == "NOT APPLICABLE")
        shown = [card for card in cards if is_alone or card.status == "FAIL"]
        if shown and not is_alone:
            console.say(f"\n{one.shown_id}", style="bold")
        for card in shown:
            head, *rest = card.lines
            console.say(head, style=VERDICTS.get(card.status, ""))
            for line in rest:
                console.say(line, style="dim")
    if not is_alone:
        console.say("Warnings and all numbers: give one run alone, or --json.")


# A run that goes on -------------------------------------------------------------------------------


def watch(
    log: str,
    posterior: Path,
    *,
    pilots: list[str] | None = None,
    target_reward: float | None = None,
    steps: int | None = None,
    level: float = 0.9,
    gpus: int | None = None,
    stop: str | None = None,
    dry_run: bool = False,
    once: bool = False,
    every: float = 10.0,
    silent_after: float = 30.0,
    stated: flags.Stated,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Follow a growing log: where it will end, whether it stays stable, and whether to stop it."""
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
    if dry_run and stop is None:
        raise InputError("no command is given", key="--dry-run", advice="Give --stop COMMAND")
    end = None if stop is None else stopper(stop, is_dry=dry_run)
    asked = {"target_reward": target_reward, "planned_steps": steps, "level": level}
    read = reader(**stated.keywords)
    runs = read(log) if once else []  # before what takes seconds to load
    if len(runs) > 1:
        problem = f"there are {len(runs)} runs"
        raise InputError(problem, path=log, advice="Give the log of one of them")
    forecast = RunForecast(posterior, pilots or [], gpus, asked)
    read = reader(forecast.settings, **stated.keywords)
    runs = read(log) if any(run.needs for run in runs) else runs
    last: WatchReport | None = None
    with View(HarmlessConsole(highlight=False), as_json=as_json, is_quiet=quiet) as view:
        if once:
            last = forecast(runs[0], view)
        else:
            if not quiet:
                echo(f"Following {log}; --once looks once.", err=True)
            for growth in follow(Path(log), read, every=every, silent_after=60 * silent_after):
                last = _grown(forecast, growth, view) or last
                is_stopped = end is not None and _says_stop(last)
                if is_stopped or (last and last.update.step >= last.update.planned_steps):
                    break
        if end is not None and _says_stop(last):
            view.say(end())
    if last is not None and last.decision.is_alarm:
        raise typer.Exit(FAILED)


def _says_stop(last: WatchReport | None) -> bool:
    return last is not None and last.decision.action == "stop"


def stopper(command: str, *, is_dry: bool) -> Callable[[], str]:
    """Check a command by which a run is ended; called, it is run, unless dry, and says so."""
    import shlex
    import shutil
    import subprocess

    words = shlex.split(command)
    if not words or shutil.which(words[0]) is None:  # now, and not when the run is to be ended
        problem = f"'{command}' names no program that is installed"
        raise InputError(problem, key="--stop", advice="Give a command, such as 'scancel 4711'")

    def run() -> str:
        if is_dry:
            return f"Dry run, so this was not run: {command}"
        done = subprocess.run(words, check=False, stdout=2)  # standard output is ours
        if done.returncode:
            problem = f"'{command}' ended with code {done.returncode}: the run may continue"
            raise InputError(problem, key="--stop", advice="End the run by hand")
        return f"Stopped the run: {command}"

    return run


class RunForecast:
    """What a run's rows say under the posterior, fitted again with the run where that is due."""

    def __init__(
        self, posterior: Path, pilots: list[str], gpus: int | None, asked: dict[str, Any]
    ) -> None:
        from advisor.cli.terminal import noted
        from advisor.monitoring import Refitter, Watch, load_posterior
        from advisor.runs import read_runs

        with noted():
            known, advised = load_posterior(posterior)
        self._refit = Refitter(read_runs(pilots)) if pilots else None
        self._watch = Watch(known, **asked)
        self._is_length_given = asked["planned_steps"] is not None
        self.settings = advised.settings
        self._advised_steps, self._gpus = advised.steps, gpus or advised.gpus
        self.refused: set[str] = set()

    def __call__(self, run: PilotRun, view: View) -> WatchReport:
        """Judge the run as it is now, and show it."""
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
        view.show(found)
        return found


def _grown(forecast: RunForecast, growth: Growth, view: View) -> WatchReport | None:
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
        text = str(error) if isinstance(error, AdvisorError) else f"{type(error).__name__}: {error}"
        if text not in forecast.refused:
            view.say(f"no forecast: {text}")
        forecast.refused.add(text)
        return None
