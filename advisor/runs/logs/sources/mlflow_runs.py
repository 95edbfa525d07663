"""MLflow, a server or its own store: the runs of an experiment, with every logged value."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from advisor.errors import InputError, SourceError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logs.sources.answers import answers, not_installed, run_of
from advisor.runs.logs.sources.mlflow_points import Points

ENDED = "FINISHED"
"""Status of a run that ended as it should; any other is said."""

RUNS_PER_PAGE = 500


def candidates(place: str) -> list[LogCandidate]:
    """Runs of an experiment, ``EXPERIMENT`` or ``TRACKING_URI#EXPERIMENT``, by name or number."""
    whole = f"mlflow:{place}"
    uri, _, experiment = place.rpartition("#")
    if not experiment or "://" in experiment:
        raise SourceError(
            f"'{place}' names no experiment",
            path=whole,
            advice="Write mlflow:EXPERIMENT (with MLFLOW_TRACKING_URI), or "
            "mlflow:http://HOST:PORT#EXPERIMENT, mlflow:sqlite:///FILE#EXPERIMENT or "
            "mlflow:FOLDER#EXPERIMENT",
        )
    try:
        runs = list(answers(whole, partial(_runs, whole, uri or None, experiment)))
    except InputError:
        raise
    except Exception as error:
        raise _refused(whole, error) from error
    return [
        run_of(whole, run.info.run_id, "MLflow server", partial(_read, client, run))
        for client, run in runs
    ]


def _runs(place: str, uri: str | None, experiment: str) -> Iterator[tuple[Any, Any]]:
    """Client and run, for each run that was not deleted."""
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise not_installed(place, "MLflow's", "mlflow") from None
    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    if found is None and experiment.isdigit():
        found = client.get_experiment(experiment)
    if found is None:
        raise _unknown(place, f"there is no experiment '{experiment}'")
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
    points = Points(path, columns)
    keys = [key for key in sorted(run.data.metrics) if points.wants(key)]

    def values() -> Iterator[Any]:
        for key in keys:
            yield from client.get_metric_history(run.info.run_id, key)

    try:
        for value in answers(str(path), values):
            points.add(value.key, float(value.timestamp), float(value.value), float(value.step))
    except InputError:
        raise
    except Exception as error:
        raise _refused(str(path), error) from error
    if not len(points):
        raise InputError(
            "no values of known metrics were found",
            path=path,
            advice="Name the metric of the reward in a column map",
        )
    table, assumed = points.table()
    status = run.info.status
    yield Logged(
        table,
        label=run.info.run_name or run.info.run_id,
        has_own_id=True,
        settings=_settings(run.data.params),
        assumptions=assumed,
        warnings=() if status == ENDED else (f"MLflow says of this run: {status.lower()}",),
    )


def _settings(params: dict[str, str]) -> dict[str, Any]:
    """Parameters under dotted names; a long text is no setting."""
    short = {key.replace("/", "."): value for key, value in params.items() if len(value) <= 8_000}
    return dict(sorted(short.items())[:5_000])


def _unknown(place: str, problem: str) -> SourceError:
    return SourceError(
        problem,
        path=place,
        advice="Check its name, and the tracking server (MLFLOW_TRACKING_URI, or before the '#')",
    )


def _refused(place: str, error: Exception) -> SourceError:
    """Error in words that a user can act on."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300].rstrip(".")
    code = getattr(error, "error_code", "")
    if code in ("RESOURCE_DOES_NOT_EXIST", "ENDPOINT_NOT_FOUND"):
        return _unknown(place, said)
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED", "CUSTOMER_UNAUTHORIZED"):
        return SourceError(
            f"MLflow does not let this login read it ({said})",
            path=place,
            advice="Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
            "MLFLOW_TRACKING_TOKEN",
        )
    return SourceError(
        f"MLflow cannot give it ({said})",
        path=place,
        advice="Check the tracking server or store (MLFLOW_TRACKING_URI, or before the '#'); a "
        "folder mlruns is opened with MLFLOW_ALLOW_FILE_STORE=true",
    )
