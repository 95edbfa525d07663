"""``advisor priors``: look at a preset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from advisor.cli.flags import echo
from advisor.common import counted

if TYPE_CHECKING:
    from advisor.cli.terminal import HarmlessConsole
    from advisor.model import Priors


def show(preset: str | None = None, as_json: bool = False) -> None:
    """List the presets, or show every number of one.

    [bold]Example[/]: advisor priors show lora
    """
    from advisor.cli.terminal import output, table
    from advisor.model import load_priors, preset_names, prior_table

    if preset is None:
        if as_json:
            listed = {"name", "description", "evidence"}
            presets = [load_priors(name).model_dump(include=listed) for name in preset_names()]
            echo(json.dumps(presets, indent=2))
        else:
            known = map(load_priors, preset_names())
            rows = [(one.name, one.evidence, one.description) for one in known]
            names = ("name", "evidence", "description")
            output().print(table(names, rows, title="Prior presets"))
        return
    priors = load_priors(preset)
    if as_json:
        about = priors.model_dump(include={"name", "description", "evidence", "learned_from"})
        entries = [vars(row) for row in prior_table(priors)]
        echo(json.dumps({**about, "entries": entries}, indent=2))
    else:
        show_preset(priors, output())


READ_AS = {"exp": "e^x", "logistic": "share", "as is": "x"}


def show_preset(priors: Priors, console: HarmlessConsole) -> None:
    """Print every entry of a preset with its interval on the natural scale, then its source."""
    from rich.text import Text

    from advisor.cli.terminal import table
    from advisor.model import INTERVAL, prior_table

    rows = prior_table(priors)
    names = ("entry", "mean", "sd", f"{INTERVAL:.0%} interval", "scale")
    cells = []
    for row in rows:
        mean = "-" if row.mean is None else f"{row.mean:g}"
        reach = f"{row.lower:.2g} to {row.upper:.2g}"
        cells.append((row.name, mean, f"{row.sd:g}", reach, READ_AS[row.scale]))
    title = f"{priors.name}: {priors.description}"
    console.print(table(names, cells, right=names[1:4], title=title))
    for row in rows:
        console.print(Text.assemble((row.name, "bold"), f": {row.source}"))
    console.say()
    console.say(f"Evidence: {priors.evidence}.")
    if priors.learned_from:
        runs = counted(len(priors.learned_from), "run")
        console.say(f"Learned from {runs}: it may not be scored on them.")
    console.say(
        "Intervals are on the natural scale: of e^x where the entry is a log, of the share "
        "between 0 and 1 where it is a logit."
    )
