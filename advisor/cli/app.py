"""Command line: parse, call one function, print. No statistics here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advisor.cli.advice import export, next_pilot, what_if
from advisor.cli.argument_flags import with_flags
from advisor.cli.compare import compare
from advisor.cli.diagnose import diagnose
from advisor.cli.doctor import doctor
from advisor.cli.flags import WIDE, Column, Debug, Logs, Settings, Sidecar, pairs
from advisor.cli.plot import plot
from advisor.cli.priors import priors_app
from advisor.cli.report import report
from advisor.cli.watch import watch

if TYPE_CHECKING:
    from advisor.advice import Recommendation
    from advisor.forecast.forecaster import Target
    from advisor.model.posterior import Posterior

app = typer.Typer(
    name="advisor",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Advice on group size, learning rate and refresh interval of a GRPO run, from short pilot "
        "logs, before the full run is launched."
    ),
    epilog="[bold]Example[/]: advisor demo, then advisor advise runs/ --steps 500 --out study\n\n"
    "Exit codes: 0 done, 1 our fault, 2 bad input or installation, 3 infeasible or cannot tell, "
    "4 not converged, 5 something is wrong with a run (diagnose, watch), 130 stopped by Ctrl-C.",
)

CANNOT_TELL = 3
NOT_CONVERGED = 4

Out = Annotated[Path, typer.Option(help="Folder to write the study into.")]
Steps = Annotated[
    int | None,
    typer.Option(help=r"Optimizer steps of the full run \[default: 3 x the longest pilot]."),
]
Gpus = Annotated[int, typer.Option(help="GPUs of the pilots and of the full run.", min=1)]
Level = Annotated[float, typer.Option(help="P(stable) that the advice must reach.")]
Seed = Annotated[int, typer.Option(help="Seed of sampler and search.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress; only the answer.")]
Details = Annotated[
    bool,
    typer.Option("--details", help="Also print alternatives, recipes and what the pilots say."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the recommendation as JSON.")]


@app.command()
def demo(
    out: Out = Path("advisor-study-demo"),
    seed: Seed = 1,
    quiet: Quiet = False,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Advise on twelve real pilots of tiny transformers that come with the package.

    [bold]Example[/]: advisor demo --out my-first-study
    """
    from advisor.logs.demo import demo_folder
    from advisor.model.sampling import Sampling

    _advise(
        [demo_folder()],
        out=out,
        sampling=Sampling(seed=seed),
        quiet=quiet,
        details=details,
        as_json=as_json,
    )


@app.command()
def inspect(
    logs: Logs,
    sidecar: Sidecar = None,
    settings: Settings = None,
    column: Column = None,
    explained: Annotated[
        bool,
        typer.Option("--explain", help="For each run: keys read, and the arithmetic behind K."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Only the runs, not what to add nor what is no log.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show which runs a folder holds, what was understood, and what to add before a fit.

    [bold]Example[/]: advisor inspect runs/ --explain
    """
    from rich.console import Console

    from advisor.errors import InputError
    from advisor.logs.inspection import as_json as to_json
    from advisor.logs.inspection import explain, show
    from advisor.logs.survey import known_formats, survey

    found = survey(
        logs,
        sidecar=sidecar,
        overrides=pairs(settings, "--set"),
        columns=pairs(column, "--column"),
    )
    if as_json:
        typer.echo(to_json(found))
    else:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = WIDE  # nothing to fit into
        show(found, console, quiet=quiet)
        if explained:
            explain(found, console)
    if not found.runs:
        raise InputError(
            "no run was found",
            path=", ".join(str(path) for path in logs[:3]),
            advice=f"Give a folder or file that holds one of: {known_formats()}",
        )


app.command("diagnose")(diagnose)

Preset = Annotated[
    str | None,
    typer.Option(
        help="Prior preset, or a path to a .toml "
        r"\[default: lora, small_models or full_finetuning, as the runs are]."
    ),
]
Families = Annotated[
    str | None,
    typer.Option(
        help="Families of curves, weighted by their forecasts: 'all', or names with commas "
        r"\[default: spectrum]."
    ),
]


@app.command()
def fit(
    logs: Logs,
    out: Annotated[Path, typer.Option(help="File to save the posterior in.")] = Path(
        "posterior.nc"
    ),
    sidecar: Sidecar = None,
    settings: Settings = None,
    column: Column = None,
    priors: Preset = None,
    families: Families = None,
    seed: Seed = 1,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Fit pilots and say what they tell: plateau, timescale, exponents, and what they leave open.

    [bold]Example[/]: advisor fit runs/ --out posterior.nc --families all
    """
    from advisor.cli.terminal import Reporter
    from advisor.forecast.fit import fit as fit_runs
    from advisor.logs.read import read_runs
    from advisor.model.sampling import Sampling

    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(
            logs,
            sidecar=sidecar,
            overrides=pairs(settings, "--set"),
            columns=pairs(column, "--column"),
        )
        posterior = fit_runs(
            runs,
            priors=priors,
            families=_names(families),
            sampling=Sampling(seed=seed),
            progress=progress,
        )
        posterior.save(out)
    if as_json:
        typer.echo(posterior.to_json())
        return
    notes = "\n".join(f"  {line}" for line in posterior.meta.notes)
    from advisor.findings.text import describe

    typer.echo(f"{describe(posterior)}\n\nAssumed:\n{notes}\n\nPosterior in {out}")


@app.command()
def advise(
    logs: Logs,
    out: Out = Path("advisor-study"),
    sidecar: Sidecar = None,
    settings: Settings = None,
    column: Column = None,
    steps: Steps = None,
    completions: Annotated[
        float | None, typer.Option(help="Budget in generated completions, instead of --steps.")
    ] = None,
    gpu_hours: Annotated[
        float | None, typer.Option(help="Budget in GPU-hours, instead of --steps.")
    ] = None,
    to_reward: Annotated[
        float | None, typer.Option(help="Reach this reward for the least.")
    ] = None,
    to_share: Annotated[
        float | None, typer.Option(help="Make this share of the gain soonest, e.g. 0.95.")
    ] = None,
    risk: Annotated[
        float | None,
        typer.Option(help="Compare by this lower quantile, e.g. 0.1, instead of the mean."),
    ] = None,
    level: Level = 0.9,
    gpus: Gpus = 1,
    seconds_per_step: Annotated[
        float | None,
        typer.Option(help=r"Time of a step at the pilots' mean batch \[default: from the logs]."),
    ] = None,
    devices: Annotated[
        int, typer.Option(help="Completions of a step must divide among so many devices.", min=1)
    ] = 1,
    model: Annotated[
        str | None, typer.Option(help=r"Model of the full run \[default: the largest piloted].")
    ] = None,
    task: Annotated[str | None, typer.Option(help=r"Its task \[default: the piloted one].")] = None,
    parameters: Annotated[
        float | None, typer.Option(help="Parameters of a model that was not piloted, e.g. 7e9.")
    ] = None,
    start_reward: Annotated[
        float | None, typer.Option(help="Its mean reward before training, if known.")
    ] = None,
    group_sizes: Annotated[
        str | None, typer.Option(help="Group sizes to choose from, e.g. 8,16.")
    ] = None,
    learning_rates: Annotated[
        str | None, typer.Option(help="Learning rates to choose from, e.g. 1e-6,2e-6.")
    ] = None,
    sampler: Annotated[str, typer.Option(help="Optuna's tpe, or gp (needs PyTorch).")] = "tpe",
    storage: Annotated[
        str | None,
        typer.Option(help="File or postgresql:// URL in which the Optuna study is kept."),
    ] = None,
    priors: Preset = None,
    families: Families = None,
    seed: Seed = 1,
    quiet: Quiet = False,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Read pilot logs, fit them, and recommend a configuration.

    [bold]Examples[/]: advisor advise runs/ --steps 500 --level 0.95 --out study
    / advisor advise runs/ --to-reward 0.8 --gpus 8
    """
    from advisor.advice.objective import objective_from
    from advisor.errors import InputError
    from advisor.model.sampling import Sampling

    if sampler not in ("tpe", "gp"):
        raise InputError(
            f"there is no sampler '{sampler}'", key="--sampler", advice="Use tpe or gp"
        )

    _advise(
        logs,
        out=out,
        priors=priors,
        families=_names(families),
        sampling=Sampling(seed=seed),
        sidecar=sidecar,
        overrides=pairs(settings, "--set"),
        columns=pairs(column, "--column"),
        target={
            "model": model,
            "task": task,
            "parameters": parameters,
            "start_reward": start_reward,
        },
        choices={
            "steps": steps,
            "completions": completions,
            "gpu_hours": gpu_hours,
            "objective": objective_from(to_reward, to_share, risk),
            "level": level,
            "devices": devices,
            "sampler": sampler,
            "storage": storage,
            "group_sizes": _numbers(group_sizes, "--group-sizes", int),
            "learning_rates": _numbers(learning_rates, "--learning-rates", float),
        },
        price={"gpus": gpus, "seconds_per_step": seconds_per_step},
        quiet=quiet,
        details=details,
        as_json=as_json,
    )


@app.command()
def backtest(
    logs: Logs,
    seen: Annotated[
        list[float] | None,
        typer.Option(
            help=r"Share of each run that the forecasts see. Repeat. \[default: 0.25]",
            min=0.02,
            max=0.9,
            show_default=False,
        ),
    ] = None,
    to_other_models: Annotated[
        bool,
        typer.Option(
            "--transfer",
            help="Forecast each model's runs from pilots of other models, by settings alone.",
        ),
    ] = False,
    least_steps: Annotated[
        int, typer.Option(help="Leave out runs of fewer optimizer steps.", min=0)
    ] = 0,
    sidecar: Sidecar = None,
    settings: Settings = None,
    column: Column = None,
    priors: Annotated[
        str | None,
        typer.Option(
            help="Prior preset, or a path to a .toml, that has not seen these runs "
            r"\[default: lora, small_models or full_finetuning, as each cohort is].",
            show_default=False,
        ),
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Write every forecast's quantiles, one JSON a line.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw forecast against outcome (.svg, .png or .pdf).")
    ] = None,
    seed: Seed = 1,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Ask how well forecasts would have done on your own finished runs.

    Each run is forecast from its first part, together with others of its task and model, and judged
    by the mean reward of its last tenth; curve fits to single runs stand beside it. With several
    --seen the same cohorts are asked at each share.

    [bold]Example[/]: advisor backtest old-runs/ --seen 0.1 --seen 0.25 --figure backtest.svg
    """
    from rich.console import Console

    from advisor.backtesting import backtest as run_backtest
    from advisor.backtesting import transfer as run_transfer
    from advisor.backtesting.figure import draw_backtest
    from advisor.backtesting.text import show
    from advisor.cli.terminal import Reporter
    from advisor.errors import InputError
    from advisor.logs.read import read_runs
    from advisor.model.sampling import Sampling

    shares = seen or [0.25]
    if to_other_models and len(shares) > 1:
        raise InputError(
            "--transfer asks for one share of the pilots",
            key="--seen",
            advice="Give --seen once, or ask again for another share",
        )
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(
            logs,
            sidecar=sidecar,
            overrides=pairs(settings, "--set"),
            columns=pairs(column, "--column"),
        )
        asked: dict[str, Any] = {
            "priors": priors,
            "least_steps": least_steps,
            "sampling": Sampling(seed=seed),
            "progress": progress,
        }
        if to_other_models:
            found = run_transfer(runs, seen=shares[0], **asked)
        else:
            found = run_backtest(runs, seen=shares, **asked)
    if predictions is not None:
        predictions.write_text(found.lines(), encoding="utf-8")
    if figure is not None and found.predictions:
        draw_backtest(found, figure)
    if as_json:
        typer.echo(found.to_json())
    else:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = WIDE
        show(found, console)
    if not found.predictions:
        raise typer.Exit(NOT_CONVERGED if found.failed else CANNOT_TELL)


# Registered here, so that help lists the commands in the order in which they are used.
app.command("what-if")(what_if)
app.command("next-pilot")(next_pilot)
app.command("plot")(plot)
app.command("export")(export)
app.command("report")(report)
app.command("compare")(compare)
app.command("watch")(watch)
app.add_typer(priors_app, name="priors")
app.command("doctor")(doctor)


def _advise(
    logs: Sequence[Path],
    *,
    out: Path,
    priors: str | None = None,
    families: Sequence[str] = ("spectrum",),
    sampling: Any,
    sidecar: Path | None = None,
    overrides: dict[str, str] | None = None,
    columns: dict[str, str] | None = None,
    target: dict[str, Any] | None = None,
    choices: dict[str, Any] | None = None,
    price: dict[str, Any] | None = None,
    quiet: bool,
    details: bool,
    as_json: bool,
) -> None:
    from advisor.advice import Budget, Objective, check_request, learn_cost, recommend
    from advisor.advice.candidates import check_choices
    from advisor.advice.cost import check_time
    from advisor.cli.terminal import Reporter, print_answer, print_runs, print_sick
    from advisor.diagnosis import diagnose as judge
    from advisor.forecast.fit import fit
    from advisor.forecast.target import largest_target
    from advisor.logs.read import read_runs
    from advisor.study.study import check_folder, write_study

    choices = choices or {}
    check_folder(out)
    check_choices(choices.get("group_sizes"), choices.get("learning_rates"))
    check_time(**(price or {}))
    _check_storage(choices.get("storage"), out)
    check_request(
        choices.get("level", 0.9),
        Budget(**{name: choices.get(name) for name in Budget.model_fields}),
        choices.get("objective") or Objective(),
    )
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(logs, sidecar=sidecar, overrides=overrides, columns=columns)
        judged = [judge(run) for run in runs]
        if not quiet:
            print_runs(runs, progress.console)
            print_sick(judged, progress.console)
        posterior = fit(
            runs, priors=priors, families=families, sampling=sampling, progress=progress
        )
        wanted = _target(posterior, **(target or {}))
        advice = recommend(
            posterior,
            target=wanted,
            cost=learn_cost(posterior, wanted or largest_target(posterior), **(price or {})),
            seed=sampling.seed,
            progress=progress,
            **choices,
        )
        files = write_study(out, posterior, advice, progress, judged)
    if as_json:
        typer.echo(advice.to_json())
    else:
        print_answer(advice, posterior, out, files, details=details)
    _finish(advice)


def _check_storage(storage: str | None, out: Path) -> None:
    """Refuse a storage that cannot be opened, or that the study's folder would replace."""
    from advisor.advice.storage import open_storage
    from advisor.errors import InputError

    if storage is None:
        return
    if "://" not in storage and out.resolve() in Path(storage).resolve().parents:
        raise InputError(
            "the file would lie in the study's folder, which is written anew each time",
            path=storage,
            key="--storage",
            advice="Keep it beside the folder",
        )
    with open_storage(storage):
        pass


def _finish(advice: Recommendation) -> None:
    if advice.kind != "recommendation":
        raise typer.Exit(CANNOT_TELL)


def _target(
    posterior: Posterior,
    model: str | None = None,
    task: str | None = None,
    parameters: float | None = None,
    start_reward: float | None = None,
) -> Target | None:
    """Target that the flags name; None leaves the choice to ``recommend``."""
    from advisor.forecast.target import named_target

    if model is None and task is None and parameters is None and start_reward is None:
        return None
    return named_target(posterior, model, task, parameters, start_reward)


def _names(families: str | None) -> tuple[str, ...]:
    from advisor.model.families import FAMILIES, SPECTRUM

    if families == "all":
        return tuple(FAMILIES)
    return tuple(name.strip() for name in (families or SPECTRUM.name).split(","))


def _numbers(text: str | None, flag: str, kind: type) -> tuple[Any, ...] | None:
    from advisor.errors import InputError

    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(
            f"'{text}' is no list of numbers", key=flag, advice=f"Write {flag} 8,16"
        ) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; a traceback only with ``--debug``."""
    from advisor.errors import AdvisorError

    argv = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(args=argv, standalone_mode=True)
    except AdvisorError as error:
        if "--debug" in argv:
            raise
        _complain(f"Error: {with_flags(str(error), _parameters(argv))}", error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe went away: nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        _complain("Stopped; nothing was written.", 130)
    except Exception as error:
        if "--debug" in argv:
            raise
        _complain(
            f"Internal error ({type(error).__name__}: {error}). This is our fault: please report "
            "it with the output of the same command and --debug.",
            1,
        )


def _parameters(argv: Sequence[str]) -> set[str]:
    """Flags and positional arguments of the command that was called."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found: set[str] = set()
    for word in argv:
        command = commands.get(word)
        if command is None:
            break
        commands = getattr(command, "commands", {})
        found = {name for one in command.params for name in one.opts}
    return found


def _complain(text: str, code: int) -> None:
    typer.echo(text, err=True)
    sys.exit(code)
