"""``advisor fit``, ``advise``, ``demo``, ``show``: from pilot logs to a posterior and an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from advisor.cli import flags
from advisor.cli.answer import Form, Shown, markdown
from advisor.cli.flags import echo
from advisor.cli.logs import gpus_of
from advisor.common import DEFAULT_SEED
from advisor.errors import AdvisorError, CannotTellError, KeptElsewhereError

if TYPE_CHECKING:
    from advisor.advice import Request, Search
    from advisor.cli.terminal import HarmlessConsole
    from advisor.model import Sampling
    from advisor.runs import PilotRun
    from advisor.study import Study

COLOURS = {"recommendation": "green", "next_pilot": "yellow", "infeasible": "red"}


@dataclass
class Asked:
    """What the full run is to achieve and may cost, and among what is chosen."""

    steps: int | None = None
    batches: int | None = None
    completions: float | None = None
    gpu_hours: float | None = None
    to_reward: float | None = None
    to_share: float | None = None
    risk: float | None = None
    level: float = 0.9
    gpus: int | None = None
    seconds_per_step: float | None = None
    devices: int | None = None
    model: str | None = None
    task: str | None = None
    parameters: float | None = None
    start_reward: float | None = None
    group_sizes: str | None = None
    learning_rates: str | None = None
    known: str | None = None
    projects: int = 1

    @property
    def request(self) -> Request:
        """The same, checked; one GPU where no number was given."""
        from advisor.advice import Request

        choices = {
            "group_sizes": flags.numbers(self.group_sizes, "--group-sizes", int),
            "learning_rates": flags.numbers(self.learning_rates, "--learning-rates", float),
            "gpus": self.gpus or 1,
            "devices": self.devices or self.gpus or 1,
            "known": flags.pairs(self.known.split(","), "--known") if self.known else None,
        }
        return Request(**{**vars(self), **choices})


def advise(
    logs: list[str],
    *,
    out: Path = Path("advisor-study"),
    stated: flags.Stated,
    asked: Asked,
    storage: str | None = None,
    priors: str | None = None,
    fast: bool = False,
    seed: int = DEFAULT_SEED,
    shown: Shown,
) -> None:
    """Read pilot logs, fit them, and recommend a configuration."""
    from advisor.advice import Search
    from advisor.model import Sampling

    _run(
        logs,
        out=out,
        sampling=Sampling.first_look(seed) if fast else Sampling(seed=seed),
        stated=stated.keywords,
        priors=priors,
        request=asked.request,
        asked=asked,
        search=Search(storage=storage, seed=seed),
        shown=shown,
    )


def demo(out: Path = Path("advisor-study-demo"), seed: int = DEFAULT_SEED, *, shown: Shown) -> None:
    """Advise on four short pilots of tiny transformers, and show how such runs ended."""
    from advisor import demo_folder
    from advisor.advice import Request
    from advisor.model import Sampling

    shipped = demo_folder().with_name("demo")
    _run(
        [shipped / "pilots"],
        out=out,
        sampling=Sampling(seed=seed),
        request=Request(steps=600),  # as long as the runs that were trained
        finished=shipped / "full_runs",
        shown=shown,
    )


def fit(
    logs: list[str],
    *,
    out: Path = Path("posterior.nc"),
    stated: flags.Stated,
    priors: str | None = None,
    fast: bool = False,
    seed: int = DEFAULT_SEED,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Fit pilots and print plateau, timescale and exponents, and what the pilots leave open."""
    from advisor.cli.terminal import Reporter, noted
    from advisor.common import check_output, or_keep, write_whole
    from advisor.findings import describe
    from advisor.forecast import fit as fit_runs
    from advisor.model import Sampling
    from advisor.runs import read_runs

    check_output(out, "the posterior", "--out")
    with Reporter(quiet=quiet) as progress:
        progress("Reading logs", None, "")
        with noted(quiet=quiet):
            posterior = fit_runs(
                read_runs(logs, **stated.keywords),
                priors=priors,
                sampling=Sampling.first_look(seed) if fast else Sampling(seed=seed),
                progress=progress,
            )
        saved = posterior.to_bytes()
        or_keep(lambda place: write_whole(place, saved), out, "the posterior", "--out")
    if as_json:
        echo(posterior.to_json())
        return
    notes = "\n".join(f"  {line}" for line in posterior.meta.notes)
    echo(f"{describe(posterior)}\n\nAssumed:\n{notes}\n\nPosterior in {out}")


def show(study: Path, *, shown: Shown) -> None:
    """Print the answer of a study again, without a fit.

    [bold]Examples[/]: advisor show study --details / advisor show study --format markdown
    """
    from advisor.cli.terminal import load

    _print(load(study, quiet=shown.quiet), shown)


def _print(study: Study, shown: Shown) -> None:
    """Print the answer of a study in the form that was asked for."""
    if shown.form is Form.JSON:
        echo(study.recommendation.to_json())
    elif shown.form is Form.MARKDOWN:
        echo(markdown(study, details=shown.details))
    else:
        _print_answer(study, details=shown.details)


def _run(
    logs: Sequence[str | Path],
    *,
    out: Path,
    sampling: Sampling,
    request: Request,
    asked: Asked | None = None,
    search: Search | None = None,
    finished: Path | None = None,
    stated: dict[str, Any] | None = None,
    priors: str | None = None,
    shown: Shown,
) -> None:
    """Read, diagnose, fit, advise, write the study and print the answer.

    ``finished`` holds runs that were made after the pilots, for the end of page and answer.
    """
    from advisor.advice import advise, check_storage
    from advisor.cli.terminal import Reporter, noted
    from advisor.diagnosis import diagnose
    from advisor.forecast import fit
    from advisor.runs import read_runs
    from advisor.study import Study, check_place

    check_place(out)
    if search is not None and search.storage is not None:
        check_storage(search.storage)
    lost: Exception | None = None
    with Reporter(quiet=shown.quiet) as progress:
        progress("Reading logs", None, "")
        runs = read_runs(logs, **(stated or {}))
        if asked is not None and asked.gpus is None:
            request = replace(asked, gpus=gpus_of(runs)).request
        request.in_steps(run.hyperparameters.refresh_interval for run in runs)  # before the fit
        judged = [diagnose(run, siblings=runs) for run in runs]
        _print_runs(runs, progress.console)
        with noted(quiet=shown.quiet), cautioned(runs, progress.console):
            posterior = fit(runs, priors=priors, sampling=sampling, progress=progress)
            advice = advise(
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
    _print(study, shown)
    if lost is not None:
        raise lost
    if advice.kind != "recommendation":
        raise typer.Exit(CannotTellError.exit_code)


@contextmanager
def cautioned(runs: Sequence[PilotRun], console: HarmlessConsole) -> Iterator[None]:
    """Print what is odd about the runs where no answer is left to say it."""
    from advisor.runs import PilotRun

    try:
        yield
    except AdvisorError:
        named = {run.id: PilotRun.weighty(run.warnings) for run in runs}
        for line in dict.fromkeys(line for own in named.values() for line in own):
            of = ", ".join(name for name, own in named.items() if line in own)
            console.say(f"Caution: {line} [{of}]")
        raise


def _print_runs(runs: Sequence[PilotRun], console: HarmlessConsole) -> None:
    """A line per pilot, and what was left out."""
    from advisor.cli.inspection import runs_table

    console.print(runs_table(runs, console))
    for line in runs[0].left_out:
        echo(line, err=True)  # also with --quiet: the answer rests on fewer runs than were named


def _print_failures(study: Study, console: HarmlessConsole) -> None:
    """What fitted pilots show that their rewards do not: it shapes the answer."""
    for one in study.diagnoses:
        own = [card for card in one.causes if card.status == "FAIL" and card.mode != "collapse"]
        if own and one.collapse_step is None:
            console.say(
                f"\nNote: pilot {one.id}: {own[0].title.lower()}: {own[0].headline} Its rewards "
                "shape the answer all the same; leave it out if they are not what is meant."
            )


def _print_answer(study: Study, *, details: bool) -> None:
    """The answer, what was assumed, and where everything lies."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from advisor.advice import trainer_configs
    from advisor.cli.compare import show
    from advisor.cli.terminal import HarmlessConsole, output
    from advisor.findings import describe
    from advisor.runs import Trainer

    console, advice = HarmlessConsole(highlight=False), study.recommendation
    first, _, rest = (advice.text if details else advice.summary).partition("\n")
    body = Group(Text(first, style="bold"), Text(rest))
    if console.is_terminal:
        colour = COLOURS["next_pilot" if advice.next_pilot else advice.kind]
        console.print(Panel(body, title=advice.title, border_style=colour))
    else:
        console.print(Text(advice.title + "\n"), body, soft_wrap=True)
    _print_failures(study, console)
    if details:
        console.say("\nWhat the pilots say: " + describe(study.posterior))
    outcome = study.outcome()
    if outcome is not None:
        show(outcome, output(), everything=True)
    if study.path is None:
        return
    more = "" if details else " What it rests on: --details."
    console.say(f"\nStudy in {study.path}/, with report.html.{more}")
    own = Trainer.named(advice.trainer).export
    if own is not None:
        why = trainer_configs(advice)[1].get(own.name)
        if why is not None:
            console.say(f"No {own.file_name}, which cannot hold all of it: {why}")
