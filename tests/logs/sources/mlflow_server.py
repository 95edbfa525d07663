"""A server that answers what MLflow's client asks, as recorded from version 3.17, on loopback."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

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
class Mlflow:
    """What the server holds, and what it was asked."""

    runs: list[Run]
    experiment: str = "grpo/sweep"
    hangs: bool = False
    denies: bool = False
    asked: list[str] = field(default_factory=list)

    def __enter__(self) -> Mlflow:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

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


def _handler(mlflow: Mlflow) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            given = parse_qs(urlsplit(self.path).query)
            self.send({key: values[0] for key, values in given.items()})

        def do_POST(self) -> None:
            self.send(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def send(self, given: dict[str, Any]) -> None:
            what = urlsplit(self.path).path.rpartition("/mlflow/")[2]
            status, told = mlflow.answer(what, given)
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
