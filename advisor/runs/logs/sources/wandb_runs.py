"""W&B's server: the runs of a project or a sweep, or one run, with every row of the history."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.config_files import flatten
from advisor.runs.logfiles.find import LogCandidate
from advisor.runs.logfiles.logged import Logged
from advisor.runs.logfiles.records import OWN_COUNTER
from advisor.runs.logs.sources.answers import answers, refusal, run_of
from advisor.runs.logs.trackers.tracker import TrackedRun
from advisor.runs.logs.trackers.wandb_history import COUNTER

PLACE = re.compile(r"([^/:]+)/([^/]+?)(?:/(?:(sweeps|runs)/)?([^/]+))?/?")

ENDED = "finished"  # State of a run that ended as it should; any other is reported

SECONDS = 30
"""W&B's own limit for one request; its default of 19 is short for a page of a large project."""


def candidates(place: str) -> list[LogCandidate]:
    """Runs of ``ENTITY/PROJECT``, ``ENTITY/PROJECT/SWEEP`` or ``ENTITY/PROJECT/RUN``."""
    whole = f"wandb:{place}"
    found = PLACE.fullmatch(place)
    if found is None:
        raise refusal(whole, "address", place)
    entity, project, kind, name = found.groups()
    runs = answers(whole, partial(_runs, whole, f"{entity}/{project}", kind, name), _refused)
    top = f"wandb:{entity}/{project}"
    return [run_of(top, run.id, "W&B server", partial(_read, run)) for run in list(runs)]


def _runs(place: str, project: str, kind: str | None, name: str | None) -> Iterator[Any]:
    """Runs with their settings; of a bare name a sweep is sought before a run."""
    client = _client(place)
    if not _has_login(client):
        raise refusal(place, "login", "no API key is known")
    api = client.Api(timeout=SECONDS)
    if name is None:
        yield from api.runs(project, lazy=False)
        return
    if kind != "runs":
        try:
            sweep = api.sweep(f"{project}/{name}")
        except Exception as error:
            if kind == "sweeps" or not _is_unknown(error):
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


def _read(run: Any, path: Path, columns: Columns) -> Iterator[Logged]:
    """Read the rows of one run, none of them sampled."""
    rows = TrackedRun(path, columns, COUNTER)
    # A history that W&B's client kept from an earlier look lacks what came since.
    ask = partial(run.scan_history, use_cache=False)
    for cells in _one_per_step(answers(str(path), ask, partial(_refused, is_one_run=True))):
        rows.add(len(rows) + 1, cells, cells.pop(OWN_COUNTER, None))
    yield rows.logged(
        label=run.name or run.id,
        has_own_id=True,
        settings=flatten(run.config),
        warnings=[] if run.state == ENDED else [f"W&B says of this run: {run.state}"],
    )


def _one_per_step(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows without empty cells; what comes both from a Parquet file and from a page is one row."""

    def step(row: dict[str, Any]) -> Any:
        counted = row.get(OWN_COUNTER)
        return object() if counted is None else counted

    for _, same in itertools.groupby(rows, key=step):
        yield {key: cell for row in same for key, cell in row.items() if cell is not None}


def _is_unknown(error: BaseException) -> bool:
    """Whether the server answered, and knows no such thing."""
    return "could not find" in str(error).lower()


def _status(error: BaseException | None) -> int | None:
    """HTTP status with which the server refused, or None where it did not answer."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return int(getattr(response, "http_status", 0) or 200)
        error = error.__cause__
    return None


def _refused(place: str, error: Exception, *, is_one_run: bool = False) -> InputError:
    """Error in words that a user can act on; of one run, which may be passed over, a lesser one."""
    status = _status(error)
    if "api key" in str(error).lower() or status in (401, 403):
        return refusal(place, "login", error)
    if _is_unknown(error) or status == 404:
        return refusal(place, "unknown", error)
    if status is not None and is_one_run:
        problem = f"W&B does not give its history ({str(error).strip()[:200]})"
        return InputError(problem, path=place, advice="Open its page at W&B")
    no_answer = type(error).__name__ in ("AuthenticationError", "CommError", "WandbApiFailedError")
    return refusal(place, "unreachable" if status is None and no_answer else "failed", error)
