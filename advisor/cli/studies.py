"""``advisor studies``: a team's studies, listed, filtered, compared; from folders or a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import typer

from advisor.cli import flags
from advisor.cli.echo import echo

studies_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, filter and compare studies: those in folders, or those of a team's store.",
)

COLUMNS = ("created", "task", "model", "kind", "pilots", "steps", "learning_rate", "group_size")


@studies_app.command("list")
def list_studies(
    folders: flags.StudyFolders = None,
    store: flags.StoreUrl = None,
    task: flags.TaskFilter = None,
    model: flags.ModelFilter = None,
    kind: flags.KindFilter = None,
    preset: flags.PresetFilter = None,
    since: flags.Since = None,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """List studies, the latest first: those under folders, or those of a store.

    [bold]Example[/]: advisor studies list studies/ --task gsm8k
    """
    _check_filters(kind, since)
    filters = {"task": task, "model": model, "kind": kind, "preset": preset}
    found = _found(folders, store, filters, since, quiet=quiet)
    if as_json:
        echo(json.dumps(found, indent=2))
    else:
        _show(found)


@studies_app.command()
def put(
    folders: flags.StudiesToStore,
    store: flags.StoreUrl = None,
    name: flags.StudyName = None,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Write studies into a team's store; one that is there already stays as it is.

    [bold]Example[/]: advisor studies put study --store postgresql://me@db/team
    """
    from advisor.errors import InputError
    from advisor.study.record import SHORT, StudyRecord
    from advisor.study.store import open_store

    if name is not None and len(folders) > 1:
        raise InputError("one name is given to several studies", key="--name")
    records = [StudyRecord.of_folder(folder, name) for folder in folders]
    told = []
    with open_store(_needed(store)) as opened:
        for record in records:
            is_new = opened.put(record)
            told.append({"id": record.id, "name": record.name, "is_new": is_new})
    if as_json:
        echo(json.dumps(told, indent=2))
    elif not quiet:
        for one in told:
            done = "stored" if one["is_new"] else "was there already"
            echo(f"{str(one['id'])[:SHORT]} {one['name']}: {done}")


@studies_app.command("compare")
def compare_stored(
    one: flags.StoredStudy,
    other: flags.OtherStoredStudy,
    store: flags.StoreUrl = None,
    everything: flags.Everything = False,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Show what differs between two studies of a store: what was asked, advised, and piloted.

    Folders hold more, the posteriors: advisor compare A B.

    [bold]Example[/]: advisor studies compare study-may study-june --store postgresql://me@db/team
    """
    from advisor.cli.compare import show
    from advisor.cli.terminal import output
    from advisor.study.compared_records import compare_records
    from advisor.study.store import open_store

    with open_store(_needed(store)) as opened:
        found = compare_records(opened.find(one), opened.find(other))
    if as_json:
        echo(found.to_json())
        return
    for head, path in zip(found.heads, found.paths, strict=False):
        echo(f"{head}: {path}")
    show(found, output(), everything=everything)


def _needed(store: str | None) -> str:
    from advisor.errors import InputError

    if store is None:
        raise InputError(
            "no store is named",
            key="--store",
            advice="Give postgresql://USER@HOST/DATABASE, or set ADVISOR_STORE",
        )
    return store


def _check_filters(kind: str | None, since: str | None) -> None:
    """Refuse a filter that no study could ever pass, or that would be compared as mere text."""
    from datetime import date

    from advisor.advice import Recommendation
    from advisor.errors import InputError

    kinds = get_args(Recommendation.model_fields["kind"].annotation)
    if kind is not None and kind not in kinds:
        raise InputError(
            f"'{kind}' is no kind of answer",
            key="--kind",
            advice=f"Choose one of {', '.join(kinds)}",
        )
    if since is not None:
        try:
            is_date = date.fromisoformat(since).isoformat() == since
        except ValueError:
            is_date = False
        if not is_date:
            raise InputError(
                f"'{since}' is no date", key="--since", advice="Write it as 2026-11-01"
            )


def _found(
    folders: list[Path] | None,
    store: str | None,
    filters: dict[str, str | None],
    since: str | None,
    *,
    quiet: bool,
) -> list[dict[str, Any]]:
    """Lines of the studies that match, the latest first; folders come before a store."""
    from advisor.cli.terminal import noted
    from advisor.study.record import records_under
    from advisor.study.store import open_store

    if not folders and store is not None:
        with open_store(store) as opened:
            return opened.lines(since=since, **filters)
    with noted(quiet=True):
        found, unread = records_under(folders or [Path()])
    if not quiet:
        for why in unread:
            echo(f"Note: passed over {why}", err=True)
    kept = [
        line
        for line in (one.line for one in found)
        if all(value is None or line[key] == value for key, value in filters.items())
        and (since is None or line["created"] >= since)
    ]
    return sorted(kept, key=lambda line: (line["created"], line["id"]), reverse=True)


def _show(lines: list[dict[str, Any]]) -> None:
    """A row per study."""
    from rich.box import SIMPLE
    from rich.table import Table

    from advisor.advice.wording import percent
    from advisor.cli.terminal import output
    from advisor.study.record import SHORT

    table = Table(box=SIMPLE, header_style="bold")
    for name in ("id", "name", *COLUMNS, "reward", "P(stable)"):
        table.add_column(name.replace("_", " "), overflow="fold")
    for row in lines:
        told = [row["created"][:10], *(row[name] for name in COLUMNS[1:])]
        cells = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in told]
        last = [f"{row['reward']:.3f}", percent(row["p_stable"])]
        table.add_row(row["id"][:SHORT], row["name"], *cells, *last)
    console = output()
    console.print(table)
    console.print(f"{len(lines)} stud{'y' if len(lines) == 1 else 'ies'}")
