"""The published schema of pilots.toml is that of the code, and says what the reader says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from studies import script

from advisor.errors import InputError
from advisor.runs import PilotRun, on_disk
from advisor.runs.logfiles.logged import OPTIONS
from advisor.runs.logs.sidecar import PLACES, read_sidecar
from advisor.runs.logs.stated_settings import KEYS

ROOT = Path(__file__).parents[2]
_SCRIPT = script(ROOT / "scripts/sidecar_schema.py")
as_json = _SCRIPT.as_json
SCHEMA = _SCRIPT.sidecar_schema()

RIGHT = {
    "nothing": "# no run yet\n",
    "defaults": '[defaults]\ntask = "sort"\nlag = 0\nwarmup_steps = 0\nmomentum = 0.9\n',
    "a run": '[[run]]\npath = "a/*.json"\nlearning_rate = 1e-6\ngroup_size = 8\nseed = 0\n',
    "a run by its id": '[[run]]\nid = "a"\nimportance_ratio = false\nadapter = "lora"\n',
    "a size as text": '[[run]]\nid = "a"\nparameters = "7B"\n',
    "columns": '[columns]\nreward = "train/acc"\nstep_unit = "refresh"\nfilter = "type=rollout"\n',
    "columns of a run": '[[run]]\nid = "a"\ncolumns = {kl = "my_kl"}\n',
}
WRONG = {
    "a table that is none": "[default]\nlag = 0\n",
    "one bracket": '[run]\npath = "a"\n',
    "an unknown key": "[defaults]\nlearning_rates = 1e-6\n",
    "a rate of 0": "[defaults]\nlearning_rate = 0.0\n",
    "a broken group": "[defaults]\ngroup_size = 8.5\n",
    "a momentum of 1": "[defaults]\nmomentum = 1.0\n",
    "another schedule": '[defaults]\nschedule = "wsd"\n',
    "a switch for a number": "[defaults]\nlag = true\n",
    "a seed below 0": "[defaults]\nseed = -1\n",
    "a model that is a number": "[defaults]\nmodel = 7\n",
    "no parameters": "[defaults]\nparameters = 0\n",
    "a place for all": '[defaults]\npath = "a"\n',
    "a run without a name": "[[run]]\ngroup_size = 8\n",
    "a path that is a number": "[[run]]\npath = 3\n",
    "another column": '[columns]\nrewards = "r"\n',
    "a column that is a number": "[columns]\nreward = 3\n",
    "another unit": '[columns]\nstep_unit = "epoch"\n',
}


def check(text: str) -> list[str]:
    validator = Draft7Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(tomllib.loads(text))]


def read(text: str, folder: Path) -> None:
    path = folder / "pilots.toml"
    path.write_text(text, encoding="utf-8")
    read_sidecar(on_disk(path))


def test_the_schema_is_one_and_has_every_key():
    Draft7Validator.check_schema(SCHEMA)
    entry = SCHEMA["properties"]["run"]["items"]["properties"]
    assert set(entry) == {*KEYS, *PLACES}
    assert set(SCHEMA["properties"]["defaults"]["properties"]) == set(KEYS)
    columns = SCHEMA["definitions"]["columns"]["properties"]
    assert set(columns) == {*PilotRun.SERIES, *OPTIONS}


def test_every_key_is_explained():
    for name, definition in SCHEMA["definitions"].items():
        assert definition["description"].endswith("."), name


def test_the_published_schema_is_that_of_the_code():
    published = (ROOT / "docs/pilots.schema.json").read_text(encoding="utf-8")
    assert published == as_json(), (
        "write it anew: python scripts/sidecar_schema.py docs/pilots.schema.json"
    )


@pytest.mark.parametrize(
    "path", sorted((ROOT / "case_studies").rglob("pilots.toml")), ids=lambda path: path.parent.name
)
def test_the_case_studies_hold(path):
    assert check(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", RIGHT)
def test_what_the_reader_takes_the_schema_takes(name, tmp_path):
    assert check(RIGHT[name]) == []
    read(RIGHT[name], tmp_path)


@pytest.mark.parametrize("name", WRONG)
def test_what_the_reader_refuses_the_schema_refuses(name, tmp_path):
    assert check(WRONG[name])
    with pytest.raises(InputError):
        read(WRONG[name], tmp_path)
