"""The command that draws a study's figures again, one by one or all: plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.advice import Study
from advisor.cli.advice import _load as load
from advisor.cli.flags import Column, Debug, Settings, Sidecar, pairs

if TYPE_CHECKING:
    from advisor.model.posterior import Posterior
    from advisor.reporting.figures.figure import Drawn
    from advisor.run.pilot_run import PilotRun

ALL = "all"


def plot(
    study: Study,
    name: Annotated[
        str,
        typer.Argument(
            help="stability, frontier, trajectories, posteriors, exponents, convergence, "
            "forecast_check (with --pilots), or all."
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option("--format", help=r"png, svg or pdf \[default: as --out ends, else png]."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help=r"File to write; a folder for all \[default: NAME.FORMAT here; figures for all]."
        ),
    ] = None,
    pilots: Annotated[
        list[Path] | None,
        typer.Option(help="The study's pilot logs, or their folder, for forecast_check. Repeat."),
    ] = None,
    sidecar: Sidecar = None,
    settings: Settings = None,
    column: Column = None,
    seed: Annotated[int, typer.Option(help="Of the sampler of forecast_check.", min=0)] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    debug: Debug = False,
) -> None:
    """Draw a figure of a study as a file, or all of them into a folder.

    forecast_check fits the first half of each pilot anew, which takes as long as a fit, and holds
    its forecasts against the second half.

    [bold]Examples[/]: advisor plot study stability --format pdf
    / advisor plot study forecast_check --pilots runs/ --out check.svg
    / advisor plot study all --out figures
    """
    from advisor.errors import InputError
    from advisor.reporting.figures import FIGURES, forecast_check
    from advisor.reporting.gallery import check_format, drawings

    check = forecast_check.FIGURE.name
    known = (*FIGURES, check, ALL)
    if name not in known:
        raise InputError(f"there is no figure '{name}'", advice=f"Choose among {', '.join(known)}")
    if name == check and not pilots:
        raise InputError(
            "forecast_check needs the logs that the study was made from",
            key="--pilots",
            advice="Name them, or their folder",
        )
    if pilots and name not in (check, ALL):
        raise InputError(
            f"'{name}' is drawn from the study alone",
            key="--pilots",
            advice=f"Leave it out, or draw {check}",
        )
    names = [
        *(FIGURES if name == ALL else [name] if name in FIGURES else []),
        *([check] if pilots else []),
    ]
    ends = "" if out is None or name == ALL else out.suffix.removeprefix(".").lower()
    chosen = kind or ends or "png"
    check_format(chosen, "--out" if kind is None and ends else "--format")
    if name == ALL:
        folder = out or Path("figures")
        files = {one: folder / f"{one}.{chosen}" for one in names}
    else:
        files = {name: out or Path(f"{name}.{chosen}")}
    for file in files.values():
        _refuse_existing(file)
    posterior, advice = load(study, quiet=quiet)
    drawn = drawings(posterior, advice, [one for one in names if one in FIGURES])
    if pilots:
        overrides, columns = pairs(settings, "--set"), pairs(column, "--column")
        drawn.append(
            check_of(posterior, pilots, sidecar, overrides, columns, seed=seed, quiet=quiet)
        )
    for one in drawn:
        _write(one, files[one.name], chosen)


def check_of(
    posterior: Posterior,
    pilots: Sequence[Path],
    sidecar: Path | None,
    overrides: Mapping[str, str],
    columns: Mapping[str, str],
    *,
    seed: int,
    quiet: bool,
) -> Drawn:
    """Fit the first half of a study's pilots and draw what became of the forecasts."""
    from advisor.cli.terminal import Reporter
    from advisor.logs.read import read_runs
    from advisor.model.sampling import Sampling
    from advisor.reporting.figures import forecast_check

    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(pilots, sidecar=sidecar, overrides=overrides, columns=columns)
        info = forecast_check.forecast_check_info(
            _own(runs, posterior, pilots),
            priors=posterior.meta.priors,
            sampling=Sampling(seed=seed),
            progress=progress,
        )
    return forecast_check.FIGURE.drawn(info)


def _own(runs: Sequence[PilotRun], posterior: Posterior, paths: Sequence[Path]) -> list[PilotRun]:
    """Those of the runs that the study was made from.

    Raises
    ------
    InputError
        None is.
    """
    from advisor.errors import InputError
    from advisor.run.fingerprint import fingerprint

    known = {run.fingerprint for run in posterior.meta.runs} - {""}
    names = {run.id for run in posterior.meta.runs}
    own = [run for run in runs if (fingerprint(run) or None) in known or run.id in names]
    if not own:
        raise InputError(
            "none of these runs is a pilot of the study",
            path=", ".join(map(str, paths[:3])),
            key="--pilots",
            advice="Name the logs that advisor advise read",
        )
    return own


def _refuse_existing(file: Path) -> None:
    from advisor.errors import InputError

    if file.exists():
        raise InputError(
            "it exists: nothing was overwritten",
            path=file,
            key="--out",
            advice="Move it, or choose another name",
        )


def _write(one: Drawn, file: Path, kind: str) -> None:
    """Write a figure; what it leaves out goes to standard error."""
    from advisor.errors import unwritable

    data = one.rendered(kind)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as target:
            target.write(data)
    except FileExistsError:
        _refuse_existing(file)
        raise
    except OSError as error:
        raise unwritable("it", error, file, "--out", "file") from error
    typer.echo(f"Wrote {file}" + (f". {one.note}" if one.note else ""), err=True)
