"""``advisor plot`` and ``advisor report``: a study's figures as files, and its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.common import DEFAULT_SEED

if TYPE_CHECKING:
    from advisor.model import Posterior
    from advisor.reporting import Drawn, Missing
    from advisor.runs import PilotRun

ALL = "all"


def plot(
    study: Path,
    name: str,
    *,
    kind: str | None = None,
    out: Path | None = None,
    pilots: list[str] | None = None,
    stated: flags.Stated,
    seed: int = DEFAULT_SEED,
    quiet: bool = False,
) -> None:
    """Draw a figure of a study, or all of them: into the study, or where --out says.

    forecast_check fits the first half of each pilot anew, which takes as long as a fit, and holds
    its forecasts against the second half.

    [bold]Examples[/]: advisor plot study stability --format pdf
    / advisor plot study forecast_check --pilots runs/ --out check.svg
    / advisor plot study all --out figures
    """
    from advisor.cli.terminal import load, refuse_existing, write_new
    from advisor.reporting import FIGURES, drawings

    names = _names(name, has_pilots=bool(pilots))
    chosen = _format(kind, None if name == ALL else out)
    files = {}
    if out is not None:
        files = {one: out / f"{one}.{chosen}" if name == ALL else out for one in names}
    for file in files.values():
        refuse_existing(file)
    loaded = load(study, quiet=quiet)
    posterior = loaded.posterior
    drawn = drawings(posterior, loaded.recommendation, [one for one in names if one in FIGURES])
    if pilots:
        drawn.append(check_forecasts(posterior, pilots, stated, seed=seed, quiet=quiet))
    if out is None:
        shown = {f"{one.name}.{chosen}": one.rendered(chosen) for one in drawn}
        written = loaded.add_figures(shown)
        files = {one.name: file for one, file in zip(drawn, written, strict=True)}
    for one in drawn:
        if out is not None:
            write_new(files[one.name], one.rendered(chosen), with_folder=True)
        # What a figure leaves out is said where it is written.
        note = f". {one.note}" if one.note else ""
        echo(f"Wrote {files[one.name]}{note}", err=True)


def report(
    study: Path,
    *,
    pilots: list[str] | None = None,
    outcome: list[str] | None = None,
    stated: flags.Stated,
    seed: int = DEFAULT_SEED,
    quiet: bool = False,
) -> None:
    """Write report.html of a study: one file with figures, what-if sliders and configs.

    It opens in any browser, without a network. With --pilots it also shows a check of forecasts,
    which takes as long as a fit. With --outcome it ends with what finished runs came to.

    [bold]Examples[/]: advisor report study --pilots runs/
    / advisor report study --outcome full-run.log
    """
    from advisor.cli.terminal import load
    from advisor.errors import AdvisorError
    from advisor.reporting import FORECAST_CHECK, Missing, reason_of
    from advisor.runs import read_runs

    loaded = load(study, quiet=quiet)
    more: list[Drawn | Missing] = []
    if outcome:
        loaded = replace(loaded, finished=tuple(read_runs(outcome, **stated.keywords)))
    if pilots:
        kind = FORECAST_CHECK
        try:
            more.append(check_forecasts(loaded.posterior, pilots, stated, seed=seed, quiet=quiet))
        except AdvisorError as error:
            # The check is an addition to a page that stands without it.
            echo(f"The page is written without the check of forecasts: {error}", err=True)
            more.append(Missing(kind.name, kind.title, reason_of(error)))
    echo(loaded.report(more=more))


def _names(name: str, *, has_pilots: bool) -> list[str]:
    """Figures to draw; refuses an unknown one, and pilots that are missing or not needed."""
    from advisor.errors import InputError
    from advisor.reporting import FIGURES, FORECAST_CHECK

    check = FORECAST_CHECK.name
    known = (*FIGURES, check, ALL)
    if name not in known:
        raise InputError(f"there is no figure '{name}'", advice=f"Choose among {', '.join(known)}")
    if name == check and not has_pilots:
        raise InputError(
            "forecast_check needs the logs that the study was made from",
            key="--pilots",
            advice="Name them, or their folder",
        )
    if has_pilots and name not in (check, ALL):
        raise InputError(
            f"'{name}' is drawn from the study alone",
            key="--pilots",
            advice=f"Leave it out, or draw {check}",
        )
    return [
        *(FIGURES if name == ALL else [name] if name in FIGURES else []),
        *([check] if has_pilots else []),
    ]


def _format(kind: str | None, out: Path | None) -> str:
    """Format that is asked for: by name, by the file's ending, or png."""
    from advisor.reporting import check_format

    ends = "" if out is None else out.suffix.removeprefix(".").lower()
    chosen = kind or ends or "png"
    check_format(chosen, "--out" if kind is None and ends else "--format")
    return chosen


def check_forecasts(
    posterior: Posterior,
    pilots: Sequence[str],
    stated: flags.Stated,
    *,
    seed: int,
    quiet: bool,
) -> Drawn:
    """Fit the first half of a study's pilots and draw what became of the forecasts."""
    from advisor.cli.terminal import Reporter
    from advisor.model import Sampling
    from advisor.reporting import FORECAST_CHECK, forecast_check_info
    from advisor.runs import read_runs

    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(pilots, **stated.keywords)
        info = forecast_check_info(
            _own(runs, posterior, pilots),
            priors=posterior.meta.priors,
            sampling=Sampling(seed=seed),
            progress=progress,
        )
    return FORECAST_CHECK.drawn(info)


def _own(runs: Sequence[PilotRun], posterior: Posterior, paths: Sequence[str]) -> list[PilotRun]:
    """Those of the runs that the study was made from; an ``InputError`` where none is."""
    from advisor.errors import InputError
    from advisor.runs import fingerprint

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
