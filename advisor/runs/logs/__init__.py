"""Log files to pilot runs. This face is all that the rest of the package imports of the wing."""

from __future__ import annotations

from advisor.runs.logs.demo import demo_folder, demo_runs
from advisor.runs.logs.inspection import NO_LOG, as_json, explain, show
from advisor.runs.logs.read import Inspection, inspect, is_source, read_runs
from advisor.runs.logs.readers import known_formats

__all__ = [
    "NO_LOG",
    "Inspection",
    "as_json",
    "demo_folder",
    "demo_runs",
    "explain",
    "inspect",
    "is_source",
    "known_formats",
    "read_runs",
    "show",
]
