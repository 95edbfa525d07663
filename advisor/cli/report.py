"""``advisor report``: a study's page, written anew."""

from __future__ import annotations

from dataclasses import replace

from advisor.cli import flags
from advisor.cli.echo import echo
from advisor.common import DEFAULT_SEED


def report(
    study: flags.StudyFolder,
    pilots: flags.Pilots = None,
    outcome: flags.Outcome = None,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    seed: flags.Seed = DEFAULT_SEED,
    quiet: flags.Quiet = False,
    debug: flags.Debug = False,
) -> None:
    """Write report.html of a study: one file with figures, what-if sliders and configs.

    It opens in any browser, without a network. With --pilots it also shows a check of forecasts,
    which takes as long as a fit. With --outcome it ends with what finished runs came to.

    [bold]Examples[/]: advisor report study --pilots runs/
    / advisor report study --outcome full-run.log
    """
    from advisor.cli.plot import check_forecasts
    from advisor.cli.terminal import load
    from advisor.errors import AdvisorError
    from advisor.reporting import FORECAST_CHECK, Drawn, Missing, reason_of
    from advisor.runs import read_runs

    loaded = load(study, quiet=quiet)
    more: list[Drawn | Missing] = []
    beside = flags.stated(sidecar, settings, column)
    if outcome:
        loaded = replace(loaded, finished=tuple(read_runs(outcome, **beside)))
    if pilots:
        kind = FORECAST_CHECK
        try:
            more.append(check_forecasts(loaded.posterior, pilots, beside, seed=seed, quiet=quiet))
        except AdvisorError as error:
            # The check is an addition to a page that stands without it.
            echo(f"The page is written without the check of forecasts: {error}", err=True)
            more.append(Missing(kind.name, kind.title, reason_of(error)))
    echo(loaded.report(more=more))
