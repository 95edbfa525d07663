"""What all sources share, without any client."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from processes import python

import advisor
from advisor.errors import InputError, SourceError
from advisor.runs.logs import sources

MISSING = """
import sys
for name in ("wandb", "mlflow", "trackio"):
    sys.modules[name] = None
from advisor.cli import main
main(["inspect", sys.argv[1]])
"""


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("place", "extra"),
    [("wandb:team/grpo", "wandb"), ("mlflow:grpo", "mlflow"), ("trackio:grpo", "trackio")],
)
def test_a_client_that_is_not_installed_is_named_with_its_command(place, extra):
    found = python("-c", MISSING, place, timeout=60)
    assert found.returncode == 2
    assert f"pip install 'grpo-advisor[{extra}]'" in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_folder_of_that_name_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wandb:team").mkdir()
    with pytest.raises(InputError, match="no run was found"):
        advisor.read_runs("wandb:team")


def test_a_path_is_never_a_place():
    with pytest.raises(InputError, match="no such file or folder"):
        advisor.read_runs(Path("wandb:team/grpo"))


@pytest.mark.evidence
def test_no_client_is_imported_before_it_is_asked(tmp_path):
    code = (
        "import sys, advisor\n"
        "try: advisor.read_runs('nothing')\n"
        "except advisor.InputError: pass\n"
        "print([name for name in ('wandb', 'mlflow', 'trackio') if name in sys.modules])"
    )
    found = python("-c", code, timeout=60)
    assert found.stdout.strip() == "[]", found.stderr


def test_answers_come_in_order_and_errors_where_they_are_read():
    def ask():
        yield from (1, 2)
        raise ValueError("boom")

    came = sources.answers("trackio:place", ask)
    assert [next(came), next(came)] == [1, 2]
    with pytest.raises(SourceError, match="boom"):
        next(came)


def test_patience_is_for_each_answer(monkeypatch):
    monkeypatch.setattr(sources, "MOST_SILENT_SECONDS", 0.4)

    def ask():
        for _ in range(4):
            time.sleep(0.2)
            yield None
        time.sleep(60)

    came = sources.answers("place", ask)
    assert [next(came) for _ in range(4)] == [None] * 4
    with pytest.raises(SourceError, match="did not answer"):
        next(came)
