"""Runs that a tracker's own client hands out: ``wandb:``, ``mlflow:`` and ``trackio:``."""

from __future__ import annotations

import io
import itertools
import os
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from advisor.errors import InputError, SourceError
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import LogCandidate, Logged, Reader, Table, TableBuilder
from advisor.runs.logfiles.records import OWN_COUNTER
from advisor.runs.logs.trackers.wandb import COUNTER, tracked
from advisor.text import read_toml

T = TypeVar("T")
Found = tuple[str, str, Callable[[Path], Iterable[Logged]]]  # Place, id and reader of a run

SOURCE = re.compile(r"(?:wandb|mlflow|trackio):(?!//)\S.*")
"""What is asked of a tracker's own client, rather than read as a file."""

SENTENCES = read_toml(__file__, "source_errors.toml")

UNKNOWN = re.compile("could not find", re.IGNORECASE)
"""How W&B's server refuses a name of which it has no sweep."""

MOST_SILENT_SECONDS = 60.0
"""Without an answer for so long a server counts as out of reach; ours: clients try again by
themselves, W&B's without end, and a page of a history takes a second or two."""


def is_source(path: object) -> TypeGuard[str]:
    """Whether a text names what a tracker's own client is asked for: a folder may be called so."""
    is_named_so = isinstance(path, str) and SOURCE.fullmatch(path) is not None
    return is_named_so and not os.path.exists(str(path))


def answers(
    place: str, ask: Callable[[], Iterable[T]], kind: type[InputError] = SourceError
) -> Iterator[T]:
    """What a client yields, one by one; its errors are raised here, as one of the given kind."""
    # Answers that may wait to be read: what is downloaded ahead stays a few megabytes.
    came: queue.Queue[tuple[bool, Any]] = queue.Queue(4096)

    def listen() -> None:
        try:
            for answer in ask():
                came.put((True, answer))
            came.put((False, None))
        except Exception as error:
            came.put((False, error))

    threading.Thread(target=listen, daemon=True, name=f"asks {place}").start()
    while True:
        try:
            is_answer, answer = came.get(timeout=MOST_SILENT_SECONDS)
        except queue.Empty:
            problem = f"the server did not answer for {MOST_SILENT_SECONDS:.0f} seconds"
            advice = "Check the network and the server's address, then try again"
            raise SourceError(problem, path=place, advice=advice) from None
        if is_answer:
            yield answer
        elif answer is None:
            return
        elif isinstance(answer, InputError):
            raise answer
        else:
            raise refusal(place, "failed", answer, kind) from answer


def run_of(
    place: str, run: str, name: str, read: Callable[[Path], Iterable[Logged]]
) -> LogCandidate:
    """One run of a place, which is found like a file in a folder and read by its own reader."""
    root = Path(place)
    path = root / run
    reader = Reader(name, lambda log: False, lambda logs, columns: read(path))
    # No settings lie next to it: neither a sidecar of the working folder nor a config is its own.
    return LogCandidate(LogFile(path, io.BytesIO, 0), root, False, path.parent, reader)


def refusal(
    place: str, why: str, error: object = "", kind: type[InputError] = SourceError
) -> InputError:
    """Error to raise where a tracker's client gives no runs, in the sentences of its tracker."""
    tracker = place.partition(":")[0]
    what = (str(error).strip().splitlines() or [type(error).__name__])[0][:300].rstrip(".")
    problem, advice = SENTENCES[tracker][why]
    return kind(problem.format(what=what), path=place, advice=advice)


PLACE = re.compile(r"([^/:]+)/([^/]+?)(?:/(?:(sweeps|runs)/)?([^/]+))?/?")


def _of_wandb(place: str, rest: str) -> Iterator[Found]:
    """Runs of ``ENTITY/PROJECT``, ``ENTITY/PROJECT/SWEEP`` or ``ENTITY/PROJECT/RUN``."""
    found = PLACE.fullmatch(rest)
    if found is None:
        raise refusal(place, "address", rest)
    entity, project, kind, name = found.groups()
    for run in _wandb_runs(place, f"{entity}/{project}", kind, name):
        yield f"wandb:{entity}/{project}", run.id, partial(_read_wandb, run)


def _wandb_runs(place: str, project: str, kind: str | None, name: str | None) -> Iterator[Any]:
    """Runs with their settings; of a bare name a sweep is sought before a run."""
    client = _client(place)
    if not _has_login(client):
        raise refusal(place, "login", "no API key is known")
    # W&B's own limit for one request; its default of 19 is short for a page of a large project.
    api = client.Api(timeout=30)
    if name is None:
        yield from api.runs(project, lazy=False)
        return
    if kind != "runs":
        try:
            sweep = api.sweep(f"{project}/{name}")
        except Exception as error:
            if kind == "sweeps" or not UNKNOWN.search(str(error)):
                raise
        else:
            sweeps_own = {"$and": [{"sweep": sweep.id}]}
            yield from api.runs(project, filters=sweeps_own, lazy=False)
            return
    yield api.run(f"{project}/{name}")


def _client(place: str) -> Any:
    """W&B's client; a folder ``wandb`` of logs, which Python would import as well, is none."""
    try:
        import wandb

        if hasattr(wandb, "Api"):
            return wandb
    except ImportError:
        pass
    raise refusal(place, "missing")


def _has_login(client: Any) -> bool:
    """Whether the client knows a login; without one it asks on a terminal, in the midst of ours."""
    try:
        from wandb.sdk.lib import wbauth

        host = os.environ.get("WANDB_BASE_URL") or client.setup().settings.base_url
        known = wbauth.authenticate_session(
            host=host, source="advisor", prompt=False, update_session=False
        )
    except (ImportError, AttributeError, TypeError):
        return True
    return known is not None


def _read_wandb(run: Any, path: Path) -> Iterator[Logged]:
    """Read the rows of one run, none of them sampled."""
    builder = TableBuilder(path)
    # A history that W&B's client kept from an earlier look lacks what came since.
    ask = partial(run.scan_history, use_cache=False)
    # One run that is not given stops no other.
    rows = _one_per_step(answers(str(path), ask, InputError))
    for number, cells in enumerate(rows, start=1):
        builder.add(number, cells)
    # State of a run that ended as it should; any other is reported
    yield tracked(
        builder,
        COUNTER,
        label=run.name or run.id,
        has_own_id=True,
        settings=flatten(run.config),
        warnings=[] if run.state == "finished" else [f"W&B says of this run: {run.state}"],
    )


def _one_per_step(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows without empty cells; what comes both from a Parquet file and from a page is one row."""

    def step(row: dict[str, Any]) -> Any:
        counted = row.get(OWN_COUNTER)
        return object() if counted is None else counted

    for _, same in itertools.groupby(rows, key=step):
        yield {key: cell for row in same for key, cell in row.items() if cell is not None}


Value = tuple[str, float, float, float]  # Metric, time, value and step


def _of_mlflow(place: str, rest: str) -> Iterator[Found]:
    """Runs of an experiment, ``EXPERIMENT`` or ``TRACKING_URI#EXPERIMENT``, by name or number."""
    uri, _, experiment = rest.rpartition("#")
    if not experiment or "://" in experiment:
        raise refusal(place, "address", rest)
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise refusal(place, "missing") from None
    client = MlflowClient(uri or None)
    found = client.get_experiment_by_name(experiment)
    if found is None and experiment.isdigit():
        found = client.get_experiment(experiment)
    if found is None:
        raise refusal(place, "unknown", f"there is no experiment '{experiment}'")
    token = None
    while True:
        page = client.search_runs([found.experiment_id], max_results=500, page_token=token)
        yield from ((place, run.info.run_id, partial(_read_mlflow, client, run)) for run in page)
        token = page.token
        if not token:
            return


def _read_mlflow(client: Any, run: Any, path: Path) -> Iterator[Logged]:
    """Read the values of one run."""
    # Not what MLflow measures of the machine.
    keys = sorted(key for key in run.data.metrics if not key.startswith("system/"))

    def values() -> Iterator[Value]:
        for key in keys:
            for point in client.get_metric_history(run.info.run_id, key):
                yield key, float(point.timestamp), float(point.value), float(point.step)

    table, assumptions = table_of(answers(str(path), values), keys, path)
    status = run.info.status
    # Parameters under dotted names; a long text is no setting.
    settings = {k.replace("/", "."): text for k, text in run.data.params.items() if len(text) < 8e3}
    # Status of a run that ended as it should; any other is reported
    yield Logged(
        table,
        label=run.info.run_name or run.info.run_id,
        has_own_id=True,
        settings=dict(sorted(settings.items())[:5_000]),
        assumptions=assumptions,
        warnings=() if status == "FINISHED" else (f"MLflow says of this run: {status.lower()}",),
    )


def table_of(
    values: Iterable[Value], keys: Iterable[str], path: Path
) -> tuple[Table, tuple[str, ...]]:
    """Rows by step in the order begun, and what was assumed; a repeated step is its own row."""
    import pandas as pd

    points = pd.DataFrame(list(values), columns=["key", "time", "value", "step"])
    if points.empty:
        advice = "Name the metric of the reward in a column map"
        raise InputError("no values of known metrics were found", path=path, advice=advice)
    # Without a step MLflow writes 0 for every value, and only their order is left.
    by_key = points.groupby("key")["step"]
    idle = by_key.transform("size").gt(1) & by_key.transform(lambda step: (step == 0).all())
    points["again"] = points.groupby(["key", "step"]).cumcount()
    points.loc[idle, "step"] = float("nan")
    rows = points.groupby(["again", "step"], dropna=False, sort=True)
    points["begun"], points["row"] = rows["time"].transform("min"), rows.ngroup()
    builder = TableBuilder(path)
    builder.seen(keys)
    in_order: Any = points.sort_values(["begun", "row"], kind="stable").itertuples()
    for number, (_, same) in enumerate(itertools.groupby(in_order, attrgetter("row")), start=1):
        row = list(same)
        step = {} if row[0].step != row[0].step else {"step": row[0].step}
        builder.add(number, step | {point.key: point.value for point in row})
    names = ", ".join(sorted(set(points.loc[idle, "key"]))[:4])
    assumed = (f"{names}: logged without a step, so rows follow their order",) if names else ()
    return builder.build(), assumed


def _of_trackio(place: str, project: str) -> Iterator[Found]:
    """Runs of a project, with the rows that a live run wrote last."""
    try:
        from trackio import sqlite_storage
    except ImportError:
        raise refusal(place, "missing") from None
    storage = sqlite_storage.SQLiteStorage
    if not storage.get_project_db_path(project).is_file():
        known = ", ".join(sorted(storage.get_projects())[:8]) or "none"
        raise refusal(place, "unknown", f"'{project}' on this machine (it has: {known})")
    for run in storage.get_run_records(project):
        yield place, run["id"] or run["name"], partial(_read_trackio, storage, project, run)


def _read_trackio(
    storage: Any, project: str, record: dict[str, str], path: Path
) -> Iterator[Logged]:
    """Read the rows of one run."""
    name = record["name"]
    own = {"run_id": record["id"]}
    builder = TableBuilder(path)
    rows = answers(str(path), lambda: storage.get_logs(project, name, **own))
    for number, row in enumerate(rows, start=1):
        cells = {key: cell for key, cell in row.items() if key not in ("step", "timestamp")}
        builder.add(number, {**cells, OWN_COUNTER: row["step"]})
    config = dict(storage.get_run_config(project, name, **own) or {})
    for added in ("_Username", "_Created", "_Group"):  # by Trackio itself
        config.pop(added, None)
    fields: dict[str, Any] = {"label": name, "has_own_id": True, "settings": flatten(config)}
    yield tracked(builder, "Trackio's own counter of log calls", **fields)


SOURCES: dict[str, tuple[str, Callable[[str, str], Iterator[Found]]]] = {
    "wandb": ("W&B server", _of_wandb),
    "mlflow": ("MLflow server", _of_mlflow),
    "trackio": ("Trackio project", _of_trackio),
}
"""What is before the colon, how the reader is called, and what finds the runs of the rest."""


def candidates(place: str) -> list[LogCandidate]:
    """Runs that a place such as ``wandb:ENTITY/PROJECT`` names, each read when it is asked for."""
    name, _, rest = place.partition(":")
    called, find = SOURCES[name]
    found = [
        run_of(top, run, called, read)
        for top, run, read in answers(place, partial(find, place, rest))
    ]
    if not found:
        advice = "Check the name; runs show here once they have logged something"
        raise SourceError("there is no run in it", path=place, advice=advice)
    return found
