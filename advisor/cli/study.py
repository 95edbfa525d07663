"""``advisor what-if``, ``next-pilot`` and ``export``: what a finished study is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.cli.echo import echo

if TYPE_CHECKING:
    from advisor.advice import Ranges


def next_pilot(
    study: Path,
    steps: int | None = None,
    seed: int | None = None,
    to: str | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Name the pilot whose result would improve the decision most for its price.

    [bold]Examples[/]: advisor next-pilot study --steps 60
    / advisor next-pilot study --to trl > pilot.yaml
    """
    from advisor.advice import export_pilot, in_trainer_names, pilot_reason
    from advisor.cli.terminal import load

    loaded = load(study, quiet=quiet)
    advice, pilot = loaded.recommendation, loaded.next_pilot(steps=steps, seed=seed)
    if as_json:
        echo(json.dumps(pilot.model_dump(mode="json"), indent=2))
        return
    if to is not None:
        echo(export_pilot(advice, pilot, to), nl=False)
        return
    echo(
        f"{in_trainer_names(pilot.settings, advice.trainer)}\n\n{pilot.steps} steps. "
        f"Why: {pilot_reason(pilot)}"
    )


def export(
    study: Path,
    to: str | None = None,
    devices: int | None = None,
    out: Path | None = None,
    quiet: bool = False,
) -> None:
    """Write the advised settings as a trainer's configuration.

    [bold]Example[/]: advisor export study --to trl --devices 8 --out grpo.yaml
    """
    from advisor.cli.terminal import load, write_new

    text = load(study, quiet=quiet).export(to, devices)
    if out is None:
        echo(text, nl=False)
        return
    write_new(out, text.encode())
    if not quiet:
        echo(f"Wrote {out}", err=True)


def what_if(
    study: Path,
    learning_rate: list[float] | None = None,
    group_size: list[int] | None = None,
    refresh_interval: list[int] | None = None,
    minibatches: list[int] | None = None,
    epochs: list[int] | None = None,
    prompts_per_step: list[float] | None = None,
    steps: int | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Evaluate other settings under a study's posterior: reward, P(stable), price.

    What is not named stays as advised; several values make a table of all combinations.

    [bold]Example[/]: advisor what-if study --group-size 32 --refresh-interval 4
    """
    from itertools import product

    from advisor.advice import piloted
    from advisor.cli.terminal import load
    from advisor.errors import InputError

    if refresh_interval and (minibatches or epochs):
        raise InputError(
            "the refresh interval is mini-batches times epochs; one of them was given as well",
            key="--refresh-interval",
            advice="Give --minibatches and --epochs, or --refresh-interval alone",
        )
    loaded = load(study, quiet=quiet)
    own = loaded.recommendation.settings
    combinations = list(
        product(
            learning_rate or [own.learning_rate],
            group_size or [own.group_size],
            refresh_interval or minibatches or [own.minibatches_per_refresh],
            [1] if refresh_interval else epochs or [own.epochs_per_refresh],
            prompts_per_step or [own.prompts_per_step],
        )
    )
    rates, groups, cuts, passes, prompts = zip(*combinations, strict=True)
    rows = loaded.what_if_rows(
        learning_rate=rates,
        group_size=groups,
        minibatches_per_refresh=cuts,
        epochs_per_refresh=passes,
        prompts_per_step=prompts,
        steps=steps,
    )
    if as_json:
        echo(json.dumps(rows, indent=2, allow_nan=False))
        return
    echo(_table(rows, loaded.recommendation.measure, piloted(loaded.posterior)))


def _table(rows: Sequence[dict[str, Any]], measure: str, ranges: Ranges) -> str:
    """Aligned columns, marked where no pilot ran, and below them what is not supported."""
    from advisor.advice import KNOBS, range_text
    from advisor.forecast import SUPPORT

    outside = [{name for name in row["outside"].split(", ") if name} for row in rows]
    beyond = set().union(*outside)
    cells = [_cells(row, measure, own, beyond) for row, own in zip(rows, outside, strict=True)]
    shown = _aligned(cells)
    if beyond:
        beyond_text = [
            f"{words} (piloted: {range_text(ranges[name])})"
            for name, words in KNOBS.items()
            if name in beyond
        ]
        shown += (
            f"\n* Outside what was piloted: {', '.join(beyond_text)}. Reward and P(stable) are the "
            "prior's word there."
        )
    if not all(row["supported"] for row in rows):
        shown += (
            f"\nNOT SUPPORTED by these pilots: so long a run is over {SUPPORT:g} times the longest "
            "of them."
        )
    return shown


def _aligned(cells: Sequence[dict[str, str]]) -> str:
    """Columns that end in one line, as numbers are compared."""
    lines = [list(cells[0]), *(list(row.values()) for row in cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def _cells(row: dict[str, Any], measure: str, own: set[str], beyond: set[str]) -> dict[str, str]:
    """One row as text, with an asterisk at each number that no pilot speaks of."""
    from advisor.advice import gpu_time, percent

    def marked(text: str, *names: str) -> str:
        # Where another row of the column has an asterisk, its place is kept free.
        return text + ("*" if own & set(names) else " " if beyond & set(names) else "")

    cuts, passes = row["minibatches_per_refresh"], row["epochs_per_refresh"]
    reward = f"{row['reward']:.3f} [{row['reward_low']:.3f}, {row['reward_high']:.3f}]"
    found = {
        "learning rate": marked(f"{row['learning_rate']:.3g}", "learning_rate"),
        "G": marked(str(row["group_size"]), "group_size"),
        "K (mini-batches x epochs)": marked(
            f"{row['refresh_interval']} ({cuts} x {passes})",
            "minibatches_per_refresh",
            "epochs_per_refresh",
        ),
        "prompts": marked(f"{row['prompts_per_step']:g}", "prompts_per_step"),
        "steps": str(row["steps"]),
        f"{measure} [80 %]": marked(reward, *beyond),
        "P(stable)": marked(percent(row["p_stable"]), *beyond),
        "refresh": percent(row["p_refresh"]),
        "rate": percent(row["p_tolerance"]),
        "fluctuation": percent(row["p_fluctuation"]),
        "completions": f"{row['completions']:,.0f}",
    }
    hours = row["gpu_hours"]
    if hours is not None:
        found["price"] = gpu_time(hours)
    return found
