"""Arguments and flags of all commands, each once, and how their texts become values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.common import EngineSettings

CORES_OF_A_FIT = 4
"""Chains that a fit samples side by side (`advisor.model.sampling.Sampling`)."""

# What every command takes ------------------------------------------------------------------------

Debug = Annotated[bool, Option("--debug", help="Show tracebacks.")]
Json = Annotated[bool, Option("--json", help="Print everything as JSON.")]
Quiet = Annotated[
    bool, Option("--quiet", help="Only the answer: no progress, notes or explanations.")
]
Seed = Annotated[int, Option(help="Seed of the sampler and of the search.", min=0)]

# Logs and what they leave unsaid -----------------------------------------------------------------

# Text wherever logs are named: a path would lose the second slash of mlflow:http://HOST.
Logs = Annotated[
    list[str],
    Argument(
        metavar="LOGS...",
        help="Pilot logs, or folders of them; wandb:ENTITY/PROJECT(/SWEEP), "
        "mlflow:EXPERIMENT and trackio:PROJECT ask their own clients.",
    ),
]
Log = Annotated[
    str,
    Argument(
        help="Log of the run, or its folder; may not exist yet. With --once also a tracker's run: "
        "wandb:ENTITY/PROJECT/RUN."
    ),
]
Sidecar = Annotated[
    Path | None, Option(help="pilots.toml or .csv with settings that the logs do not hold.")
]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Setting of every run, e.g. --set group_size=8. Repeat."),
]
Column = Annotated[
    list[str] | None,
    Option(help="Column of a table, e.g. --column reward=train/acc. Repeat."),
]
Explain = Annotated[
    bool, Option("--explain", help="For each run: keys read, and the arithmetic behind K.")
]
Pilots = Annotated[
    list[str] | None,
    Option(help="The study's pilot logs, or their folder: read again, for a new fit. Repeat."),
]

Outcome = Annotated[
    list[str] | None,
    Option(help="Logs of finished runs: the page ends with forecast beside outcome. Repeat."),
]

# The model ---------------------------------------------------------------------------------------

Preset = Annotated[
    str | None,
    Option(
        help="Prior preset, or a path to a .toml "
        r"\[default: lora, small_models or full_finetuning, as the runs are].",
    ),
]
Fast = Annotated[
    bool,
    Option("--fast", help="A first look: a quarter of the draws, one attempt, and it says so."),
]
Level = Annotated[float, Option(help="P(stable) that is wanted.")]
Gpus = Annotated[int, Option(help="GPUs of the pilots and of the full run.", min=1)]

# What advise is asked ----------------------------------------------------------------------------

Steps = Annotated[
    int | None,
    Option(help=r"Optimizer steps of the full run \[default: 3 x the longest pilot]."),
]
Completions = Annotated[
    float | None, Option(help="Budget in generated completions, instead of --steps.")
]
GpuHours = Annotated[float | None, Option(help="Budget in GPU-hours, instead of --steps.")]
ToReward = Annotated[float | None, Option(help="Reach this reward for the least.")]
ToShare = Annotated[float | None, Option(help="Make this share of the gain soonest, e.g. 0.95.")]
Risk = Annotated[
    float | None,
    Option(help="Compare by this lower quantile, e.g. 0.1, instead of the mean."),
]
SecondsPerStep = Annotated[
    float | None,
    Option(help=r"Time of a step at the pilots' mean batch \[default: from the logs]."),
]
Devices = Annotated[
    int, Option(help="Completions of a step must divide among so many devices.", min=1)
]
Model = Annotated[
    str | None, Option(help=r"Model of the full run \[default: the largest piloted].")
]
Task = Annotated[str | None, Option(help=r"Its task \[default: the piloted one].")]
Parameters = Annotated[
    float | None, Option(help="Parameters of a model that was not piloted, e.g. 7e9.")
]
StartReward = Annotated[float | None, Option(help="Its mean reward before training, if known.")]
GroupSizes = Annotated[str | None, Option(help="Group sizes to choose from, e.g. 8,16.")]
LearningRates = Annotated[str | None, Option(help="Learning rates to choose from, e.g. 1e-6,2e-6.")]
Sampler = Annotated[str, Option(help="Optuna's tpe, or gp (needs PyTorch).")]
Storage = Annotated[
    str | None, Option(help="Database in which the Optuna study is kept: a URL as Optuna takes it.")
]
Details = Annotated[
    bool, Option("--details", help="Also print alternatives, recipes and what the pilots say.")
]

# Planning before any log -------------------------------------------------------------------------

PlannedModel = Annotated[str, Option("--model", help="Model of the full run.")]
RunSteps = Annotated[int, Option("--steps", help="Optimizer steps of the full run.", min=2)]
PilotModel = Annotated[str | None, Option(help="A smaller model on which pilots may run.")]
PilotParameters = Annotated[float | None, Option(help="Its parameters, e.g. 5e8.")]
PilotShare = Annotated[float, Option(help="Share of the full run's price that pilots may cost.")]
PlanOut = Annotated[
    Path | None, Option(help="Folder for the scripts of the pilots, one folder each.")
]

PlanFolder = Annotated[Path, Argument(help="Folder that advisor plan --out wrote.")]
PilotLogs = Annotated[
    list[str] | None,
    Option(
        "--logs",
        help="Logs of the pilots, their folder, or where a tracker has them: "
        r"wandb:ENTITY/PROJECT. Repeat. \[default: PLAN]",
    ),
]
Follow = Annotated[bool, Option("--follow", help="Look again until the word is final.")]
PilotsOut = Annotated[
    Path | None, Option(help="Folder to write the study into, once piloting is over.")
]
PlanPreset = Annotated[
    str | None, Option(help=r"Prior preset, or a path to a .toml \[default: that of the plan].")
]

# Asking a finished study -------------------------------------------------------------------------

StudyFolder = Annotated[Path, Argument(help="Folder that advisor advise or demo wrote.")]
LearningRate = Annotated[list[float] | None, Option(help="Repeat for several.")]
GroupSize = Annotated[list[int] | None, Option(help="Repeat for several.")]
RefreshInterval = Annotated[
    list[int] | None, Option(help="As so many mini-batches of one epoch. Repeat.")
]
Minibatches = Annotated[list[int] | None, Option(help="Mini-batches per refresh. Repeat.")]
Epochs = Annotated[list[int] | None, Option(help="Epochs per refresh. Repeat.")]
Prompts = Annotated[list[float] | None, Option(help="Prompts per optimizer step. Repeat.")]
StepsAsAdvised = Annotated[int | None, Option(help=r"Optimizer steps \[default: as advised].")]
PilotSteps = Annotated[
    int | None,
    Option(help=r"Length of the pilot \[default: half or all of the longest so far]."),
]
SimulationSeed = Annotated[
    int | None,
    Option(help=r"Seed of the simulated results \[default: that of the study].", min=0),
]
PilotTrainer = Annotated[
    str | None, Option(help="Print its config for trl, verl or openrlhf instead.")
]
Trainer = Annotated[
    str | None,
    Option(help=r"Trainer: trl, verl or openrlhf \[default: that of the pilots]."),
]
DevicesAsAdvised = Annotated[
    int | None, Option(help=r"Devices that share a step \[default: as advised].", min=1)
]
FigureName = Annotated[
    str,
    Argument(
        metavar="NAME",
        help="stability, frontier, trajectories, posteriors, exponents, convergence, "
        "forecast_check (with --pilots), or all.",
    ),
]
FigureFormat = Annotated[
    str | None,
    Option("--format", help=r"png, svg or pdf \[default: as --out ends, else png]."),
]
First = Annotated[
    str,
    Argument(
        metavar="A", help="A study, the log of a run, or a tracker's run: wandb:ENTITY/PROJECT/RUN."
    ),
]
Second = Annotated[str, Argument(metavar="B", help="Another of the same kind, or finished runs.")]
Everything = Annotated[bool, Option("--all", help="Also what does not differ.")]

# Diagnosing, backtesting, watching ---------------------------------------------------------------

DiagnosisFigures = Annotated[
    Path | None, Option(help="Folder for one figure per failure mode and run.")
]
MarginPosterior = Annotated[
    Path | None,
    Option(help="posterior.nc or a study: also judge how near its refresh limit a run is."),
]
Markdown = Annotated[bool, Option("--markdown", help="Print Markdown.")]
Seen = Annotated[
    list[float] | None,
    Option(
        help=r"Share of each run that the forecasts see. Repeat. \[default: 0.25]",
        min=0.02,
        max=0.9,
        show_default=False,
    ),
]
Transfer = Annotated[
    bool,
    Option(
        "--transfer",
        help="Forecast each model's runs from pilots of other models, by settings alone.",
    ),
]
LeastSteps = Annotated[int, Option(help="Leave out runs of fewer optimizer steps.", min=0)]
UnseenPreset = Annotated[
    str | None,
    Option(
        help="Prior preset, or a path to a .toml, that has not seen these runs "
        r"\[default: lora, small_models or full_finetuning, as each cohort is].",
        show_default=False,
    ),
]
Predictions = Annotated[
    Path | None, Option(help="Write every forecast's quantiles, one JSON a line.")
]
BacktestFigure = Annotated[
    Path | None, Option(help="Draw forecast against outcome (.svg, .png or .pdf).")
]
WatchPosterior = Annotated[
    Path, Option(help="posterior.nc, or the folder that advisor advise wrote.")
]
TargetReward = Annotated[
    float | None, Option(help="Also say how likely this train reward is reached.")
]
PlannedSteps = Annotated[
    int | None,
    Option(help=r"Planned optimizer steps \[default: as logged, else as advised]."),
]
Once = Annotated[bool, Option("--once", help="One update of what is there.")]
Every = Annotated[float, Option(help="Seconds between two looks.", min=0.1)]
SilentAfter = Annotated[
    float, Option(help="Minutes without a new row after which that is said.", min=0.1)
]

# Many cohorts ------------------------------------------------------------------------------------

Jobs = Annotated[
    int | None,
    Option(
        help=r"Processes side by side \[default: a quarter of the cores; a fit keeps four busy].",
        min=1,
        show_default=False,
    ),
]
EngineAddress = Annotated[
    str | None,
    Option("--engine", help="A cluster in place of processes: dask://HOST:PORT, ray://HOST:PORT."),
]
Keep = Annotated[
    Path | None,
    Option(help="Folder of what is done, a JSON line per cohort: the same command goes on there."),
]
# Presets -----------------------------------------------------------------------------------------

PresetName = Annotated[
    str | None, Argument(help=r"Preset, or a path to a .toml \[default: list them].")
]
PresetFigure = Annotated[
    Path | None, Option(help="Draw 60 prior reward curves (.svg, .png or .pdf).")
]
History = Annotated[
    list[str],
    Argument(
        help="posterior.nc of past studies, folders of studies, or finished runs: folders, or "
        "wandb:ENTITY/PROJECT, mlflow:EXPERIMENT, trackio:PROJECT."
    ),
]
LearnedName = Annotated[str | None, Option(help=r"Its name \[default: that of the file].")]
BasePreset = Annotated[
    str | None,
    Option(help=r"Preset to start from \[default: the one that the posteriors were fitted under]."),
]

# Where things are written ------------------------------------------------------------------------

StudyOut = Annotated[Path, Option(help="Folder to write the study into.")]
PosteriorOut = Annotated[Path, Option(help="File to save the posterior in.")]
ConfigOut = Annotated[Path | None, Option(help=r"File to write \[default: print it].")]
FigureOut = Annotated[
    Path | None,
    Option(help=r"File to write; a folder for all \[default: figures/ of the study]."),
]
PresetOut = Annotated[Path, Option(help="Preset to write, ending in .toml.")]


def stated(
    sidecar: Path | None, settings: list[str] | None, columns: list[str] | None
) -> dict[str, Any]:
    """Keywords of ``read_runs`` and ``inspect`` for what the user states of the logs."""
    return {
        "sidecar": sidecar,
        "overrides": pairs(settings, "--set"),
        "columns": pairs(columns, "--column"),
    }


def on(engine: str | None, jobs: int | None, keep: Path | None) -> EngineSettings:
    """Where many cohorts are done: keywords of `advisor.common.mapped`."""
    from advisor.common import engine_of

    return {"engine": engine_of(engine, jobs, cores=CORES_OF_A_FIT), "keep": keep}


def pairs(values: list[str] | None, flag: str) -> dict[str, str]:
    """Split ``key=value`` flags."""
    from advisor.errors import InputError

    out = {}
    for value in values or []:
        key, separator, content = value.partition("=")
        if not separator or not key or not content:
            raise InputError(
                f"'{value}' is no key=value", key=flag, advice=f"Write {flag} name=value"
            )
        out[key.strip()] = content.strip()
    return out


def numbers(text: str | None, flag: str, kind: Callable[[str], Any]) -> tuple[Any, ...] | None:
    """Split a list of numbers with commas."""
    from advisor.errors import InputError

    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(
            f"'{text}' is no list of numbers", key=flag, advice=f"Write {flag} 8,16"
        ) from error
