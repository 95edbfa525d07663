"""``advisor what-if``: other settings under a study's posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli import flags
from advisor.cli.echo import echo

if TYPE_CHECKING:
    import pandas as pd


def what_if(
    study: flags.StudyFolder,
    learning_rate: flags.LearningRate = None,
    group_size: flags.GroupSize = None,
    refresh_interval: flags.RefreshInterval = None,
    minibatches: flags.Minibatches = None,
    epochs: flags.Epochs = None,
    prompts_per_step: flags.Prompts = None,
    steps: flags.StepsAsAdvised = None,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Evaluate other settings under a study's posterior: reward, P(stable), price.

    What is not named stays as advised; several values make a table of all combinations.

    [bold]Example[/]: advisor what-if study --group-size 32 --refresh-interval 4
    """
    from itertools import product

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
    table = loaded.what_if(
        learning_rate=rates,
        group_size=groups,
        minibatches_per_refresh=cuts,
        epochs_per_refresh=passes,
        prompts_per_step=prompts,
        steps=steps,
    )
    if as_json:
        echo(table.to_json(orient="records", indent=2, double_precision=15))
        return
    echo(_table(table, loaded.recommendation.measure))


def _table(table: pd.DataFrame, measure: str) -> str:
    """Aligned columns, and below them what is not supported."""
    from advisor.advice.wording import SUPPORT

    rows = table.to_dict(orient="records")
    cells = [
        {
            "learning rate": f"{row['learning_rate']:.3g}",
            "G": row["group_size"],
            "K (mini-batches x epochs)": f"{row['refresh_interval']} "
            f"({row['minibatches_per_refresh']} x {row['epochs_per_refresh']})",
            "prompts": f"{row['prompts_per_step']:g}",
            "steps": row["steps"],
            f"{measure} [80 %]": f"{row['reward']:.3f} [{row['reward_low']:.3f}, "
            f"{row['reward_high']:.3f}]",
            "P(stable)": f"{row['p_stable']:.3f}",
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
