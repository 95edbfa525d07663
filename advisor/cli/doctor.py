"""``advisor doctor``: the installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from advisor.cli import flags
from advisor.cli.echo import echo

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.cli.installation import Health

CANNOT_FIT = 2
"""Exit code where a fit cannot run: the user has to mend the installation."""


def doctor(
    quiet: flags.Quiet = False, as_json: flags.Json = False, debug: flags.Debug = False
) -> None:
    """Say what is installed, what will sample, and whether a fit can run.

    Ends with code 2 where it cannot, and says what to do; with --quiet that alone. Loads nothing of
    what it looks at.

    [bold]Example[/]: advisor doctor
    """
    from advisor.cli.installation import examine
    from advisor.cli.terminal import output

    found = examine()
    if as_json:
        echo(found.to_json())
    elif not quiet:
        show(found, output())
    if not found.can_fit:
        for problem in found.problems:
            echo(f"Problem: {problem}", err=True)
        raise typer.Exit(CANNOT_FIT)


def show(found: Health, console: Console) -> None:
    """Print versions, backend, cache, extras and the verdict."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    from advisor.model.fast.code_cache import VARIABLE

    table = Table("package", "version", "wanted", "", box=SIMPLE, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    table.add_row("advisor", found.advisor, "", "")
    table.add_row("Python", found.python, "", found.platform)
    for package in found.packages:
        mark = Text("ok", style="green") if package.is_fit else Text("NOT OK", style="red")
        table.add_row(Text(package.name), package.version or "missing", Text(package.wanted), mark)
    console.print(table)
    cache = found.cache
    state = "warm: nothing to compile" if cache.is_warm else "cold: the next fit compiles, seconds"
    access = "writable" if cache.is_writable else "NOT WRITABLE: every fit compiles, for seconds"
    lines = [
        f"Samples:  {found.backend}.",
        f"CPUs:     {found.cpus}; as many chains run at a time.",
        f"Cache:    {cache.folder}",
        f"          {cache.bytes / 1e6:.1f} MB, {access}, {state}.",
    ]
    if not cache.is_writable:
        lines.append(f"          Set {VARIABLE} to a folder that you may write to.")
    if cache.other_folders:
        lines.append(
            f"          {cache.other_folders} folders of other versions beside it, "
            f"{cache.other_bytes / 1e6:.1f} MB; they can be deleted."
        )
    heads = ["Extras:  ", *["         "] * len(found.extras)]
    for head, extra in zip(heads, found.extras, strict=False):
        missing = [name for name, version in extra.versions.items() if version is None]
        have = ", ".join(f"{name} {version}" for name, version in extra.versions.items() if version)
        state = have if extra.is_there else f"missing {', '.join(missing)}"
        install = "" if extra.is_there else f" (pip install 'grpo-advisor[{extra.name}]')"
        lines.append(f"{head} {extra.name}: {state}. For {extra.enables}{install}")
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    if found.can_fit:
        console.print(Text("\nA fit can run.", style="bold green"))
    else:
        console.print(Text("\nA fit cannot run.", style="bold red"))
