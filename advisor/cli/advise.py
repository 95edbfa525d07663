"""``advisor advise``: from pilot logs to a recommended configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.common import DEFAULT_SEED

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.advice import Request, Search
    from advisor.model import Sampling
    from advisor.runs import Diagnosis, PilotRun
    from advisor.study import Study

CANNOT_TELL = 3
"""Exit code where the pilots do not hold the answer."""

COLOURS = {"recommendation": "green", "next_pilot": "yellow", "infeasible": "red"}


def advise(
    logs: flags.Logs,
    out: flags.StudyOut = Path("advisor-study"),
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    steps: flags.Steps = None,
    completions: flags.Completions = None,
    gpu_hours: flags.GpuHours = None,
    to_reward: flags.ToReward = None,
    to_share: flags.ToShare = None,
    risk: flags.Risk = None,
    level: flags.Level = 0.9,
    gpus: flags.Gpus = 1,
    seconds_per_step: flags.SecondsPerStep = None,
    devices: flags.Devices = 1,
    model: flags.Model = None,
    task: flags.Task = None,
    parameters: flags.Parameters = None,
    start_reward: flags.StartReward = None,
    group_sizes: flags.GroupSizes = None,
    learning_rates: flags.LearningRates = None,
    sampler: flags.Sampler = "tpe",
    storage: flags.Storage = None,
    priors: flags.Preset = None,
    fast: flags.Fast = False,
    seed: flags.Seed = DEFAULT_SEED,
    quiet: flags.Quiet = False,
    details: flags.Details = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Read pilot logs, fit them, and recommend a configuration.

    [bold]Examples[/]: advisor advise runs/ --steps 500 --level 0.95 --out study
    / advisor advise runs/ --to-reward 0.8 --gpus 8
    """
    from advisor.advice import Request, Search
    from advisor.model import Sampling

    run_advise(
        logs,
        out=out,
        sampling=Sampling.first_look(seed) if fast else Sampling(seed=seed),
        beside=flags.stated(sidecar, settings, column),
        fitting={"priors": priors},
        request=Request(
            steps=steps,
            completions=completions,
            gpu_hours=gpu_hours,
            level=level,
            to_reward=to_reward,
            to_share=to_share,
            risk=risk,
            model=model,
            task=task,
            parameters=parameters,
            start_reward=start_reward,
            gpus=gpus,
            seconds_per_step=seconds_per_step,
            devices=devices,
            group_sizes=flags.numbers(group_sizes, "--group-sizes", int),
            learning_rates=flags.numbers(learning_rates, "--learning-rates", float),
        ),
        search=Search(sampler=sampler, storage=storage, seed=seed),
        quiet=quiet,
        details=details,
        as_json=as_json,
    )


def run_advise(
    logs: Sequence[str | Path],
    *,
    out: Path,
    sampling: Sampling,
    beside: dict[str, Any] | None = None,
    fitting: dict[str, Any] | None = None,
    request: Request | None = None,
    search: Search | None = None,
    quiet: bool,
    details: bool,
    as_json: bool,
    finished: Path | None = None,
) -> None:
    """Read, diagnose, fit, advise, write the study and print the answer.

    ``finished`` holds runs that were made after the pilots, for the end of page and answer.
    """
    from advisor.advice import advise as recommend
    from advisor.advice import check_storage
    from advisor.cli.terminal import Reporter, noted
    from advisor.errors import KeptElsewhereError
    from advisor.forecast import fit
    from advisor.runs import diagnose, read_runs
    from advisor.study import Study, check_place

    check_place(out)
    if search is not None and search.storage is not None:
        check_storage(search.storage)
    lost: Exception | None = None
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(logs, **(beside or {}))
        judged = [diagnose(run, siblings=runs) for run in runs]
        if not quiet:
            print_runs(runs, progress.console)
            print_failed_pilots(judged, progress.console)
        with noted(quiet=quiet):
            posterior = fit(runs, sampling=sampling, progress=progress, **(fitting or {}))
            advice = recommend(
                posterior, request, search=search, seed=sampling.seed, progress=progress
            )
        made = () if finished is None else tuple(read_runs(finished))
        study = Study(posterior, advice, tuple(judged), finished=made)
        try:
            study = study.save(out, progress=progress)
        except KeptElsewhereError as error:
            study, lost = replace(study, path=error.kept), error
        except Exception as error:
            lost = error  # the answer itself must not go with its folder
    if as_json:
        echo(advice.to_json())
    else:
        print_answer(study, details=details)
    if lost is not None:
        raise lost
    if advice.kind != "recommendation":
        raise typer.Exit(CANNOT_TELL)


def print_runs(runs: Sequence[PilotRun], console: Console) -> None:
    """Print one line per pilot."""
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from advisor.common import counted

    table = Table(title=counted(len(runs), "pilot"), title_justify="left", header_style="bold")
    for name, justify in (
        ("run", "left"),
        ("model", "left"),
        ("learning rate", "right"),
        ("G", "right"),
        ("K", "right"),
        ("steps", "right"),
        ("reward", "right"),
    ):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for run in runs:
        settings = run.hyperparameters
        reward = run.reward[np.isfinite(run.reward)]
        ends = f"{reward[:5].mean():.2f} -> {reward[-5:].mean():.2f}" if reward.size else "-"
        table.add_row(
            Text(run.id),
            Text(run.model or "-"),
            "-" if settings.learning_rate is None else f"{settings.learning_rate:.2g}",
            str(settings.group_size or "-"),
            str(settings.refresh_interval or "-"),
            f"{run.step[-1]:.0f}",
            ends,
        )
    console.print(table)


def print_failed_pilots(judged: Sequence[Diagnosis], console: Console) -> None:
    """Say which pilots show something that their rewards do not: it shapes the answer as well."""
    from rich.text import Text

    from advisor.runs import AFTER

    for one in judged:
        causes = [card for card in one.cards if card.status == "FAIL" and card.mode != "collapse"]
        own = [card for card in causes if AFTER not in card.witnesses]
        if own:
            console.print(
                Text(
                    f"Note: pilot {one.id}: {own[0].title.lower()}: {own[0].headline} Its rewards "
                    "shape the answer all the same; leave it out if they are not what is meant."
                ),
                soft_wrap=True,
            )


def print_answer(study: Study, *, details: bool) -> None:
    """Print the answer, what was assumed, and where everything lies."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from advisor.advice import SAID, TITLES, missing_configs, weightiest
    from advisor.cli.compare import show
    from advisor.cli.terminal import HarmlessConsole, output
    from advisor.findings import describe
    from advisor.runs import find_trainer

    console, advice = HarmlessConsole(highlight=False), study.recommendation
    first, _, rest = (advice.text if details else advice.summary).partition("\n")
    title = TITLES[advice.kind]
    body = Group(Text(first, style="bold"), Text(rest))
    if console.is_terminal:
        console.print(Panel(body, title=title, border_style=COLOURS[advice.kind]))
    else:
        console.print(Text(title + "\n"), body, soft_wrap=True)
    if details:
        console.print()
        console.print(Text("What the pilots say: " + describe(study.posterior)), soft_wrap=True)
    if advice.assumptions:
        weighty, others = weightiest(
            advice.assumptions, len(advice.assumptions) if details else SAID
        )
        console.print(Text("\nAssumed, what matters most first:" if others else "\nAssumed:"))
        for line in weighty:
            console.print(Text(f"  {line}"), soft_wrap=True)
        if others:
            console.print(Text(f"  and {others} more: --details, or report.html"), soft_wrap=True)
    outcome = study.outcome()
    if outcome is not None:
        show(outcome, output(), everything=True)
    top = [name for name in study.files if "/" not in name]
    if not details:
        told = "\nAlternatives, recipes, evidence: --details, or recommendation.txt in the study."
        console.print(Text(told), soft_wrap=True)
    if study.path is None:
        return
    console.print(
        Text(f"\nStudy in {study.path}/: {', '.join(sorted(top))}, and figures/"), soft_wrap=True
    )
    own = find_trainer(advice.trainer)
    if own is not None and own.export is not None:
        why = missing_configs(advice).get(own.export.name)
        if why is not None:
            told = f"No {own.export.file_name}, for {own.name} cannot be told all of it: {why}"
            console.print(Text(told), soft_wrap=True)
