"""JSON schema of ``pilots.toml``, by which editors complete and check it while it is written.

``python scripts/sidecar_schema.py docs/pilots.schema.json`` writes it anew.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

from advisor.runs.logfiles.logged import OPTIONS
from advisor.runs.logs.stated_settings import RunKeys
from advisor.runs.pilot_run import PilotRun
from advisor.runs.settings import PartialSettings

TEXT = {"type": "string", "minLength": 1}

ATTRIBUTE = re.compile(r"^(\w+(?:, \w+)*)(?: : .*)?\n((?: {4}\S.*\n?)+)", re.MULTILINE)
"""Names in the section ``Attributes`` of a docstring, and what is said of them."""


def sidecar_schema() -> dict[str, Any]:
    """JSON schema (draft 7) of ``pilots.toml``, from the keys that the package reads."""
    definitions = {**_settings(), **_run_keys()}
    settings = {name: {"$ref": f"#/definitions/{name}"} for name in definitions}
    columns = _table(dict.fromkeys((*PilotRun.SERIES, *OPTIONS), TEXT) | {"step_unit": _unit()})
    places = {
        "path": TEXT
        | {"description": "Log relative to this file, a folder of logs, or a glob over them."},
        "id": TEXT | {"description": "Id of the run, as `advisor inspect` shows it."},
        "columns": {"$ref": "#/definitions/columns"},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pilots.toml",
        "description": "Settings of GRPO runs that their logs do not hold.",
        **_table(
            {
                "defaults": _table(settings) | {"description": "For every run."},
                "columns": {"$ref": "#/definitions/columns"},
                "run": {
                    "description": "One table [[run]] for each run, or for several by a glob.",
                    "type": "array",
                    "items": _table(places | settings)
                    | {"anyOf": [{"required": ["path"]}, {"required": ["id"]}]},
                },
            }
        ),
        "definitions": {
            **definitions,
            "columns": columns | {"description": "What the package reads -> its key in the log."},
        },
    }


def _table(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _unit() -> dict[str, Any]:
    return {"enum": ["optimizer", "refresh"], "description": "What the step of the log counts."}


def _settings() -> dict[str, Any]:
    """Schema of each setting; TOML has no null."""
    of_docstring = {
        name: " ".join(text.replace("``", "`").split())
        for names, text in ATTRIBUTE.findall(inspect.getdoc(PartialSettings) or "")
        for name in names.split(", ")
    }
    out = {}
    for name, field in PartialSettings.model_json_schema()["properties"].items():
        (known,) = (kind for kind in field["anyOf"] if kind != {"type": "null"})
        out[name] = {**known, "description": of_docstring[name]}
    return out


def _run_keys() -> dict[str, Any]:
    out = {}
    for name, field in RunKeys.model_json_schema()["properties"].items():
        (known,) = (kind for kind in field["anyOf"] if kind != {"type": "null"})
        known = {"anyOf": [known, TEXT]} if name == "parameters" else known
        out[name] = {**known, "description": field["description"]}
    return out


def as_json() -> str:
    """Text of the schema as it is published."""
    return json.dumps(sidecar_schema(), indent=2) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(as_json(), encoding="utf-8")
