"""Commands that ask a finished study again: what-if, next-pilot, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.flags import Debug, Quiet, noted

if TYPE_CHECKING:
    import pandas as pd

    from advisor.advice import Recommendation
    from advisor.model.posterior import Posterior

Study = Annotated[Path, typer.Argument(help="Folder that advisor advise or demo wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]


def what_if(
    study: Study,
    learning_rate: Annotated[list[float] | None, typer.Option(help="Repeat for several.")] = None,
    group_size: Annotated[list[int] | None, typer.Option(help="Repeat for several.")] = None,
    refresh_interval: Annotated[
        list[int] | None, typer.Option(help="As so many mini-batches of one epoch. Repeat.")
    ] = None,
    minibatches: Annotated[
        list[int] | None, typer.Option(help="Mini-batches per refresh. Repeat.")
    ] = None,
    epochs: Annotated[list[int] | None, typer.Option(help="Epochs per refresh. Repeat.")] = None,
    steps: Annotated[
        int | None, typer.Option(help=r"Optimizer steps \[default: as advised].")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate other settings under a study's posterior: reward, P(stable), price.

    What is not named stays as advised; several values make a table of all combinations.

    [bold]Example[/]: advisor what-if study --group-size 32 --refresh-interval 4
    """
    from itertools import product

    from advisor.advice import what_if as evaluate
    from advisor.errors import InputError
    from advisor.forecast.forecaster import Forecaster

    if refresh_interval and (minibatches or epochs):
        raise InputError(
            "the refresh interval is mini-batches times epochs; one of them was given as well",
            key="--refresh-interval",
            advice="Give --minibatches and --epochs, or --refresh-interval alone",
        )
    posterior, advice = _load(study, quiet=quiet)
    own = advice.settings
    combinations = list(
        product(
            learning_rate or [own.learning_rate or 0.0],
            group_size or [own.group_size or 0],
            refresh_interval or minibatches or [own.minibatches_per_refresh or 1],
            [1] if refresh_interval else epochs or [own.epochs_per_refresh or 1],
        )
    )
    rates, groups, cuts, passes = zip(*combinations, strict=True)
    table = evaluate(
        # Under the luck of the answer, so that what is advised has the reward that it had there.
        Forecaster(posterior, advice.target, seed=advice.seed),
        learning_rate=rates,
        group_size=groups,
        minibatches_per_refresh=cuts,
        epochs_per_refresh=passes,
        steps=advice.steps if steps is None else steps,
        cost=advice.cost_model,
    )
    if as_json:
        typer.echo(table.to_json(orient="records", indent=2, double_precision=15))
        return
    typer.echo(_told(table, advice.measure))


def _told(table: pd.DataFrame, measure: str) -> str:
    """Aligned columns, and below them what is not supported."""
    from advisor.advice.wording import SUPPORT

    rows = table.to_dict(orient="records")
    cells = [
        {
            "learning rate": f"{row['learning_rate']:.3g}",
            "G": row["group_size"],
            "K (mini-batches x epochs)": f"{row['refresh_interval']} "
            f"({row['minibatches_per_refresh']} x {row['epochs_per_refresh']})",
            "steps": row["steps"],
            f"{measure} [80 %]": f"{row['reward']:.3f} [{row['reward_low']:.3f}, "
            f"{row['reward_high']:.3f}]",
            "P(stable)": f"{row['p_stable']:.3f} +- {row['p_error']:.3f}",
            "refresh": f"{row['p_refresh']:.2f}",
            "rate": f"{row['p_tolerance']:.2f}",
            "fluctuation": f"{row['p_fluctuation']:.2f}",
            "completions": f"{row['completions']:,.0f}",
        }
        for row in rows
    ]
    for cell, row in zip(cells, rows, strict=True):
        hours = row["gpu_hours"]
        if hours is not None and hours == hours:
            cell["GPU-hours"] = f"{hours:.3g}"
    shown = type(table)(cells).to_string(index=False)
    if not table["supported"].all():
        shown += (
            f"\nNOT SUPPORTED by these pilots: so long a run is over {SUPPORT:g} times the longest "
            "of them."
        )
    return shown


def next_pilot(
    study: Study,
    steps: Annotated[
        int | None,
        typer.Option(help=r"Length of the pilot \[default: half or all of the longest so far]."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help=r"Of the simulated results \[default: that of the study].", min=0),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Print its config for trl, verl or openrlhf instead.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Name the pilot whose result would improve the decision most for its price.

    [bold]Examples[/]: advisor next-pilot study --steps 60
    / advisor next-pilot study --to trl > pilot.yaml
    """
    from advisor.advice.answer import decision_of
    from advisor.advice.next_pilot import choose_pilot
    from advisor.advice.wording import in_trainer_names, percent, price
    from advisor.errors import InputError
    from advisor.trainers.export import export_config

    posterior, advice = _load(study, quiet=quiet)
    if steps is not None and not 2 <= steps <= advice.steps:
        raise InputError(
            f"a pilot of {steps} steps",
            key="--steps",
            advice=f"Give at least 2 and no more than the run, {advice.steps}",
        )
    evaluate, lattice = decision_of(posterior, advice)
    pilot = choose_pilot(evaluate, lattice, steps=steps, seed=advice.seed if seed is None else seed)
    if as_json:
        typer.echo(json.dumps(pilot.model_dump(mode="json"), indent=2))
        return
    if to is not None:
        typer.echo(
            export_config(
                pilot.settings,
                pilot.steps,
                to,
                devices=advice.devices,
                model=advice.target.model,
                note=f"A pilot of {pilot.steps} steps. {pilot.reason}",
            ),
            nl=False,
        )
        return
    typer.echo(
        f"{in_trainer_names(pilot.settings)}\n\n{pilot.steps} steps, {price(pilot.cost)}. "
        f"Why: {pilot.reason} It stays stable with probability "
        f"{percent(pilot.stability.probability)}."
    )


def _load(study: Path, *, quiet: bool = False) -> tuple[Posterior, Recommendation]:
    from advisor.study.study import load_study

    with noted(quiet=quiet):
        return load_study(study)


def export(
    study: Study,
    to: Annotated[str, typer.Option(help="Trainer: trl, verl or openrlhf.")],
    devices: Annotated[
        int | None,
        typer.Option(help=r"Devices that share a step \[default: as advised].", min=1),
    ] = None,
    out: Annotated[Path | None, typer.Option(help=r"File to write \[default: print it].")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the advised settings as a trainer's configuration.

    [bold]Example[/]: advisor export study --to trl --devices 8 --out grpo.yaml
    """
    from advisor.errors import InputError, unwritable
    from advisor.study.study import trainer_config

    text = trainer_config(_load(study, quiet=quiet)[1], to, devices)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(
            "it exists: nothing was overwritten",
            path=out,
            key="--out",
            advice="Move it, or choose another name",
        ) from error
    except OSError as error:
        raise unwritable("it", error, out, "--out", "file") from error
    if not quiet:
        typer.echo(f"Wrote {out}", err=True)
