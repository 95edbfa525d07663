"""``advisor plan`` and ``advisor pilots``: which pilots to run, go on with, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from advisor.cli import flags
from advisor.cli.flags import echo
from advisor.common import DEFAULT_SEED
from advisor.errors import CannotTellError, InputError, NotConvergedError

if TYPE_CHECKING:
    from advisor.advice import Piloting, PilotPlan
    from advisor.model import Posterior
    from advisor.runs import PilotRun, Settings

LOOKS = 20  # Parts of a planned pilot of which a new one must be seen before all are fitted again


def plan(
    model: str,
    steps: int | None = None,
    batches: int | None = None,
    settings: list[str] | None = None,
    parameters: float | None = None,
    pilot_model: str | None = None,
    pilot_parameters: float | None = None,
    start_reward: float | None = None,
    share: float = 0.2,
    vary_all: bool = False,
    projects: int = 1,
    to: str | None = None,
    devices: int = 1,
    priors: str | None = None,
    out: Path | None = None,
    seed: int = DEFAULT_SEED,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Plan a few short pilots before a full run, or say that none is worth its price."""
    from advisor.advice import PLAN, planned_settings, size_of
    from advisor.advice import plan as plan_pilots
    from advisor.cli.terminal import write_new
    from advisor.forecast import Target

    if out is not None and to is None:
        raise InputError(
            "nothing says for which trainer the scripts are", argument="to", advice="Give --to trl"
        )
    if (pilot_model is None) != (pilot_parameters is None) and pilot_parameters is not None:
        raise InputError(
            "the pilots' model has a size and no name", argument="pilot_model", advice="Name it"
        )
    stated, assumed = planned_settings(flags.pairs(settings, "--set"))
    if (steps is None) == (batches is None):
        problem = "a full run has one length"
        raise InputError(problem, key="--steps", advice="Give --steps or --batches")
    steps = steps or (batches or 0) * stated.refresh_interval
    small = None
    if pilot_model is not None:
        small = (pilot_model, size_of(pilot_model, pilot_parameters, "pilot_parameters"))
    found = plan_pilots(
        stated,
        steps,
        Target("task", model, size_of(model, parameters, "parameters"), start_reward),
        pilot_model=small,
        share=share,
        vary_all=vary_all,
        projects=projects,
        priors=priors,
        seed=seed,
    ).model_copy(update={"trainer": to, "devices": devices})
    scripts: dict[str, str] = {}
    if to is not None:
        runs = [(one.name, one.settings, one.steps, one.model) for one in found.pilots]
        if found.kind == "run":
            runs = [("run", found.settings, found.steps, found.model)]
        scripts = dict(_script(found, to, *run) for run in runs)
    if out is not None:
        for name, text in {**scripts, PLAN: found.model_dump_json(indent=2) + "\n"}.items():
            write_new(out / name, text.encode(), with_folder=True)
    if as_json:
        echo(found.model_dump_json(indent=2))
        return
    echo(found.text)
    if quiet:
        return
    if assumed:
        echo("\nAssumed:\n" + "\n".join(f"  {line}" for line in assumed))
    if out is not None:
        logs = "Let every pilot log into its own folder there, and meanwhile"
        if found.kind == "run":
            logs = "Should you run pilots all the same"
        echo(f"\nScripts in {out}: {', '.join(scripts)}. {logs}: advisor pilots {out}")


def _script(
    plan: PilotPlan, to: str, name: str, settings: Settings, steps: int, model: str
) -> tuple[str, str]:
    """File of a trainer's script for a run of a plan, and its text."""
    from advisor.runs import Trainer

    note = f"{name}: {steps} steps, planned by advisor plan before {plan.steps} of {plan.model}."
    text = Trainer.export_config(settings, steps, to, devices=plan.devices, model=model, note=note)
    return f"{name}/{Trainer.exports()[to].file_name}", text


def pilots(
    plan: Path,
    *,
    logs: list[str] | None = None,
    follow: bool = False,
    every: float = 10.0,
    out: Path | None = None,
    stated: flags.Stated,
    priors: str | None = None,
    seed: int = DEFAULT_SEED,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Say which pilots to start, continue, stop or extend; then stop piloting, and what to run."""
    from advisor.advice import PilotPlan
    from advisor.study import check_place

    if out is not None:
        check_place(out)
    desk = Desk(
        folder=plan,
        plan=PilotPlan.load(plan),
        logs=logs or [str(plan)],
        stated=stated.keywords,
        priors=priors,
        seed=seed,
        quiet=quiet,
    )

    def show(found: Piloting) -> None:
        if as_json:
            echo(found.model_dump_json(indent=None if follow else 2))
        else:
            echo((found.model_copy(update={"said": ()}) if quiet else found).text + "\n" * follow)

    found = desk.followed(show, every) if follow else desk.judged()
    if not follow:
        show(found)
    written = desk.written(found, out)
    if not as_json:
        for line in written:
            echo(line)
    if found.cannot_tell:
        raise typer.Exit(CannotTellError.exit_code)


@dataclass
class Desk:
    """A plan, where its logs lie, and what was found in them last."""

    folder: Path
    plan: PilotPlan
    logs: Sequence[str]
    stated: dict[str, Any]
    priors: str | None
    seed: int
    quiet: bool
    posterior: Posterior | None = None
    runs: list[PilotRun] = field(default_factory=list)

    def judged(self) -> Piloting:
        """Read, fit and weigh what is there now."""
        self.runs, unread = self.read()
        return self._word(unread)

    def read(self) -> tuple[list[PilotRun], list[str]]:
        """Runs that can be read now, and which logs cannot and why."""
        from advisor.runs import inspect

        found = inspect(self.logs, **self.stated)
        names = {pilot.name for pilot in self.plan.pilots}
        unread = [
            f"{one.path} cannot be read yet: {one.reason}"
            for one in found.unread_logs
            if names & set(one.path.parts)
        ]
        return found.runs, unread

    def followed(self, show: Callable[[Piloting], None], every: float) -> Piloting:
        """Look again and again, until the word is final."""
        from advisor.runs import is_source

        if any(is_source(log) for log in self.logs):
            # Each look at a tracker's server asks for whole histories; ours.
            every = max(every, 60.0)
        state: object = None
        noted: set[str] = set()
        while True:
            try:
                self.runs, unread = self.read()
                if (grown := self._grown(unread)) != state:
                    state = grown
                    found = self._word(unread)
                    show(found)
                    if found.is_final:
                        return found
                    self.written(found, None)
            except (InputError, NotConvergedError, OSError) as error:
                # A log may become readable while it grows, and chains may agree on more of it.
                if str(error) not in noted:
                    echo(f"Note: no word yet: {error}", err=True)
                noted.add(str(error))
            time.sleep(every)

    def written(self, found: Piloting, out: Path | None) -> list[str]:
        """Write the study, or say where the script of the run is."""
        from advisor.cli.terminal import Reporter
        from advisor.diagnosis import diagnose
        from advisor.runs import Trainer
        from advisor.study import Study

        trainer = self.plan.trainer
        file = "" if trainer is None else Trainer.exports()[trainer].file_name
        if found.is_final and found.word == "run":
            return [f"\nScript of the run: {self.folder / 'run' / file}"]
        if not found.is_final or found.advice is None or self.posterior is None:
            return []
        if out is None:
            return [f"\nTo keep it, with the launch config: advisor pilots {self.folder} --out NEW"]
        judged = tuple(diagnose(run, siblings=self.runs) for run in self.runs)
        with Reporter(quiet=self.quiet) as progress:
            study = Study(self.posterior, found.advice, judged).save(out, progress=progress)
        launch = [f"Launch: {out / file}"]
        if file and file not in study.files:
            launch = [
                f"{trainer} cannot run these settings: advisor export {out} --to {trainer} says why"
            ]
        return [f"\nStudy in {out}/", *(launch if file else [])]

    def _word(self, unread: list[str]) -> Piloting:
        """Fit the runs and weigh the pilots."""
        from advisor.advice import fit_pilots, pilots
        from advisor.cli.terminal import Reporter

        asked: dict[str, Any] = {"priors": self.priors, "seed": self.seed}
        with Reporter(quiet=self.quiet) as progress:
            self.posterior, _ = fit_pilots(self.plan, self.runs, progress=progress, **asked)
            found = pilots(
                self.plan, self.runs, posterior=self.posterior, progress=progress, **asked
            )
        return found.model_copy(update={"said": (*found.said, *unread)})

    def _grown(self, unread: list[str]) -> object:
        """What must change before all is fitted again: how far each run is, in parts of a pilot."""
        longest = max(pilot.steps for pilot in self.plan.pilots)
        runs = [
            (run.path, int(LOOKS * run.step[-1] / longest)) for run in self.runs if run.step.size
        ]
        return sorted(runs), len(unread)
