"""``advisor what-if``, ``next-pilot``, ``export``, ``plot``, ``report``: of a finished study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.cli import flags
from advisor.cli.flags import echo
from advisor.errors import InputError

if TYPE_CHECKING:
    from advisor.advice import Ranges


def next_pilot(
    study: Path,
    steps: int | None = None,
    seed: int | None = None,
    to: str | None = None,
    schedule: str | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Name the pilot whose result would improve the decision most for its price."""
    from advisor.advice import export_pilot, in_trainer_names, pilot_lines, pilot_reason
    from advisor.cli.terminal import load

    loaded = load(study, quiet=quiet)
    advice = loaded.recommendation
    asked = advice.next_pilot if (steps, seed) == (None, None) else None
    pilot = asked or loaded.next_pilot(steps=steps, seed=seed)
    if as_json:
        echo(json.dumps(pilot.model_dump(mode="json"), indent=2))
        return
    if to is not None:
        echo(export_pilot(advice, pilot, to, schedule=schedule), nl=False)
        return
    if asked is not None:  # what the answer is headed by
        echo("\n".join(pilot_lines(advice)))
        return
    if not pilot.is_worth_its_price:
        but = "" if advice.kind == "recommendation" else ", but nothing fit to launch was found"
        echo(f"No pilot is expected to be worth its price{but}. The best would be:")
    pasted = in_trainer_names(pilot.settings, advice.trainer)
    echo(f"{pasted}\n\n{pilot.steps} steps. Why: {pilot_reason(pilot)}")


def export(
    study: Path,
    to: str | None = None,
    devices: int | None = None,
    schedule: str | None = None,
    settings: list[str] | None = None,
    out: Path | None = None,
    quiet: bool = False,
) -> None:
    """Write the advised settings as a trainer's configuration."""
    from advisor.cli.terminal import load, write_new

    stated = flags.pairs(settings, "--set")
    text = load(study, quiet=quiet).export(to, devices, schedule, stated)
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
    batches: int | None = None,
    at_step: int | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Evaluate other settings under a study's posterior: reward, P(stable), price."""
    from itertools import product

    from advisor.advice import GRACE, piloted
    from advisor.cli.terminal import load

    if refresh_interval and (minibatches or epochs):
        raise InputError(
            "the refresh interval is mini-batches times epochs; one of them was given as well",
            key="--refresh-interval",
            advice="Give --minibatches and --epochs, or --refresh-interval alone",
        )
    if steps is not None and batches is not None:
        raise InputError("two lengths were given", key="--batches, --steps", advice="Give one")
    loaded = load(study, quiet=quiet)
    advice, own = loaded.recommendation, loaded.recommendation.settings
    choices: dict[str, Sequence[float]] = {
        "learning_rate": learning_rate or [own.learning_rate],
        "group_size": group_size or [own.group_size],
        "minibatches_per_refresh": refresh_interval or minibatches or [own.minibatches_per_refresh],
        "epochs_per_refresh": [1] if refresh_interval else epochs or [own.epochs_per_refresh],
        "prompts_per_step": prompts_per_step or [own.prompts_per_step],
    }
    asked = dict(zip(choices, zip(*product(*choices.values()), strict=True), strict=True))
    each = zip(asked["minibatches_per_refresh"], asked["epochs_per_refresh"], strict=True)
    lengths = [batches * cuts * passes for cuts, passes in each] if batches else steps
    rows = loaded.what_if_rows(**asked, steps=lengths, at_step=at_step)
    if as_json:
        echo(json.dumps(rows, indent=2, allow_nan=False))
        return
    furthest = GRACE * advice.evidence.reach * advice.evidence.longest_pilot
    ranges = piloted(loaded.posterior)
    echo(_table(rows, advice.measure, ranges, furthest, own.schedule, at_step))


def _table(
    rows: Sequence[dict[str, Any]],
    measure: str,
    ranges: Ranges,
    furthest: float,
    schedule: str = "constant",
    at_step: float | None = None,
) -> str:
    """Aligned columns, marked where no pilot ran, and below them what is extrapolated."""
    from advisor.advice import KNOBS, range_text
    from advisor.common import Words
    from advisor.forecast import SUPPORT

    outside = [{name for name in row["outside"].split(", ") if name} for row in rows]
    beyond = set().union(*outside)
    cells = [_cells(row, measure, own, beyond) for row, own in zip(rows, outside, strict=True)]
    lines = [list(cells[0]), *(list(row.values()) for row in cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [  # columns that end in one line, as numbers are compared
        " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    named = [(KNOBS[name], range_text(ranges[name])) for name in KNOBS if name in beyond]
    is_learned = any(row["p_stable_low"] < row["p_stable_high"] for row in rows)
    is_supported = all(row["supported"] for row in rows)
    is_tested = max(row["steps"] for row in rows) <= furthest
    horizon = SUPPORT, is_supported, furthest, is_tested
    say = Words("advisor.cli", "what_if.txt.j2")
    below = say("below", named, is_learned, *horizon, schedule, at_step)
    return "\n".join([*shown, below])


def _cells(row: dict[str, Any], measure: str, own: set[str], beyond: set[str]) -> dict[str, str]:
    """One row as text, with an asterisk at each number that no pilot supports."""
    from advisor.advice import gpu_time, percent

    def marked(text: str, *names: str) -> str:
        # Where another row of the column has an asterisk, its place is kept free.
        return text + ("*" if own & set(names) else " " if beyond & set(names) else "")

    cuts, passes = row["minibatches_per_refresh"], row["epochs_per_refresh"]
    interval = f"{row['refresh_interval']} ({cuts} x {passes})"
    reward = f"{row['reward']:.3f} [{row['reward_low']:.3f}, {row['reward_high']:.3f}]"
    found = {
        "learning rate": marked(f"{row['learning_rate']:.3g}", "learning_rate"),
        "G": marked(str(row["group_size"]), "group_size"),
        "K (mini-batches x epochs)": marked(
            interval, "minibatches_per_refresh", "epochs_per_refresh"
        ),
        "prompts": marked(f"{row['prompts_per_step']:g}", "prompts_per_step"),
        "steps": str(row["steps"]),
        f"{measure} if stable [80 %]": marked(reward, *beyond),
        "P(stable)": marked(percent(row["p_stable"]), *beyond),
        "refresh": percent(row["p_refresh"]),
        "rate": percent(row["p_tolerance"]),
        "fluctuation": percent(row["p_fluctuation"]),
        "completions": f"{row['completions']:,.0f}",
    }
    if (hours := row["gpu_hours"]) is not None:
        found["price"] = gpu_time(hours)
    return found


# Figures and page ---------------------------------------------------------------------------------


ALL = "all"


def plot(
    study: Path, name: str, *, kind: str | None = None, out: Path | None = None, quiet: bool = False
) -> None:
    """Draw a figure of a study, or all of them: into the study, or where --out says."""
    from advisor.cli.terminal import load, refuse_existing, write_new
    from advisor.reporting import FIGURES, check_figures, check_format, drawings

    check_figures({name} - {ALL})
    names = list(FIGURES) if name == ALL else [name]
    ends = "" if out is None or name == ALL else out.suffix.removeprefix(".").lower()
    chosen = kind or ends or "png"
    check_format(chosen, "--format" if kind else "--out")
    files = {}
    if out is not None:
        files = {one: out / f"{one}.{chosen}" if name == ALL else out for one in names}
    for file in files.values():
        refuse_existing(file)
    loaded = load(study, quiet=quiet)
    drawn = drawings(loaded.posterior, loaded.recommendation, names)
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
    study: Path, *, outcome: list[str] | None = None, stated: flags.Stated, quiet: bool = False
) -> None:
    """Write report.html of a study: one file with figures, what-if sliders and configs."""
    from advisor.cli.terminal import load
    from advisor.runs import read_runs

    loaded = load(study, quiet=quiet)
    if outcome:
        loaded = replace(loaded, finished=tuple(read_runs(outcome, **stated.keywords)))
    echo(loaded.report())
