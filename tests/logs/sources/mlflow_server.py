"""A server that answers what MLflow's client asks, as recorded from version 3.17, on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback import Loopback

Values = dict[str, list[tuple[int, float]]]
"""Step and value of each metric, in the order in which they were logged."""


@dataclass
class Run:
    """A run as the server has it."""

    id: str
    name: str
    params: dict[str, str]
    metrics: Values
    status: str = "FINISHED"

    def told(self) -> dict[str, Any]:
        info = {"run_id": self.id, "run_uuid": self.id, "run_name": self.name, "experiment_id": "3"}
        info |= {
            "status": self.status,
            "lifecycle_stage": "active",
            "start_time": 1_700_000_000_000,
        }
        latest = [
            {"key": key, "value": values[-1][1], "timestamp": 1, "step": values[-1][0]}
            for key, values in self.metrics.items()
        ]
        params = [{"key": key, "value": value} for key, value in self.params.items()]
        return {"info": info, "data": {"metrics": latest, "params": params, "tags": []}}


@dataclass
class Mlflow(Loopback):
    """What the server holds, and what it was asked."""

    runs: list[Run]
    experiment: str = "grpo/sweep"
    hangs: bool = False
    denies: bool = False
    asked: list[str] = field(default_factory=list)

    def got(self, path: str) -> tuple[int, bytes]:
        given = parse_qs(urlsplit(path).query)
        return self.told(path, {key: values[0] for key, values in given.items()})

    def posted(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        return self.told(path, json.loads(body))

    def told(self, path: str, given: dict[str, Any]) -> tuple[int, bytes]:
        what = urlsplit(path).path.rpartition("/mlflow/")[2]
        status, told = self.answer(what, given)
        return status, json.dumps(told).encode()

    def answer(self, what: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asked.append(what)
        while self.hangs:
            time.sleep(0.05)
        if self.denies:
            return 403, {"error_code": "PERMISSION_DENIED", "message": "Permission denied"}
        if what in ("experiments/get-by-name", "experiments/get"):
            known = self.experiment if what.endswith("name") else "3"
            if known not in (given.get("experiment_name"), given.get("experiment_id")):
                text = f"Could not find experiment with name '{given.get('experiment_name')}'"
                return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": text}
            told = {"experiment_id": "3", "name": self.experiment, "lifecycle_stage": "active"}
            return 200, {"experiment": told}
        if what == "runs/search":
            # One run a page: the client has to follow the token.
            place = int(given.get("page_token") or 0)
            page: dict[str, Any] = {"runs": [run.told() for run in self.runs[place : place + 1]]}
            if place + 1 < len(self.runs):
                page["next_page_token"] = str(place + 1)
            return 200, page
        if what == "metrics/get-history":
            run = next(run for run in self.runs if run.id == given["run_id"])
            key = given["metric_key"]
            values = [
                {"key": key, "value": value, "timestamp": 1_700_000_000_000 + step, "step": step}
                for step, value in run.metrics[key]
            ]
            return 200, {"metrics": values}
        return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": f"nobody recorded {what}"}
