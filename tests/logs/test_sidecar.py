"""pilots.toml: matching, precedence, contradictions, errors."""

from __future__ import annotations

import pytest

from advisor.diagnosis import Collapse, diagnose, find_any_fall
from advisor.errors import InputError
from advisor.runs import inspect, read_runs

ENTRY = '[[run]]\npath = "x/trainer_state.json"\n'


def settings(run):
    return run.hyperparameters.model_dump(exclude_none=True)


def test_entry_defaults_and_bounds(write_state, write, tmp_path):
    write_state()
    write(
        "pilots.toml",
        '[defaults]\ntask = "sort"\nmomentum = 0.9\ngroup_size = 4\nreward_floor = 0\n'
        "reward_ceiling = 1.0\n"
        + ENTRY
        + 'model = "tiny-s"\nparameters = 26894\nlearning_rate = 3e-4\ngroup_size = 8\n'
        "minibatches_per_refresh = 2\nepochs_per_refresh = 1\nseed = 0\n",
    )
    (run,) = read_runs(tmp_path)
    assert (run.model, run.task, run.parameters) == ("tiny-s", "sort", 26894)
    assert (run.reward_floor, run.reward_ceiling) == (0, 1)
    assert run.hyperparameters.group_size == 8
    assert run.hyperparameters.momentum == 0.9
    assert run.hyperparameters.refresh_interval == 2
    assert run.warnings == ()


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
    "path", ["x/trainer_state.json", "./x/trainer_state.json", "x", "x/*.json", "*/trainer*"]
)
def test_ways_to_name_a_log(write_state, write, tmp_path, path):
    write_state()
    write("pilots.toml", f'[[run]]\npath = "{path}"\ngroup_size = 8\n')
    assert read_runs(tmp_path)[0].hyperparameters.group_size == 8
    for given in ("x", "x/trainer_state.json"):
        (run,) = read_runs(tmp_path / given)
        assert run.hyperparameters.group_size == 8  # also above what is given


def test_by_id(write_state, write, tmp_path):
    write_state()
    write("pilots.toml", '[[run]]\nid = "x"\ngroup_size = 8\n')
    assert read_runs(tmp_path)[0].hyperparameters.group_size == 8


def test_an_exact_entry_comes_before_a_glob_and_that_before_defaults(write_state, write, tmp_path):
    write_state()
    write_state("y/trainer_state.json")
    write(
        "pilots.toml",
        ENTRY + "group_size = 8\n[[run]]\npath = '*/trainer_state.json'\ngroup_size = 4\n"
        "prompts_per_step = 2\n[defaults]\ngroup_size = 2\nmomentum = 0.5\n",
    )
    x, y = read_runs(tmp_path)
    assert (x.hyperparameters.group_size, y.hyperparameters.group_size) == (8, 4)
    assert x.hyperparameters.prompts_per_step == y.hyperparameters.prompts_per_step == 2
    assert y.hyperparameters.momentum == 0.5


def test_overrides_come_first(write_state, write, tmp_path):
    write_state()
    write("pilots.toml", ENTRY + 'group_size = 8\ntask = "sort"\nschedule = "cosine"\n')
    (run,) = read_runs(tmp_path, overrides={"group_size": "16", "task": None})
    assert run.hyperparameters.group_size == 16
    assert run.task == "sort"
    assert run.hyperparameters.schedule == "cosine"
    (warning,) = run.warnings  # the log shows a constant rate
    assert "schedule = cosine" in warning
    assert "constant" in warning


def test_an_explicit_sidecar_anywhere(write_state, write, tmp_path):
    write_state("logs/x/trainer_state.json")
    near = write("notes/settings.toml", ENTRY + "group_size = 8\n")
    (run,) = read_runs(tmp_path / "logs", sidecar=near)
    assert run.hyperparameters.group_size == 8
    climbing = '[[run]]\npath = "../logs/x/trainer_state.json"\ngroup_size = 4\n'
    other = write("notes/other.toml", climbing)
    assert read_runs(tmp_path / "logs", sidecar=other)[0].hyperparameters.group_size == 4


def test_the_nearest_sidecar_speaks(write_state, write, tmp_path):
    write_state("a/x/trainer_state.json")
    write("pilots.toml", "[defaults]\ngroup_size = 2\n")
    write("a/pilots.toml", "[defaults]\ngroup_size = 4\n")
    assert read_runs(tmp_path)[0].hyperparameters.group_size == 4


def test_size_from_the_name(write_state):
    path = write_state()
    (run,) = read_runs(path, overrides={"model": "Qwen/Qwen2.5-7B-Instruct"})
    assert run.parameters == 7e9
    assert any("Qwen2.5-7B" in line for line in run.assumptions)


def test_a_rate_above_an_unfinished_warm_up_is_no_contradiction(write, make_rows, make_state):
    rows = make_rows(list(range(1, 21)))
    for row in rows:
        row["learning_rate"] = row["step"] * 1e-6
    path = write("x/trainer_state.json", make_state(rows))
    assert settings(read_runs(path, overrides={"learning_rate": 1e-4})[0])["learning_rate"] == 1e-4
    with pytest.raises(InputError, match="learning_rate"):
        read_runs(path, overrides={"learning_rate": 1e-5})


def test_a_close_rate_is_taken(write_state):
    (run,) = read_runs(write_state(), overrides={"learning_rate": 3.1e-4})
    assert run.hyperparameters.learning_rate == 3.1e-4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ENTRY + "learning_rate = 1e-3\n",
            r"learning_rate'.*says 0.001, .*peaks at 0.0003.*remove",
        ),
        (ENTRY + "logging_steps = 5\n", r"key 'logging_steps'.*says 5, but the log says 1"),
        (ENTRY + ENTRY, r"row 2, key 'path': entries 1 and 2 both name the run 'x'.*Keep one"),
        (ENTRY + '[[run]]\nid = "x"\n', r"row 2, key 'id': entries 1 and 2 both name.*Keep one"),
        (ENTRY + "refresh_interval = 2\n", r"key 'refresh_interval'.*epochs_per_refresh, "),
        (ENTRY + "learning_rte = 1e-3\n", r"row 1, key 'learning_rte'.*'learning_rate'"),
        ("[defaults]\ngroup_sise = 4\n", r"key 'group_sise'.*The nearest is 'group_size'"),
        ("[default]\ngroup_size = 4\n", r"key 'default'.*The nearest is 'defaults'"),
        ("group_size = 4\n", r"pilots.toml, key 'group_size'"),
        ("[[run]]\ngroup_size = 4\n", r"row 1, key 'path': the entry names no run"),
        (ENTRY + "group_size = 0\n", r"row 1, key 'group_size': 0 is not allowed.*greater"),
        (ENTRY + "group_size = true\n", r"key 'group_size': True is not allowed"),
        (ENTRY + "learning_rate = nan\n", r"key 'learning_rate': nan is not allowed"),
        (ENTRY + 'schedule = "wsd"\n', r"'wsd' is not allowed: should be 'constant'"),
        (ENTRY + "parameters = -1\n", r"key 'parameters': -1 is not allowed"),
        (ENTRY + 'parameters = "many"\n', r"key 'parameters': 'many' is not allowed"),
        (ENTRY + "seed = 0.5\n", r"key 'seed': 0.5 is not allowed"),
        (ENTRY + "reward_floor = inf\n", r"key 'reward_floor': inf is not allowed"),
        (ENTRY + "reward_floor = 1\nreward_ceiling = 0\n", r"'reward_ceiling'.*not below"),
        (ENTRY + "collapsed = 1\n", r"key 'collapsed': 1 is not allowed: should be true or false"),
        (ENTRY + "collapsed_at = 0\n", r"key 'collapsed_at': 0 is not allowed"),
        (ENTRY + "collapsed = false\ncollapsed_at = 3\n", r"'collapsed_at'.*Keep one of them"),
        (ENTRY + 'model = "mystery"\n', r"row 1, key 'model': the size.*Add 'parameters"),
        (ENTRY + "model = 7\n", r"row 1, key 'model': 7 is not allowed: should be a valid string"),
        ("[[run]]\npath = 7\n", r"row 1, key 'path': 7 is not text"),
        ('[[run]]\npath = "a\\u0000b"\n', r"row 1, key 'path': .* is not text"),
        ('[defaults]\npath = "x"\n', r"key 'path': this key belongs to one run"),
        ("[run]\npath = 'x'\n", r"key 'run'.*two brackets"),
        ("run = [1]\n", r"row 1, key 'run'.*\[\[run\]\]"),
        (ENTRY + "columns = 3\n", r"key 'columns': 3 is no column map"),
        (ENTRY + "columns = {rewards = 'a'}\n", r"key 'columns.rewards'.*The nearest is 'reward'"),
        ("[columns]\nreward = 3\n", r"key 'columns.reward': the column map needs"),
        ("[columns]\nstep_unit = 'epoch'\n", r"key 'columns.step_unit'.*'refresh'"),
        ("[columns]\nfilter = 'rollout'\n", r"key 'columns.filter'.*key=value"),
        ("[columns]\nreward = 'acc'\n", r"from 'acc', which the log lacks. Keys seen"),
        ("[defaults\n", r"pilots.toml, row 1: this is not valid TOML"),
        ("[defaults]\ntask = sort\n", r"pilots.toml, row 2: this is not valid TOML.*quotes"),
        ("", r"pilots.toml: the file is empty. Write \[defaults\]"),
        (b"\0\1", r"pilots.toml: the file is binary.*Write \[defaults\]"),
        ("[defaults]\ntask = 'ä'\n".encode("latin-1"), r"odd encoding. Write \[defa.* UTF-8"),
        ('[defaults]\nmodel = "mystery"\n', r"pilots.toml, key 'model': the size.*Add 'param"),
        ("[defaults]\nlearning_rate = 1e-3\n", r"'learning_rate'.*says 0.001, .* 0.0003.*remove"),
        ('[[run]]\npath = "z/trainer_state.json"\n', r"row 1, key 'path': no log is 'z.*'x/tr"),
        ('[[run]]\npath = "z*"\n', r"row 1, key 'path': no log is 'z\*'"),
        ('[[run]]\nid = "xy"\n', r"row 1, key 'id': no run has the id 'xy'"),
    ],
)
def test_bad_sidecars(write_state, write, tmp_path, text, message):
    write_state()
    write("pilots.toml", text)
    with pytest.raises(InputError, match=message) as caught:
        read_runs(tmp_path)
    assert caught.value.path
    assert caught.value.advice


def test_a_path_that_is_the_name_of_a_run_is_its_id(write, tmp_path):
    rows = [f"{run},{step},0.{step}" for run in ("a", "b") for step in range(1, 6)]
    write("sweep.csv", "\n".join(["run,step,reward", *rows]))
    write("pilots.toml", '[[run]]\npath = "b"\n')
    with pytest.raises(InputError, match=r"no log is 'b'\. Write id = 'b', for it is"):
        read_runs(tmp_path)


def test_bad_overrides(write_state):
    path = write_state()
    with pytest.raises(InputError, match=r"key 'lr'.*Write learning_rate"):
        read_runs(path, overrides={"lr": 1e-3})
    with pytest.raises(InputError, match=r"the flag or override says 0\.01") as caught:
        read_runs(path, overrides={"learning_rate": 1e-2})
    assert caught.value.path == str(path)
    with pytest.raises(InputError, match=r"key 'columns.rewrd'.*The nearest is 'reward'"):
        read_runs(path, columns={"rewrd": "a"})


def test_a_table_of_settings_is_refused(write_state, write, tmp_path):
    write_state()
    write("pilots.csv", "path,group_size\nx,8\n")
    for both in (False, True):
        if both:
            write("pilots.toml", "")
        with pytest.raises(InputError, match=r"pilots\.csv: a sidecar is a TOML file\. Write"):
            read_runs(tmp_path)


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


def test_checkpoints_hear_the_entry_of_any_of_them(write_state, write, tmp_path):
    write_state("x/checkpoint-10/trainer_state.json", size=10)
    write_state("x/checkpoint-20/trainer_state.json", size=20)
    entry = '[[run]]\npath = "x/checkpoint-10/trainer_state.json"\ngroup_size = 8\n'
    write("pilots.toml", entry)
    (run,) = read_runs(tmp_path)
    assert run.hyperparameters.group_size == 8


@pytest.mark.parametrize("path", ["lr[1e-5]/trainer_state.json", "lr[1e-5]", "lr[[]1e-5]"])
def test_folder_with_brackets_can_be_named(write_state, write, tmp_path, path):
    write_state("lr[1e-5]/trainer_state.json")
    write("pilots.toml", f'[[run]]\npath = "{path}"\ngroup_size = 8\n')
    assert read_runs(tmp_path)[0].hyperparameters.group_size == 8


def test_name_with_brackets_comes_before_a_glob(write_state, write, tmp_path):
    write_state("[v2]run/trainer_state.json")
    write_state("a-run/trainer_state.json")
    write(
        "pilots.toml",
        '[[run]]\npath = "*run"\ngroup_size = 4\n[[run]]\npath = "[v2]run"\ngroup_size = 8\n',
    )
    found = {run.id: run.hyperparameters.group_size for run in read_runs(tmp_path)}
    assert found["[v2]run"] == 8


@pytest.mark.parametrize("value", ["1e400", "inf", "nan"])
def test_setting_that_is_not_finite_is_refused(write_state, write, tmp_path, value):
    write_state()
    write("pilots.toml", f"[defaults]\nkl_coefficient = {value}\n")
    with pytest.raises(InputError, match="kl_coefficient"):
        read_runs(tmp_path)


def test_group_that_nobody_samples_is_refused(write_state, write, tmp_path):
    write_state()
    write("pilots.toml", "[defaults]\ngroup_size = 18446744073709551616\n")
    with pytest.raises(InputError, match="group_size"):
        read_runs(tmp_path)


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


def test_a_sidecar_next_to_a_link_speaks(write_state, write, tmp_path):
    stored = write_state("store/long/away/one/trainer_state.json")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "trainer_state.json").symlink_to(stored)
    write("runs/pilots.toml", '[[run]]\npath = "trainer_state.json"\ngroup_size = 8\n')
    for given in (tmp_path / "runs", tmp_path / "runs" / "trainer_state.json"):
        (run,) = read_runs(given)
        assert run.hyperparameters.group_size == 8
    # What lies next to the stored log counts where nothing lies next to the link.
    (tmp_path / "runs" / "pilots.toml").rename(tmp_path / "store/long/away/one/pilots.toml")
    (run,) = read_runs(tmp_path / "runs")
    assert run.hyperparameters.group_size == 8


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


def test_the_model_stands_in_a_folder_above(write_state, tmp_path):
    write_state("Qwen2.5-1.5B-grpo/seeds/one/trainer_state.json")
    (run,) = read_runs(tmp_path / "Qwen2.5-1.5B-grpo" / "seeds" / "one")
    assert (run.model, run.parameters) == ("Qwen2.5-1.5B", 1.5e9)
    assert any("read off the name 'Qwen2.5-1.5B-grpo'" in line for line in run.assumptions)
    write_state("Qwen2.5-1.5B-to-Qwen2.5-7B/one/trainer_state.json")
    (run,) = read_runs(tmp_path / "Qwen2.5-1.5B-to-Qwen2.5-7B" / "one")
    assert run.model is None
