"""Runs of W&B's server, through its own client, from a server on loopback."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from wandb_server import KEY, Run, Wandb

import advisor

pytest.importorskip("wandb", reason="the extra 'wandb' is not installed")

PACKAGE = Path(advisor.__file__).parent.parent

NOBODY = "http://127.0.0.1:9"

STEPS = 1300
"""More than the 500 that W&B samples a history to, and than one page of it."""

CONFIG = {
    "num_generations": 8,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 4,
    "num_iterations": 1,
    "model_name_or_path": "Qwen/Qwen2.5-0.5B",
    "learning_rate": 2e-6,
}

FASTER = CONFIG | {"learning_rate": 4e-6}


def rows(steps: int, *, offset: float = 0.0, rate: float = 2e-6) -> list[dict[str, float]]:
    """Rows as TRL logs them: an evaluation every hundredth row shares no row with the reward."""
    return [
        {
            "_step": step - 1,
            "_runtime": 9.0 * step,
            "_timestamp": 1.7e9 + 9 * step,
            "train/global_step": step,
            "train/reward": 0.1 + offset + 0.5 * step / (step + 300),
            "train/learning_rate": rate,
            "train/completions/mean_length": 200.0,
        }
        for step in range(1, steps + 1)
    ]


def project() -> Wandb:
    return Wandb(
        [
            Run("aaaa1111", "lr-2e-6", CONFIG, rows(STEPS), sweep="sw1", exported=700),
            Run("bbbb2222", "lr-4e-6", FASTER, rows(40, rate=4e-6), "crashed"),
            Run("cccc3333", "sft", {}, [{"_step": s, "loss": 1.0 / s} for s in range(1, 9)]),
            Run("dddd4444", "lr-4e-6", CONFIG, rows(60, offset=0.01), "running", sweep="sw1"),
            Run("eeee5555", "queued", CONFIG, [], "pending"),
        ],
        sweeps=("sw1", "empty"),
    )


@pytest.fixture(scope="module")
def server():
    with project() as wandb:
        yield wandb


def env(server: Wandb, key: str = KEY) -> dict[str, str]:
    return {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": key}


def test_project_reads_as_files_do(server, call):
    found = call("inspect", "wandb:team/grpo", "--json", **env(server))
    assert found.code == 0, found.err
    runs = {run["path"]: run for run in found.json["runs"]}
    assert set(runs) == {f"wandb:team/grpo/{id}" for id in ("aaaa1111", "bbbb2222", "dddd4444")}
    first = runs["wandb:team/grpo/aaaa1111"]
    # Every row, over the Parquet part and two pages, of which none is sampled.
    assert (first["rows"], first["last_step"]) == (STEPS, STEPS)
    assert first["id"] == "lr-2e-6"
    settings = first["hyperparameters"]
    assert settings["group_size"] == 8
    assert settings["learning_rate"] == 2e-6
    assert first["parameters"] == pytest.approx(0.49e9, rel=0.1)
    assert first["warnings"] == []
    # Two runs of one name are told apart.
    ids = [run["id"] for run in found.json["runs"]]
    assert len(set(ids)) == 3
    assert sum(id.endswith("lr-4e-6") for id in ids) == 2


def test_state_of_a_run_is_said(server, call):
    found = call("inspect", "wandb:team/grpo", "--json", **env(server))
    told = {run["path"].rpartition("/")[2]: run["warnings"] for run in found.json["runs"]}
    assert told["bbbb2222"] == ["W&B says of this run: crashed"]
    assert told["dddd4444"] == ["W&B says of this run: running"]
    assert told["aaaa1111"] == []


def test_runs_without_a_reward_or_a_row_are_named_and_passed_over(server, call):
    found = call("inspect", "wandb:team/grpo", "--json", **env(server))
    unread = {one["path"]: one["reason"] for one in found.json["unread"]}
    assert set(unread) == {"wandb:team/grpo/cccc3333", "wandb:team/grpo/eeee5555"}
    assert "no key holds the train reward" in unread["wandb:team/grpo/cccc3333"]
    assert "'sft'" in unread["wandb:team/grpo/cccc3333"]


def test_settings_are_those_of_a_folder_of_the_same_runs(server, call, tmp_path):
    """The same rows and config as files: no setting differs, none is guessed from elsewhere."""
    run = server.runs[0]
    folder = tmp_path / "files" / run.id
    folder.mkdir(parents=True)
    lines = [json.dumps(row) for row in run.rows]
    (folder / "wandb-history.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "config.json").write_text(json.dumps(run.config))
    (as_file,) = advisor.read_runs(tmp_path / "files")
    found = call("inspect", "wandb:team/grpo/runs/aaaa1111", "--json", **env(server))
    (as_run,) = found.json["runs"]
    assert as_run["hyperparameters"] == as_file.hyperparameters.model_dump()
    assert as_run["model"] == as_file.model
    assert as_run["step_unit"] == as_file.step_unit
    assert as_run["derivations"].keys() == as_file.derivations.keys()
    assert as_run["reward_last"] == pytest.approx(float(as_file.reward[-130:].mean()))


def test_what_is_asked_for_is_to_be_named_with_a_flag(call):
    untold = {name: value for name, value in CONFIG.items() if name != "num_generations"}
    with Wandb([Run("ffff6666", "groups untold", untold, rows(40))]) as server:
        found = call("inspect", "wandb:team/grpo/ffff6666", **env(server))
    assert "Paste into pilots.toml and name it with --sidecar" in found.out, found
    assert "beside the log" not in found.out


@pytest.mark.parametrize("place", ["team/grpo/sw1", "team/grpo/sweeps/sw1"])
def test_a_sweep_is_its_own_runs(server, call, place):
    found = call("inspect", f"wandb:{place}", "--json", **env(server))
    assert [run["path"][-8:] for run in found.json["runs"]] == ["aaaa1111", "dddd4444"]


def test_a_row_that_comes_twice_is_one_row(call):
    with project() as server:
        server.keeps_exported = True
        found = call("inspect", "wandb:team/grpo/aaaa1111", "--json", **env(server))
    (run,) = found.json["runs"]
    assert run["rows"] == STEPS
    assert run["warnings"] == []


def test_a_run_is_named_like_a_sweep(server, call):
    found = call("inspect", "wandb:team/grpo/bbbb2222", "--json", **env(server))
    assert [run["path"][-8:] for run in found.json["runs"]] == ["bbbb2222"]


def test_settings_that_w_and_b_lacks_come_from_flags_or_a_sidecar_that_is_named(
    server, call, tmp_path
):
    stated = "[defaults]\ntask = 'gsm8k'\n[[run]]\nid = 'lr-2e-6'\nreward_ceiling = 2.0\n"
    (tmp_path / "pilots.toml").write_text(stated)
    place = "wandb:team/grpo/sw1"
    (first, _) = call("inspect", place, "--json", **env(server)).json["runs"]
    assert first["task"] is None  # the working folder's speaks of other logs
    words = ("inspect", place, "--json", "--sidecar", "pilots.toml", "--set", "prompts_per_step=7")
    (first, _) = call(*words, **env(server)).json["runs"]
    assert first["task"] == "gsm8k"
    assert first["hyperparameters"]["prompts_per_step"] == 7


def test_strict_reading_names_what_it_passed_over(server, call):
    code = "import advisor; [print(w) for w in advisor.read_runs('wandb:team/grpo')[0].warnings]"
    found = call(code=code, **env(server))
    assert found.out.count("cannot be read: wandb:team/grpo/") == 2, found.err
    assert "cccc3333" in found.out
    assert "eeee5555" in found.out


# Other commands ----------------------------------------------------------------------------------


def test_two_runs_of_a_project_are_compared(server, call):
    places = "wandb:team/grpo/runs/aaaa1111", "wandb:team/grpo/bbbb2222"
    found = call("compare", *places, **env(server))
    assert found.code == 0, found.err
    assert f"A: {places[0]}\nB: {places[1]}\n" in found.out
    (rate,) = [line for line in found.out.splitlines() if "learning_rate" in line]
    assert rate.split()[-2:] == ["2e-06", "4e-06"]


def test_a_project_is_no_one_run(server, call):
    said = refused(call("compare", "wandb:team/grpo", "wandb:team/grpo/bbbb2222", **env(server)))
    assert "there are 3 runs" in said


# Errors that a user can act on -------------------------------------------------------------------


def refused(found) -> str:
    assert found.code == 2, found
    assert found.err.count("\n") == 1
    assert "Internal error" not in found.err
    return found.err


def test_without_a_login(server, call):
    said = refused(call("inspect", "wandb:team/grpo", WANDB_BASE_URL=server.url))
    assert "wandb login" in said
    assert "WANDB_API_KEY" in said


def test_on_a_terminal_the_client_does_not_ask(server, tmp_path):
    """It would ask for a key in the middle of the progress, from a thread that nobody waits for."""
    own, theirs = pty.openpty()
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "WANDB_BASE_URL": server.url}
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "inspect", "wandb:team/grpo"],
        env=env | {"PYTHONPATH": str(PACKAGE), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        timeout=240,
        cwd=tmp_path,
    )
    os.close(theirs)
    said = os.read(own, 100_000).decode()
    os.close(own)
    assert done.returncode == 2
    assert "wandb login" in said
    assert "choice" not in said


def test_with_a_wrong_login(server, call):
    said = refused(call("inspect", "wandb:team/grpo", **env(server, "local-" + "1" * 40)))
    assert "user is not logged in" in said
    assert "wandb login" in said


@pytest.mark.parametrize(
    "place", ["team/nothing", "team/grpo/nothing", "team/grpo/sweeps/bbbb2222"]
)
def test_what_the_server_does_not_know(server, call, place):
    said = refused(call("inspect", f"wandb:{place}", **env(server)))
    assert f"wandb:{place}" in said
    assert "Could not find" in said


def test_a_sweep_without_runs(server, call):
    said = refused(call("inspect", "wandb:team/grpo/empty", **env(server)))
    assert "there is no run in it" in said


@pytest.mark.parametrize("place", ["team", "team/", "http://wandb.ai/team/grpo"])
def test_what_is_no_place(server, call, place):
    said = refused(call("inspect", f"wandb:{place}", **env(server)))
    assert "ENTITY/PROJECT" in said


def test_without_a_network(call):
    found = call(
        "inspect",
        "wandb:team/grpo",
        silent=4,
        WANDB_BASE_URL="http://127.0.0.1:9",
        WANDB_API_KEY=KEY,
    )
    assert "check the network" in refused(found).lower()


@pytest.mark.parametrize("at", ["Runs", "HistoryPage"])
def test_a_server_that_falls_silent(call, at):
    with project() as server:
        server.hangs_at = at
        try:
            found = call("inspect", "wandb:team/grpo", silent=4, **env(server))
        finally:
            server.hangs_at = ""
    assert "did not answer for 4 seconds" in refused(found)


def test_one_history_that_the_server_does_not_give_costs_no_other(call):
    with project() as server:
        server.runs[1].history_fails = "history is being moved"
        found = call("inspect", "wandb:team/grpo", "--json", **env(server))
    unread = {one["path"]: one["reason"] for one in found.json["unread"]}
    assert "history is being moved" in unread["wandb:team/grpo/bbbb2222"]
    assert len(found.json["runs"]) == 2
