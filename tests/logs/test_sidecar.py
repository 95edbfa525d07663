"""pilots.toml: matching, precedence, contradictions, errors."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from advisor.diagnosis import Collapse, diagnose, find_any_fall
from advisor.errors import InputError
from advisor.runs import inspect, read_runs

ENTRY = '[[run]]\npath = "x/trainer_state.json"\n'
TABLES = yaml.safe_load(Path(__file__).with_name("errors.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("stated", "onset"),
    [("collapsed = true\n", 12.0), ("collapsed_at = 7\n", 7.0), ("collapsed = false\n", None)],
)
def test_a_collapse_that_is_stated_is_one(write, tmp_path, stated, onset):
    ends = 0.4 if onset else 0.0
    lines = ["step,reward", *(f"{n},{0.4 if n < 7 else ends}" for n in range(1, 13))]
    write("x.csv", "\n".join(lines))
    write("pilots.toml", '[[run]]\npath = "x.csv"\ngroup_size = 8\n' + stated)
    (run,) = read_runs(tmp_path)
    shown = find_any_fall(run.step, run.reward, 0.0)
    assert shown.unstable is (onset is None)
    assert shown.as_stated(run).onset_step == onset
    assert Collapse.of_cohort([run])[run.id].fell_from == onset
    (fallen,) = [card for card in diagnose(run).cards if card.mode == "collapse"]
    assert fallen.status == ("PASS" if onset is None else "FAIL")
    assert "as was stated of it" in fallen.headline


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *TABLES["sidecars"],
        (b"\0\1", r"pilots.toml: the file is binary.*Write \[defaults\]"),
        ("[defaults]\ntask = 'ä'\n".encode("latin-1"), r"odd encoding. Write \[defa.* UTF-8"),
    ],
)
def test_bad_sidecars(write_state, write, tmp_path, text, message):
    write_state()
    write("pilots.toml", text)
    with pytest.raises(InputError, match=message) as caught:
        read_runs(tmp_path)
    assert caught.value.path
    assert caught.value.advice


def test_a_missing_or_odd_sidecar(write_state, write, tmp_path):
    path = write_state()
    with pytest.raises(InputError, match=r"no.toml, `sidecar`: there is no such file. Check"):
        read_runs(path, sidecar=tmp_path / "no.toml")
    with pytest.raises(InputError, match="a sidecar is a TOML file"):
        read_runs(path, sidecar=write("a.yaml", "a: 1"))
    with pytest.raises(
        InputError, match=r"this sidecar is a folder. Give the pilots.toml"
    ) as caught:
        read_runs(path, sidecar=tmp_path)
    assert caught.value.path == str(tmp_path)


def test_a_sidecar_among_the_paths(write_state, write, tmp_path):
    path = write_state()
    beside = write("x/pilots.toml", "[defaults]\ngroup_size = 8\n")
    assert read_runs([path, beside])[0].hyperparameters.group_size == 8
    above = write("pilots.toml", "[defaults]\ngroup_size = 4\n")
    # It would not be heard: beside the folder that was given, not in it.
    with pytest.raises(InputError, match=r"holds settings.*and this file with --sidecar") as caught:
        read_runs([tmp_path / "x", above])
    assert caught.value.path == str(above)
    (run,) = read_runs([tmp_path / "x", above], sidecar=above)
    assert run.hyperparameters.group_size == 4


def test_entries_of_logs_not_asked_for(write_state, write, tmp_path):
    path = write_state()
    write_state("y/trainer_state.json")
    gone = '[[run]]\npath = "gone/trainer_state.json"\n'
    write("pilots.toml", ENTRY + '[[run]]\npath = "y/trainer_state.json"\n' + gone)
    assert [run.id for run in read_runs(path)] == ["x"]
    write("pilots.toml", gone + "group_size = 8\n[defaults]\nmomentum = 0.5\n")
    for read in (read_runs, inspect):
        with pytest.raises(InputError, match=r"row 1, .*'gone/.*\(runs there are: x, y\)"):
            read(tmp_path)
    write("pilots.toml", ENTRY + '[[run]]\nid = "y"\n[[run]]\nid = "z"\n')
    with pytest.raises(InputError, match=r"row 3, key 'id': no run has the id 'z'.*: x, y\)"):
        read_runs(tmp_path)  # also where every run has an entry of its own


def test_a_sidecar_above_the_folder_that_is_given_speaks(write_state, write, tmp_path):
    write_state("runs/x/trainer_state.json")
    write_state("runs/y/trainer_state.json")
    text = '[defaults]\ngroup_size = 8\n[[run]]\npath = "y"\nseed = 1\n'
    sidecar = write("runs/pilots.toml", text)
    (run,) = read_runs(tmp_path / "runs" / "x")
    assert run.hyperparameters.group_size == 8
    assert (sidecar, "settings of the runs (sidecar)", "sidecar") in inspect(
        tmp_path / "runs" / "x"
    ).unread
    # Three folders above is another project.
    write_state("runs/x/a/b/trainer_state.json")
    (run,) = read_runs(tmp_path / "runs" / "x" / "a" / "b")
    assert run.hyperparameters.group_size is None


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("actor_rollout_ref.rollout.n = 8", "group_size"),
        ("num_generations = 8", "group_size"),
        ("beta = 0.04", "kl_coefficient"),
        ('"actor_rollout_ref.actor.optim.lr" = 1e-6', "learning_rate"),
        ("ppo_mini_batch_size = 32", "minibatches_per_refresh"),
    ],
)
def test_a_name_of_a_trainer_is_answered_by_ours(write_state, write, tmp_path, line, ours):
    write_state()
    write("pilots.toml", f"[defaults]\n{line}\n")
    with pytest.raises(InputError, match=rf"Write (?:\w+ \(.*\), )?{ours} \("):
        read_runs(tmp_path)
