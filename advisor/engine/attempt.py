"""One item on its worker: nothing that it raises leaves the worker as an exception."""

from __future__ import annotations

import json
import platform
import time
from typing import Any, NamedTuple

import cloudpickle

from advisor.common import VERSION
from advisor.engine.outcome import Outcome
from advisor.errors import AdvisorError


class Call(NamedTuple):
    """An item on its way to a worker.

    Attributes
    ----------
    place : int
        Place in the list of items.
    name : str
    version : str
        Of the package that asks.
    packed : bytes
        Function and payload. Bytes travel with the task: what Dask scatters beside it is lost with
        the worker that holds it.
    """

    place: int
    name: str
    version: str
    packed: bytes


class Refusal(NamedTuple):
    """A worker that has another version of the package."""

    worker: str
    version: str


def packed(function: Any, payload: Any) -> bytes:
    """Function and payload as bytes; functions of a script travel with their code."""
    return bytes(cloudpickle.dumps((function, payload)))


def attempted(call: Call) -> tuple[int, Outcome | Refusal]:
    """Outcome of a call, or the worker's refusal to answer for another version."""
    if call.version != VERSION:
        return call.place, Refusal(platform.node(), VERSION)
    started = time.perf_counter()
    try:
        function, payload = cloudpickle.loads(call.packed)
        # As a reader of the kept line would have it, so that fresh and kept results are equal.
        result = json.loads(json.dumps(function(payload)))
        found = Outcome(call.name, result)
    except AdvisorError as error:
        found = _failed(call, error, is_final=True)
    except Exception as error:  # whatever it is, the other items go on
        found = _failed(call, error, is_final=False)
    seconds = round(time.perf_counter() - started, 3)
    return call.place, Outcome(**{**vars(found), "seconds": seconds})


def _failed(call: Call, error: Exception, *, is_final: bool) -> Outcome:
    """Failure by its class and text."""
    problem = getattr(error, "problem", None) or str(error) or type(error).__name__
    return Outcome(call.name, None, type(error).__name__, problem, is_final)
