"""``advisor priors``: look at a preset, learn one from past posteriors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from advisor.cli import flags
from advisor.cli.echo import echo

if TYPE_CHECKING:
    from advisor.model import Priors

priors_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Look at what is believed before any log, or learn it from your own past posteriors.",
)


@priors_app.command()
def show(
    preset: flags.PresetName = None,
    figure: flags.PresetFigure = None,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """List the presets, or show every number of one and the reward curves that it expects.

    [bold]Example[/]: advisor priors show lora --figure lora.svg
    """
    from advisor.cli.terminal import output
    from advisor.errors import InputError
    from advisor.model import load_priors, prior_predictive, show_preset, show_presets

    if preset is None:
        if figure is not None:
            raise InputError(
                "there is no preset to draw",
                key="--figure",
                advice="Name one: advisor priors show lora --figure lora.svg",
            )
        if as_json:
            echo(json.dumps(_listed(), indent=2))
        else:
            show_presets(output())
        return
    priors = load_priors(preset)
    predictive = prior_predictive(priors)
    if figure is not None:
        _draw(predictive, figure)
    if as_json:
        echo(json.dumps(_as_dict(priors, predictive), indent=2))
        return
    console = output()
    show_preset(priors, console)
    console.print()
    console.print(predictive.text, soft_wrap=True, markup=False)
    if figure is not None:
        console.print(f"\nFigure in {figure}", soft_wrap=True, markup=False)


@priors_app.command()
def learn(
    sources: flags.History,
    out: flags.PresetOut,
    name: flags.LearnedName = None,
    base: flags.BasePreset = None,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    jobs: flags.Jobs = None,
    engine: flags.EngineAddress = None,
    keep: flags.Keep = None,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Turn your past studies, or folders of finished runs, into a preset for the next study.

    What they agree on becomes narrower, what they do not touch stays as it is, and the preset
    remembers their data: it must not be scored on them. Finished runs are fitted by task and model
    first, wherever there are cores; with --keep a command that was stopped goes on where it was.

    [bold]Example[/]: advisor priors learn study-*/posterior.nc --out team.toml
    """
    from advisor.cli.history import read
    from advisor.cli.terminal import Reporter, noted, output
    from advisor.findings import check_name
    from advisor.model import check_preset_file, show_learned, write_preset

    check_preset_file(out)
    called = out.stem if name is None else name
    check_name(called)  # before an hour of fits
    where = flags.on(engine, jobs, keep)
    with Reporter(quiet=quiet) as progress, noted(quiet=quiet):
        found = read(sources, base, flags.stated(sidecar, settings, column), where, progress)
        learned = found.learned(called)
    if not quiet:
        for line in found.passed_over:
            echo(f"Note: passed over {line}.", err=True)
        if found.is_learned_again:
            echo(
                f"Note: the base '{found.base.name}' was learned itself. Learning on top of it "
                "takes how studies differ for doubt about their mean, and ends too sure. Give all "
                "studies at once, with --base the preset that the first of them started from.",
                err=True,
            )
    write_preset(out, learned)
    if as_json:
        echo(learned.model_dump_json(indent=2))
        return
    console = output()
    show_learned(learned, found.base, console)
    console.print(
        f"\nPreset '{learned.name}' in {out}. Use it with: advisor advise LOGS --priors {out}",
        soft_wrap=True,
        markup=False,
    )


def _listed() -> list[dict[str, Any]]:
    """Name, description and evidence of every preset."""
    from advisor.model import load_priors, preset_names

    presets = [load_priors(name) for name in preset_names()]
    return [p.model_dump(include={"name", "description", "evidence"}) for p in presets]


def _as_dict(priors: Priors, predictive: Any) -> dict[str, Any]:
    """Every number of a preset and what it predicts."""
    from dataclasses import asdict

    from advisor.model import COLLAPSE_STEPS, REFERENCE, prior_table

    return {
        **priors.model_dump(include={"name", "description", "evidence", "learned_from"}),
        "entries": [asdict(row) for row in prior_table(priors)],
        "predictive": {
            "reference": REFERENCE,
            **{
                name: {"median": predictive.median(name), "bands": predictive.bands(name)}
                for name in ("start", "plateau", "time")
            },
            "collapsed": {"steps": COLLAPSE_STEPS, "probability": predictive.collapsed},
        },
    }


def _draw(predictive: Any, path: Path) -> None:
    """Write prior reward curves as a figure."""
    from advisor.common import write_whole
    from advisor.errors import InputError, unwritable
    from advisor.reporting import FORMATS, draw_priors, render

    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InputError(
            f"no figure format '{kind}'",
            path=path,
            key="--figure",
            advice=f"Choose among {', '.join(FORMATS)}",
        )
    try:
        write_whole(path, render(draw_priors(predictive), kind, "priors"))
    except OSError as error:
        raise unwritable("the figure", error, path, "--figure") from error
