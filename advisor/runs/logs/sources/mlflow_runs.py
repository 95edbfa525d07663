"""MLflow, a server or its own store: the runs of an experiment, with every logged value."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from advisor.errors import InputError, SourceError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logfiles.table import Table, TableBuilder
from advisor.runs.logs.sources.answers import answers, refusal, run_of
from advisor.runs.trainers.keys import kept_keys

ENDED = "FINISHED"  # Status of a run that ended as it should; any other is reported

RUNS_PER_PAGE = 500

Value = tuple[str, float, float, float]
"""Metric, time, value and step."""


def candidates(place: str) -> list[LogCandidate]:
    """Runs of an experiment, ``EXPERIMENT`` or ``TRACKING_URI#EXPERIMENT``, by name or number."""
    whole = f"mlflow:{place}"
    uri, _, experiment = place.rpartition("#")
    if not experiment or "://" in experiment:
        raise refusal(whole, "address", place)
    runs = answers(whole, partial(_runs, whole, uri or None, experiment), _refused)
    return [
        run_of(whole, run.info.run_id, "MLflow server", partial(_read, client, run))
        for client, run in list(runs)
    ]


def _runs(place: str, uri: str | None, experiment: str) -> Iterator[tuple[Any, Any]]:
    """Client and run, for each run that was not deleted."""
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise refusal(place, "missing") from None
    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    if found is None and experiment.isdigit():
        found = client.get_experiment(experiment)
    if found is None:
        raise refusal(place, "unknown", f"there is no experiment '{experiment}'")
    token = None
    while True:
        page = client.search_runs(
            [found.experiment_id], max_results=RUNS_PER_PAGE, page_token=token
        )
        yield from ((client, run) for run in page)
        token = page.token
        if not token:
            return


def _read(client: Any, run: Any, path: Path, columns: Columns) -> Iterator[Logged]:
    """Read the values of one run."""
    keys, keeps = sorted(run.data.metrics), kept_keys(columns)

    def values() -> Iterator[Value]:
        for key in filter(keeps, keys):
            for point in client.get_metric_history(run.info.run_id, key):
                yield key, float(point.timestamp), float(point.value), float(point.step)

    table, assumptions = table_of(answers(str(path), values, _refused), keys, path, columns)
    status = run.info.status
    # Parameters under dotted names; a long text is no setting.
    settings = {k.replace("/", "."): text for k, text in run.data.params.items() if len(text) < 8e3}
    yield Logged(
        table,
        label=run.info.run_name or run.info.run_id,
        has_own_id=True,
        settings=dict(sorted(settings.items())[:5_000]),
        assumptions=assumptions,
        warnings=() if status == ENDED else (f"MLflow says of this run: {status.lower()}",),
    )


def table_of(
    values: Iterable[Value], keys: Iterable[str], path: Path, columns: Columns
) -> tuple[Table, tuple[str, ...]]:
    """Rows by step, in the order in which they were begun, and what was assumed.

    A step that a metric has again, as after a restart, is a row of its own.
    """
    import pandas as pd

    points = pd.DataFrame(list(values), columns=["key", "time", "value", "step"])
    if points.empty:
        raise InputError(
            "no values of known metrics were found",
            path=path,
            advice="Name the metric of the reward in a column map",
        )
    # Without a step MLflow writes 0 for every value, and only their order is left.
    by_key = points.groupby("key")["step"]
    idle = by_key.transform("size").gt(1) & by_key.transform(lambda step: (step == 0).all())
    points["again"] = points.groupby(["key", "step"]).cumcount()
    points.loc[idle, "step"] = float("nan")
    rows = points.groupby(["again", "step"], dropna=False, sort=True)
    points["begun"], points["row"] = rows["time"].transform("min"), rows.ngroup()
    builder = TableBuilder(path, kept_keys(columns))
    builder.seen(keys)
    in_order: Any = points.sort_values(["begun", "row"], kind="stable").itertuples()
    for number, (_, same) in enumerate(itertools.groupby(in_order, attrgetter("row")), start=1):
        row = list(same)
        step = {} if row[0].step != row[0].step else {"step": row[0].step}
        builder.add(number, step | {point.key: point.value for point in row})
    names = ", ".join(sorted(set(points.loc[idle, "key"]))[:4])
    assumed = (f"{names}: logged without a step, so rows follow their order",) if names else ()
    return builder.build(), assumed


def _refused(place: str, error: Exception) -> SourceError:
    """Error in words that a user can act on."""
    code = getattr(error, "error_code", "")
    if code in ("RESOURCE_DOES_NOT_EXIST", "ENDPOINT_NOT_FOUND"):
        return refusal(place, "unknown", error)
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED", "CUSTOMER_UNAUTHORIZED"):
        return refusal(place, "login", error)
    return refusal(place, "failed", error)
