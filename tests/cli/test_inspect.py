"""`advisor inspect`: what a user is told about a folder of logs."""

from __future__ import annotations

import io
import json
import os

import pytest
from rich.console import Console
from typer.testing import CliRunner

from advisor import inspect, read_runs
from advisor.cli import app
from advisor.cli.advise import _print_runs, cautioned
from advisor.cli.inspection import runs_table, shared
from advisor.cli.terminal import output
from advisor.errors import NotConvergedError

RUNNER = CliRunner()


def _rows(size, scale=1.0):
    return [{"step": n, "reward": round(scale * n / 50, 4)} for n in range(1, size + 1)]


def _jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def folder(tmp_path):
    """Two runs, a copy of the first, one that can be fitted, and three files that are no logs."""
    _jsonl(tmp_path / "a" / "metrics.jsonl", _rows(20))
    _jsonl(tmp_path / "b" / "metrics.jsonl", _rows(30, 0.5))
    _jsonl(tmp_path / "c" / "metrics.jsonl", _rows(20))
    settings = {
        "learning_rate": 1e-6,
        "group_size": 8,
        "model": "Qwen2.5-7B",
        "prompts_per_step": 4,
    }
    (tmp_path / "b" / "config.json").write_text(json.dumps(settings))
    (tmp_path / "notes.md").write_text("nothing here")
    (tmp_path / "broken.jsonl").write_text('{"step": 1, "reward": 0.1}\nx\n{"step": 2}\n')
    (tmp_path / "empty.csv").write_text("")
    return tmp_path


def _document(*arguments):
    result = RUNNER.invoke(app, ["inspect", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_a_cut_line_and_rewards_that_are_no_numbers_are_named_without_being_asked(tmp_path):
    rows = _rows(20)
    for at in (7, 8, 12):
        rows[at]["reward"] = float("nan")
    path = _jsonl(tmp_path / "cut.jsonl", rows)
    path.write_text(path.read_text() + '{"step": 21, "rew')
    _jsonl(tmp_path / "whole.jsonl", _rows(20, 0.5))
    shown = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output.splitlines()
    assert "  cut: the last line, row 21, is cut: part of no run" in shown
    lost = "3 of 20 rewards are not finite or absurd: left out, the first in row 8 at step 8"
    assert f"  cut: {lost}" in shown
    assert not any(line.startswith("  whole: ") for line in shown)


def test_json_lists_runs_copies_and_unread(folder):
    document = _document(folder)
    assert set(document) == {"runs", "unread"}
    runs = {run["id"]: run for run in document["runs"]}
    assert set(runs) == {"a/metrics", "b/metrics", "c/metrics"}
    assert runs["c/metrics"]["copy_of"] == "a/metrics"
    assert runs["a/metrics"]["copy_of"] is None
    assert runs["a/metrics"]["path"] == str(folder / "a" / "metrics.jsonl")
    fitted = runs["b/metrics"]
    assert fitted["needs"] == []
    assert (fitted["model"], fitted["parameters"]) == ("Qwen2.5-7B", 7e9)
    assert fitted["hyperparameters"]["group_size"] == 8
    assert (fitted["rows"], fitted["first_step"], fitted["last_step"]) == (30, 1, 30)
    assert fitted["reward_first"] == pytest.approx(0.02)
    assert fitted["reward_last"] == pytest.approx(0.29)
    assert fitted["missing"]["kl"] == "not logged"
    unread = {item["path"].rpartition("/")[2]: item["reason"] for item in document["unread"]}
    assert set(unread) == {"notes.md", "broken.jsonl", "empty.csv", "config.json"}
    assert unread["broken.jsonl"].startswith("row 2: this is not valid JSON")
    assert unread["empty.csv"] == "the file is empty"


def test_the_table_says_what_to_add(folder):
    result = RUNNER.invoke(app, ["inspect", str(folder)])
    assert result.exit_code == 0
    assert "3 runs, 1 of them copies" in result.output
    assert "1 of 2 runs can be fitted as they are" in result.output
    assert "copy of a/metrics" in result.output
    assert "1 run: the group size is not known" in result.output
    assert "  # group_size = ..." in result.output
    assert "# reward_ceiling = ..." in result.output
    assert "counts GPU-hours of one GPU, unless --gpus" in result.output
    assert "broken.jsonl: row 2" in result.output
    assert "\x1b" not in result.output


@pytest.mark.parametrize(("share", "is_asked"), [(-0.1, True), (0.1, False), (1.0, True)])
def test_rewards_that_are_no_shares_ask_for_their_ceiling(tmp_path, share, is_asked):
    lines = [json.dumps({"step": n, "reward": share * n}) for n in range(1, 6)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    settings = "learning_rate = 1e-6\ngroup_size = 8\nprompts_per_step = 4\nparameters = 1e9\n"
    (tmp_path / "pilots.toml").write_text(f"[defaults]\n{settings}")
    output = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "1 of 1 run can be fitted" in output
    assert ("are not between 0 and 1, and no ceiling is given" in output) == is_asked


def test_explain_shows_keys_and_arithmetic(folder):
    settings = {
        "learning_rate": 1e-6,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
        "num_generations": 8,
        "steps_per_generation": 8,
        "num_iterations": 2,
        "world_size": 1,
    }
    (folder / "a" / "args.json").write_text(json.dumps(settings))
    result = RUNNER.invoke(app, ["inspect", str(folder / "a"), "--explain"])
    assert result.exit_code == 0
    assert "reward <- reward" in result.output
    run = _document(folder / "a")["runs"][0]
    assert run["refresh_interval"] == 4
    assert run["hyperparameters"]["prompts_per_step"] == 4
    for name in ("prompts_per_step", "minibatches_per_refresh", "epochs_per_refresh"):
        assert "args.json" in run["derivations"][name]
        assert run["derivations"][name].split(" [")[0] in result.output


def test_nothing_found_is_an_error(tmp_path):
    (tmp_path / "notes.md").write_text("nothing here")
    result = RUNNER.invoke(app, ["inspect", str(tmp_path)])
    assert result.exit_code != 0
    assert "no run was found" in str(result.exception)
    missing = RUNNER.invoke(app, ["inspect", str(tmp_path / "gone")])
    assert "there is no such file or folder" in str(missing.exception)
    assert result.output == ""  # the reason once, in the error
    assert str(result.exception).endswith("TensorBoard events or a W&B run.")
    assert len(str(result.exception).split()) <= 45


def test_a_damaged_archive_is_listed(folder):
    (folder / "logs.csv.gz").write_bytes(b"\x1f\x8b\x08\0 not really")
    (folder / "logs.zip").write_bytes(b"PK\x03\x04 not really")
    unread = {item["path"].rpartition("/")[2] for item in _document(folder)["unread"]}
    assert {"logs.csv.gz", "logs.zip"} <= unread


def _write(path, rewards, **cells):
    rows = [{"step": n, "reward": r, "kl": 0.1, **cells} for n, r in enumerate(rewards, 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_long_names_are_cut_where_they_agree_on_a_narrow_terminal():
    names = [f"outputs__model-parallel-lr{rate}__checkpoint-40" for rate in ("1e-6", "2e-5")]
    assert shared(names) == ("outputs__model-parallel-", "__checkpoint-40")
    assert shared(names[:1]) == ("", "")
    assert shared(["a/x", "a/y"]) == ("", "")
    assert shared(["long/common/part", "long/common/part"]) == ("", "")


@pytest.mark.parametrize(("terminal", "width"), [(True, 80), (False, 120)])
def test_a_run_with_a_long_name_is_one_line(tmp_path, terminal, width):
    for name, rate in (("DEBUG-model-parallel-LR2e-5-R32-BS1x8-132738", 2e-5), ("pure-R64", 1e-6)):
        path = tmp_path / "model_parallel_only_outputs" / (name * 3) / "checkpoint-40"
        config = {"learning_rate": rate, "model": "Qwen/Qwen2.5-7B-Instruct", "group_size": 8}
        _jsonl(path / "log.jsonl", _rows(20, 1 if rate > 1e-5 else 2))
        (path / "config.json").write_text(json.dumps(config))
    shown = io.StringIO()
    console = Console(file=shown, width=width, force_terminal=terminal, color_system=None)
    console.print(runs_table(inspect(tmp_path).runs, console))
    lines = [line for line in shown.getvalue().splitlines() if " -> " in line]
    assert len(lines) == 2
    assert max(map(len, shown.getvalue().splitlines())) <= width
    assert "DEBUG" in lines[0]
    assert "2e-05" in lines[0]
    title = " ".join(shown.getvalue().split())
    assert title.count("model Qwen2.5-7B-Instruct") == title.count("all lack prompts") == 1


def test_short_names_are_shown_whole(folder):
    shown = RUNNER.invoke(app, ["inspect", str(folder)]).output
    assert "…" not in shown
    assert "model" in shown.splitlines()[2]  # a column of its own


def test_scripts_and_configs_that_were_used_are_named(tmp_path):
    (tmp_path / "a").mkdir()
    _write(tmp_path / "a" / "log.jsonl", [0.01 * n for n in range(40)])
    (tmp_path / "a" / "run.sh").write_text("trl grpo --num_generations 8 --learning_rate 1e-6\n")
    (tmp_path / "a" / "notes.yaml.bak").write_text("x")
    told = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "Settings from run.sh (1 run)." in told
    assert "1 other file holds no log" in told


def test_why_a_reward_did_not_move_is_told(tmp_path):
    """Groups of equal rewards, and too few rows: another learning rate changes neither."""
    rows = [{"step": n + 1, "reward": 0.9 + 0.01 * (n % 2), "reward_std": 0.0} for n in range(40)]
    log = tmp_path / "log.jsonl"
    for rows_, wanted in (
        (rows, "Nearly all groups have equal rewards"),
        ([row | {"reward_std": 0.2} for row in rows], "three times the largest learning rate"),
        ([row | {"reward_std": 0.2} for row in rows[:6]], "too few to separate a rise from noise"),
    ):
        log.write_text("".join(json.dumps(row) + "\n" for row in rows_))
        assert wanted in RUNNER.invoke(app, ["inspect", str(tmp_path)]).output


def test_a_config_that_was_read_is_not_listed_as_unread(tmp_path):
    _write(tmp_path / "log.jsonl", [0.01 * n for n in range(40)])
    (tmp_path / "meta.json").write_text('{"config": {"num_generations": 8, "learning_rate": 1e-6}}')
    told = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "Settings from meta.json (1 run)." in told
    assert "Not read" not in told
    assert "other file" not in told


def test_flat_pilots_are_told_before_a_fit(tmp_path):
    for seed in range(2):
        _write(tmp_path / f"{seed}.jsonl", [0.5 + 0.02 * (n % 2) + 0.01 * seed for n in range(40)])
    told = RUNNER.invoke(app, ["inspect", str(tmp_path)])
    assert told.exit_code == 3
    assert "In all 2 runs the reward moved by no more than its noise" in told.output
    assert "Run the next pilot at three times the largest learning rate" in told.output
    for seed in range(2):
        _write(tmp_path / f"{seed}.jsonl", [0.5 + 0.01 * seed] * 40)
    told = RUNNER.invoke(app, ["inspect", str(tmp_path)])
    assert "Check the reward function, the parser of answers and the task" in told.output
    shown = told.output.partition("Paste into pilots.toml")[0]
    assert "Nothing can be fitted." in shown
    assert "2 runs can be fitted" not in told.output
    for seed in range(2):
        _write(tmp_path / f"{seed}.jsonl", [0.02 * (seed + 1), *[0.0] * 39])
    told = RUNNER.invoke(app, ["inspect", str(tmp_path)])
    assert "The reward never left its minimum after the first row" in told.output
    assert "a third of the smallest learning rate" in told.output
    _write(tmp_path / "rises.jsonl", [0.01 * n for n in range(40)])
    told = RUNNER.invoke(app, ["inspect", str(tmp_path)])
    assert told.exit_code == 0
    assert "no more than its noise" not in told.output


def test_what_is_asked_for_is_not_called_assumed_nor_what_is_read_missing(tmp_path):
    rows = [{"step": n, "reward": 0.01 * n, "kl": 0.1} for n in range(1, 21)]
    rows[3]["step_time"] = 2.0
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = RUNNER.invoke(
        app, ["inspect", str(tmp_path), "--explain", "--column", "step_unit=refresh"]
    )
    assert "Still needed" in result.output
    assert "minibatches_per_refresh = 1 assumed" not in result.output
    assert "step_time_seconds: 1 of 20 rows (not logged)" in result.output
    missing = next(line for line in result.output.splitlines() if line.startswith("  Missing"))
    assert "step_time_seconds" not in missing


def test_an_adapter_nobody_told_of_is_asked_for_before_the_size_is_known(tmp_path):
    """Its rank too, which no config can do without."""
    _write(tmp_path / "a.jsonl", [0.01 * n for n in range(40)], learning_rate=1e-4)
    asked = '# adapter = ...  # "lora" or "full": this rate or name is typical of LoRA'
    rank = "# adapter_rank = ...  # of a LoRA adapter"
    said = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert asked in said
    assert rank in said
    sidecar = tmp_path / "pilots.toml"
    sidecar.write_text('[defaults]\nparameters = 7e9\nadapter = "lora"\n')
    said = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert asked not in said
    assert rank in said
    sidecar.write_text("[defaults]\nparameters = 1e5\n")
    said = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "group_size" in said
    assert "adapter = " not in said
    assert "adapter_rank" not in said


def test_a_file_behind_a_closed_folder_is_passed_over(tmp_path, monkeypatch):
    """As a link into another user's folder is, on a shared disk."""
    _jsonl(tmp_path / "run.jsonl", _rows(20))
    closed = tmp_path / "closed.jsonl"
    closed.symlink_to(tmp_path / "run.jsonl")
    stat = os.stat

    def denied(path, *arguments, **options):
        if not isinstance(path, int) and os.fspath(path) == os.fspath(closed):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", denied)
    assert [run.id for run in read_runs(tmp_path)] == ["run"]


def test_an_adapter_that_a_name_tells_of_is_asked_for(tmp_path):
    for name in ("full_lr2e-6", "LoRA_lr2e-6"):
        rows = [{**row, "learning_rate": 2e-6} for row in _rows(40)]
        _jsonl(tmp_path / name / "Qwen2.5-1.5B.jsonl", rows)
    lora, full = (run.questions for run in read_runs(tmp_path))
    assert "name is typical of LoRA, but no adapter is logged" in lora["adapter"]
    assert "adapter" not in full


def test_what_lies_there_and_was_not_applied_is_said_where_it_is_asked_for(tmp_path):
    """A config of several logs is the likeliest answer; a sidecar that was read is no stray."""
    for name in "ab":
        _jsonl(tmp_path / f"{name}.jsonl", _rows(20))
    (tmp_path / "config.json").write_text(json.dumps({"learning_rate": 1e-6, "group_size": 8}))
    (tmp_path / "pilots.toml").write_text("[defaults]\nparameters = 7e9\n")
    said = " ".join(RUNNER.invoke(app, ["inspect", str(tmp_path)]).output.split())
    assert said.count("config.json is read for none of 2 logs; put a copy next to each") == 1
    assert "Settings of the runs were read from" in said
    assert "Not read" not in said
    for name in "ab":
        copy = (tmp_path / "config.json").read_text()
        (tmp_path / f"{name}.config.json").write_text(copy)
    (tmp_path / "config.json").unlink()
    again = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "is read for none" not in again
    assert "the learning rate is not known" not in again


def test_a_table_lists_the_columns_that_may_hold_the_reward(tmp_path):
    table = tmp_path / "curves.csv"
    rows = [f"{n},{n / 20},{n / 30},7" for n in range(1, 16)]
    table.write_text("\n".join(["step,ours_reward,theirs_reward,seconds", *rows]))
    (tmp_path / "prices.csv").write_text("step,price\n1,2\n2,3\n")
    said = {path.name: reason for path, reason, _ in inspect(tmp_path).unread}
    which = "; choose with --column reward=COLUMN one of ours_reward, theirs_reward"
    assert said["curves.csv"].endswith(
        f"{which}, or of columns that are runs all: reward=COLUMN,COLUMN"
    )
    assert "--column" not in said["prices.csv"]
    chosen = RUNNER.invoke(app, ["inspect", str(table), "--column", "reward=theirs_reward"])
    assert "0.03 -> 0.50" in chosen.output


def _evaluated(path, last):
    rows = [{"step": 10 * n, "eval_reward": last * n / 9} for n in range(10)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_evaluations_are_a_run_whatever_else_is_read(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    _evaluated(tmp_path / "a" / "held_out.jsonl", 0.9)
    _write(tmp_path / "b" / "train.jsonl", [n / 20 for n in range(20)], kl=0.01)
    alone, among = (
        {run["path"]: run["rows"] for run in _document(folder)["runs"]}
        for folder in (tmp_path / "a", tmp_path)
    )
    held_out = str(tmp_path / "a" / "held_out.jsonl")
    assert alone[held_out] == among[held_out] == 10
    shown = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "held_out: held-out evaluations alone, read as rewards" in shown
    # A fit of the others does not wait for its settings.
    known = {"learning_rate": 1e-5, "group_size": 8, "prompts_per_step": 4, "parameters": 1e8}
    (tmp_path / "b" / "pilots.toml").write_text(
        "[defaults]\n" + "".join(f"{name} = {value}\n" for name, value in known.items())
    )
    assert [run.is_eval_only for run in read_runs(tmp_path)] == [True, False]


def test_what_became_part_of_no_run_is_shown(tmp_path):
    rows = [{"step": n, "reward": n / 9} for n in (1, 2, 3)]
    rows += [{"step": n, "reward": (n * 7 % 11) / 11} for n in range(1, 60)]
    _jsonl(tmp_path / "metrics.jsonl", rows)
    shown = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "metrics: 3 rows from row 1 on: an aborted attempt, part of no run" in shown


def test_advise_says_before_a_refusal_what_is_odd_about_the_runs(tmp_path, capsys):
    for name, start in (("a", -1.5), ("b", 0.4)):
        _write(tmp_path / f"{name}.jsonl", [start + 0.05 * (n * 7 % 5) for n in range(40)])
    with pytest.raises(NotConvergedError), cautioned(read_runs(tmp_path), output()):
        raise NotConvergedError("no")
    shown = capsys.readouterr().out
    assert shown.count("Caution: Runs that count as one model on one task start at -1.") == 1
    assert shown.rstrip().endswith("[a, b]")


def test_it_says_where_advise_would_refuse_runs_that_lack_nothing(tmp_path):
    for name, scale in (("shares", 1.0), ("percent", 100.0)):
        _jsonl(tmp_path / name / "metrics.jsonl", _rows(40, scale))
    (tmp_path / "pilots.toml").write_text(
        "[defaults]\nlearning_rate = 1e-5\ngroup_size = 8\nprompts_per_step = 4\nparameters = 1e8\n"
    )
    shown = RUNNER.invoke(app, ["inspect", str(tmp_path)]).output
    assert "2 of 2 runs can be fitted" in shown
    assert "advisor advise would refuse them" in shown
    assert "run 'shares/metrics' has rewards up to 0.8" in " ".join(shown.split())
    _jsonl(tmp_path / "percent" / "metrics.jsonl", _rows(40, 0.5))
    assert "would refuse" not in RUNNER.invoke(app, ["inspect", str(tmp_path)]).output


def test_quiet_advice_names_the_runs_that_it_leaves_out(tmp_path, capsys):
    for name, rewards in (("good", [0.1, 0.2, 0.3] * 5), ("lost", [float("nan")] * 15)):
        rows = [{"step": step, "reward": own} for step, own in enumerate(rewards, 1)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    _print_runs(read_runs(tmp_path), output(stderr=True, quiet=True))
    assert "lost.jsonl" in capsys.readouterr().err
    (tmp_path / "lost.jsonl").unlink()
    _print_runs(read_runs(tmp_path), output(stderr=True, quiet=True))
    assert capsys.readouterr().err == ""
