"""What the terminal shows of a backtest."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.backtesting.result import Backtest


def show(found: Backtest, console: Console) -> None:
    """Print the scores of all methods, and what was left out."""
    parts = found.parts()
    if parts:
        table = _table(found)
        for part in parts:
            methods = found.methods(part)
            for method, told in methods.items():
                shares = [f"{share:.0%}" for share in told["coverage"].values()]
                row = [method, f"{told['mae']:.3f}", f"{told['crps']:.3f}", *shares]
                if len(parts) > 1:
                    own = part if found.is_transfer else f"{float(part):.0%}"
                    row.insert(0, own if method == next(iter(methods)) else "")
                table.add_row(*row)
            table.add_section()
        console.print(table)
        is_shared = {p.bounds for p in found.predictions} != {(0.0, 1.0)}
        unit = "as shares of the reward's range" if is_shared else "in reward units"
        console.print(Text(f"Errors and CRPS {unit}; smaller is better."))
    for name in found.failed:
        console.print(Text(f"No forecast of {name}: the sampler did not converge."))
    for line in found.broken:
        console.print(Text(f"No forecast of {line}"))
    for why, names in _by_reason(found.uncurved).items():
        which = names[0] if len(names) == 1 else f"{len(names)} cohorts, for example {names[0]}"
        console.print(Text(f"Forecast from runs like them, without a pooled curve: {which}; {why}"))
    if found.left_out:
        console.print(Text(f"Left out ({len(found.left_out)}):"))
    for why, names in _by_reason(found.left_out).items():
        which = names[0] if len(names) == 1 else f"{len(names)}, for example {names[0]}"
        console.print(Text(f"  {why} [{which}]"))


def _by_reason(lines: tuple[str, ...]) -> dict[str, list[str]]:
    """What was left out by the reason, the most common first."""
    reasons: dict[str, list[str]] = {}
    for line in lines:
        name, _, why = line.partition(": ")
        reasons.setdefault(why, []).append(name)
    return dict(sorted(reasons.items(), key=lambda item: -len(item[1])))


def _table(found: Backtest) -> Table:
    runs = len({(p.cohort, p.run) for p in found.predictions})
    cohorts = len({p.cohort for p in found.predictions})
    what = (
        f"{runs} forecasts from {cohorts} set{'s' if cohorts > 1 else ''} of pilots"
        if found.is_transfer
        else f"{runs} run{'s' if runs > 1 else ''} in {cohorts} cohort{'s' if cohorts > 1 else ''}"
    )
    table = Table(
        title=f"Final reward: {what}", title_justify="left", header_style="bold", box=SIMPLE
    )
    names = ["method", "mean error", "CRPS", "50 % holds", "80 % holds", "95 % holds"]
    if len(found.parts()) > 1:
        names.insert(0, "own pilots" if found.is_transfer else "seen")
    for name in names:
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    return table
