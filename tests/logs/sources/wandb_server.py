"""A server that answers what W&B's client asks, as recorded from version 0.31, on loopback."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from loopback import Loopback

KEY = "local-" + "0" * 40
"""Shaped like the key of a server of one's own; nothing else takes it."""


@dataclass
class Run:
    """A run as the server has it; W&B moves old rows of a history into Parquet files."""

    id: str
    name: str
    config: dict[str, Any]
    rows: list[dict[str, Any]]
    state: str = "finished"
    sweep: str | None = None
    exported: int = 0
    history_fails: str = ""

    def node(self) -> dict[str, Any]:
        config = {key: {"value": value, "desc": None} for key, value in self.config.items()}
        config["_wandb"] = {"value": {"cli_version": "0.31.0"}}
        return {
            "id": f"UnVu{self.id}",
            "projectId": "7",
            "tags": [],
            "name": self.id,
            "displayName": self.name,
            "sweepName": self.sweep,
            "state": self.state,
            "config": json.dumps(config),
            "group": None,
            "jobType": None,
            "commit": None,
            "readOnly": False,
            "createdAt": "2026-10-01T08:00:00",
            "heartbeatAt": "2026-10-01T09:00:00",
            "description": None,
            "notes": None,
            "systemMetrics": "{}",
            "summaryMetrics": "{}",
            "historyLineCount": len(self.rows),
            "user": {"name": "me", "username": "me"},
            "historyKeys": self.keys(),
        }

    def keys(self) -> dict[str, Any]:
        last = self.rows[-1]["_step"] if self.rows else -1
        return {"lastStep": last, "keys": {key: {} for row in self.rows for key in row}}


@dataclass
class Wandb(Loopback):
    """What the server holds, and what it was asked."""

    runs: list[Run]
    sweeps: tuple[str, ...] = ()
    project: str = "team/grpo"
    key: str = KEY
    hangs_at: str = ""
    keeps_exported: bool = False
    """Whether pages of a history also hold rows that stand in a Parquet file."""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    per_page: int = 2
    """Runs of a page, whatever the client asks for: it has to follow the cursor."""

    def got(self, path: str) -> tuple[int, bytes]:
        return 200, self.parquet(path.strip("/").removesuffix(".parquet"))

    def posted(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        if path != "/graphql":  # the client's own telemetry
            return 200, b"{}"
        login = headers.get("Authorization", "").removeprefix("Basic ")
        if base64.b64decode(login).decode() != f"api:{self.key}":
            return 401, b'{"errors": [{"message": "user is not logged in"}]}'
        query = json.loads(body)
        given = query.get("variables") or {}
        failed = [run for run in self.runs if run.id == given.get("run") and run.history_fails]
        if failed:
            return 200, json.dumps({"errors": [{"message": failed[0].history_fails}]}).encode()
        return 200, json.dumps({"data": self.answer(query["query"], given)}).encode()

    def answer(self, query: str, given: dict[str, Any]) -> dict[str, Any]:
        name = query.partition("query ")[2].split("(")[0].split("{")[0].strip()
        self.asked.append((name, given))
        while self.hangs_at == name:
            time.sleep(0.05)
        if name in ("Viewer", "GetDefaultEntity", "GetViewer"):
            return {"viewer": {"id": "VXNlcjox", "username": "me", "entity": "me", "flags": "{}"}}
        if f"{given.get('entity')}/{given.get('project')}" != self.project:
            return {"project": None}
        return {"project": self.of_project(name, given)}

    def of_project(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        if name == "Runs":
            return self.page(given)
        if name.startswith("GetSweep"):
            known = given["name"] in self.sweeps
            sweep = {"id": "U3dlZXA", "name": given["name"], "config": "method: grid"}
            return {"sweep": sweep if known else None}
        id = given.get("name") or given.get("run") or given.get("runName")
        run = next((run for run in self.runs if run.id == id), None)
        if run is None:
            return {"run": None}
        if name == "Run":
            return {"run": run.node()}
        if name == "RunHistoryKeys":
            return {"run": {"historyKeys": run.keys()}}
        if name == "RunParquetHistory":
            urls = [f"{self.url}/{run.id}.parquet"] if run.exported else []
            live = [{"_step": row["_step"]} for row in run.rows[run.exported :]]
            return {"run": {"parquetHistory": {"parquetUrls": urls, "liveData": live}}}
        if name == "HistoryPage":
            between = range(given["minStep"], given["maxStep"])
            kept = 0 if self.keeps_exported else run.exported
            live = [row for row in run.rows[kept:] if row["_step"] in between]
            return {"run": {"history": [json.dumps(row) for row in live]}}
        raise AssertionError(f"nobody recorded {name}")

    def page(self, given: dict[str, Any]) -> dict[str, Any]:
        filters = json.loads(given["filters"])
        wanted = filters["$and"][0]["sweep"] if filters else None
        runs = [run for run in self.runs if wanted in (None, run.sweep)]
        first = int(given["cursor"] or 0)
        shown = runs[first : first + self.per_page]
        places = range(first + 1, first + 1 + len(shown))
        return {
            "internalId": "7",
            "runCount": len(runs),
            "readOnly": False,
            "runs": {
                "edges": [
                    {"node": run.node(), "cursor": str(place)}
                    for run, place in zip(shown, places, strict=True)
                ],
                "pageInfo": {
                    "endCursor": str(first + len(shown)),
                    "hasNextPage": first + len(shown) < len(runs),
                },
            },
        }

    def parquet(self, id: str) -> bytes:
        run = next(run for run in self.runs if run.id == id)
        stream = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(run.rows[: run.exported]), stream)
        return stream.getvalue()
