"""Runs of W&B's server, through its own client, from a server on loopback."""

from __future__ import annotations

import pytest
from wandb_server import KEY, Run, Wandb

pytest.importorskip("wandb", reason="the extra 'wandb' is not installed")


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


@pytest.mark.parametrize(
    "place", ["team/nothing", "team/grpo/nothing", "team/grpo/sweeps/bbbb2222"]
)
def test_what_the_server_does_not_know(server, call, place):
    said = refused(call("inspect", f"wandb:{place}", **env(server)))
    assert f"wandb:{place}" in said
    assert "Could not find" in said


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
