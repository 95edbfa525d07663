"""CSV, JSONL and JSON lists by common names or a column map."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from advisor import inspect
from advisor.errors import InputError
from advisor.model import build_cohort
from advisor.runs import PartialSettings, read_runs
from advisor.theory import policy_steps, schedule_factors

ALWAYS_NEEDED = ["learning_rate", "group_size", "prompts_per_step", "parameters"]
KNOWN = {
    "hyperparameters": PartialSettings(learning_rate=1e-6, group_size=8, prompts_per_step=4),
    "parameters": 1e9,
}
K4 = {"minibatches_per_refresh": 2, "epochs_per_refresh": 2}


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_quoted_lines(write, separator):
    head, first = ["step", "reward", "text"], ["1", "0.5", '"two\nlines"']
    rows = [head, first, ["2", "0.75", '"x"'], ["3", "1", ""]]
    path = write("a.csv", "\n".join(separator.join(row) for row in rows) + "\n")
    assert read_runs(path)[0].reward.tolist() == [0.5, 0.75, 1]


@pytest.mark.parametrize("name", ["run.log", "run.txt", "run.out", "run"])
def test_json_lines_that_a_console_was_written_to(write, name):
    rows = [json.dumps({"step": n, "reward": n / 10}) for n in (1, 2, 3)]
    assert read_runs(write(name, "\n".join(rows) + "\n"))[0].reward.tolist() == [0.1, 0.2, 0.3]


ROLLOUTS = [
    row
    for n in (1, 2, 3)
    for row in (
        {"type": "rollout", "grpo_step": n, "reward": n / 10, "mean_reward": n / 10},
        {"type": "train", "grpo_step": n, "optimizer_step": 4 * n, "train_reward": 0.9},
        {"type": "eval", "grpo_step": n, "optimizer_step": 4 * n, "reward": 0.8},
    )
]


REFRESH = {
    "step": "grpo_step",
    "step_unit": "refresh",
    "filter": "type=rollout",
    "eval_filter": "type=eval",
}


def test_steps_that_count_refreshes(write):
    path = write("a.jsonl", ROLLOUTS)
    (run,) = read_runs(path, columns=REFRESH, overrides=K4)
    assert run.step.tolist() == [4, 8, 12]
    assert run.reward.tolist() == [0.1, 0.2, 0.3]
    assert run.eval_step.tolist() == [4, 8, 12]
    assert run.eval_reward.tolist() == [0.8, 0.8, 0.8]
    assert run.logging_steps == 4
    # All steps that a row averages used the rollouts of the policy before the refresh.
    window = run.step[:, None] - np.arange(run.logging_steps)
    used = policy_steps(window, minibatches=2, epochs=2)
    assert used.tolist() == [[n] * 4 for n in (0, 4, 8)]


@pytest.mark.parametrize("start", [0, 1])
def test_rates_by_refresh_stand_at_its_last_step(write, start):
    factors = schedule_factors("linear", 160, warmup_steps=16, planned_steps=160)
    rows = [{"step": n + start, "reward": 0.1, "lr": 1e-4 * factors[4 * n + 3]} for n in range(40)]
    path = write("a.jsonl", rows)
    (run,) = read_runs(path, columns={"step_unit": "refresh"}, overrides=K4)
    assert run.step.tolist() == list(range(4, 161, 4))
    settings = run.hyperparameters
    assert settings.learning_rate == pytest.approx(1e-4, rel=1e-3)
    assert settings.schedule == "linear"
    assert settings.warmup_steps == pytest.approx(16, abs=1)
    assert settings.planned_steps == pytest.approx(160, abs=1)


def test_refreshes_without_a_known_interval(write):
    path = write("a.jsonl", ROLLOUTS)
    (run,) = read_runs(path, columns=REFRESH, overrides={"minibatches_per_refresh": 2})
    assert run.step_unit == "refresh"
    assert list(run.needs) == [*ALWAYS_NEEDED, "epochs_per_refresh"]
    (run,) = read_runs(path, columns=REFRESH)
    assert list(run.needs) == [*ALWAYS_NEEDED, "minibatches_per_refresh", "epochs_per_refresh"]
    with pytest.raises(InputError, match="batches of rollouts") as caught:
        build_cohort([run.with_updates(**KNOWN)], {}, {})
    assert "pilots.toml" in str(caught.value.advice)


def test_a_counter_of_unsure_unit(write):
    rows = [{"iteration": n, "reward": 0.1 * n} for n in (1, 2, 3)]
    path = write("a.jsonl", rows)
    (run,) = read_runs(path)
    assert run.step_unit == "unknown"
    with pytest.raises(InputError, match=r"(?s)key 'iteration'.*step_unit"):
        build_cohort([run.with_updates(**KNOWN)], {}, {})
    one = {"minibatches_per_refresh": 1, "epochs_per_refresh": 1}
    assert read_runs(path, overrides=one)[0].step.tolist() == [1, 2, 3]
    assert read_runs(path, columns={"step_unit": "optimizer"})[0].step.tolist() == [1, 2, 3]
    (run,) = read_runs(path, columns={"step_unit": "refresh"}, overrides=K4)
    assert run.step.tolist() == [4, 8, 12]


@pytest.mark.parametrize("key", ["action", "chosen_action", "observation", "done"])
def test_the_actions_of_an_agent_are_no_training(write, key):
    what = {"tool": 1} if "action" in key else True
    rows = [{"step": n, "reward": -1.0, key: what} for n in (1, 2, 3)]
    path = write("a.jsonl", rows)
    with pytest.raises(InputError, match="steps of an agent in its environment"):
        read_runs(path)
    (run,) = read_runs(path, columns={"reward": "reward"})
    assert run.reward.tolist() == [-1.0] * 3


def test_methods_and_seeds_name_runs_together(write):
    grid = [(method, seed) for method in ("grpo", "rloo") for seed in (0, 1)]
    rows = [
        {"method": method, "seed": seed, "step": step, "reward": 0.1 * step + seed}
        for method, seed in grid
        for step in (1, 2, 3)
    ]
    runs = read_runs(write("a.jsonl", rows))
    assert [run.id for run in runs] == ["grpo/0", "grpo/1", "rloo/0", "rloo/1"]
    assert [run.reward[0] for run in runs] == [0.1, 1.1, 0.1, 1.1]
    alone = [{**row, "run": f"{row['method']}-{row['seed']}"} for row in rows]
    runs = read_runs(write("b.jsonl", alone))
    assert [run.id for run in runs] == ["grpo-0", "grpo-1", "rloo-0", "rloo-1"]


LEVELS = [round(0.2 + 0.005 * n + 0.01 * ((n * 7) % 5), 4) for n in range(1, 61)]


@pytest.mark.parametrize(
    ("header", "metric", "sign"),
    [
        ("run,metric,step,value", "reward", ","),
        ("variable;value;global_step", "train/reward", ";"),
        ("tag\tstep\twall_time\tvalue", "critic/score/mean", "\t"),
    ],
)
def test_a_table_with_a_row_for_each_value(tmp_path, header, metric, sign) -> None:
    lines = [header]
    names = header.split(sign)
    for run in ("a", "b") if "run" in names else ("a",):
        for n, level in enumerate(LEVELS, start=1):
            for name, value in ((metric, level + (run == "b")), ("grad_norm", 0.2)):
                cells = {"run": run, "step": n, "global_step": n, "wall_time": 1e9 + n + value}
                cells |= {"metric": name, "variable": name, "tag": name, "value": value}
                lines.append(sign.join(str(cells[key]) for key in names))
    path = tmp_path / "long.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for place in (path, tmp_path):
        runs = inspect(place).runs
        assert len(runs) == (2 if "run" in names else 1)
        for run, more in zip(runs, (0, 1), strict=False):
            assert run.reward == pytest.approx([level + more for level in LEVELS])
            assert run.step.tolist() == list(range(1, 61))
            assert run.series["gradient_norm"].tolist() == [0.2] * 60
    # One of other metrics is no log.
    path.write_text("\n".join(line for line in lines if metric not in line) + "\n")
    assert not inspect(tmp_path).runs


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_pairs_of_a_step_and_a_reward(tmp_path, ending) -> None:
    runs = [
        {
            "seed": seed,
            "lr": 1e-5,
            "train_reward": [[n, level + seed] for n, level in enumerate(LEVELS, start=1)],
            "eval_reward": [[10 * k, 0.5] for k in range(1, 7)],
        }
        for seed in range(4)
    ]
    text = json.dumps({"runs": runs}) if ending == "json" else "\n".join(map(json.dumps, runs))
    (tmp_path / f"runs.{ending}").write_text(text, encoding="utf-8")
    found = inspect(tmp_path).runs
    assert len(found) == 4
    for seed, run in enumerate(found):
        known = np.isfinite(run.reward)
        assert run.reward[known] == pytest.approx([level + seed for level in LEVELS])
        assert run.step[known].tolist() == list(range(1, 61))
        assert run.eval_step.tolist() == [10, 20, 30, 40, 50, 60]
    # Rewards of the completions of a prompt are pairs of nothing.
    (tmp_path / f"runs.{ending}").write_text(json.dumps({"prompt": "x", "rewards": [0, 1]}))
    assert not inspect(tmp_path).runs


@pytest.mark.parametrize(
    "head", ["# mine\n# 2026\n\nstep;reward\n", "#a, b; c\nstep;reward\n", "# step;reward\n"]
)
def test_remarks_in_a_table(tmp_path, head) -> None:
    rows = "".join(f"{n};{level}\n" for n, level in enumerate(LEVELS, start=1))
    (tmp_path / "a.csv").write_text(head + rows + "# end\n", encoding="utf-8")
    (run,) = inspect(tmp_path).runs
    assert run.reward.tolist() == LEVELS
    assert run.step.tolist() == list(range(1, 61))


def shuffled(kind):
    order = list(range(60))
    if kind == "halves":
        return order[30:] + order[:30]
    random.Random(3).shuffle(order)
    return order


@pytest.mark.parametrize("kind", ["halves", "mixed", "with a row twice"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "trainer_state.json", "verl.log"])
def test_rows_out_of_order_are_sorted(tmp_path, kind, name) -> None:
    order = shuffled(kind) + ([7] if "twice" in kind else [])
    rows = [{"step": n + 1, "reward": LEVELS[n], "learning_rate": 1e-6} for n in order]
    text = "\n".join(map(json.dumps, rows))
    if name.endswith("csv"):
        text = "step,reward\n" + "".join(f"{r['step']},{r['reward']}\n" for r in rows)
    if name.startswith("trainer"):
        text = json.dumps({"log_history": rows})
    if name.startswith("verl"):
        text = "".join(
            f"step:{r['step']} - critic/score/mean:{r['reward']} - actor/lr:1e-06\n" for r in rows
        )
    (tmp_path / name).write_text(text, encoding="utf-8")
    (run,) = inspect(tmp_path).runs
    assert run.reward == pytest.approx(LEVELS)
    assert "rows were out of order and were sorted by step" in run.assumptions
    assert not run.warnings


@pytest.mark.parametrize("where", ["last", "first", "all"])
@pytest.mark.parametrize("key", ["train/global_step", "step", "trainer/global_step"])
def test_a_reward_for_each_micro_batch(tmp_path, where, key) -> None:
    rows = []
    for n, level in enumerate(LEVELS, start=1):
        for part in range(8):
            row = {"_step": len(rows), "_runtime": 1.0, "train/reward": level + 0.01 * (part % 2)}
            if where == "all" or part == {"last": 7, "first": 0}[where]:
                row[key] = n
            rows.append(row)
    (tmp_path / "history.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (run,) = inspect(tmp_path).runs
    assert run.step.tolist() == list(range(1, 61))
    assert run.reward == pytest.approx([level + 0.005 for level in LEVELS])
    assert "480 rows at 60 steps: averaged by step" in run.assumptions


@pytest.mark.filterwarnings("error")
def test_a_counter_near_the_largest_number_is_refused(tmp_path) -> None:
    rows = [f"{step},{n / 10}" for n, step in enumerate(["", 1, "", -1.5e308, "", 1.7e308, ""])]
    (tmp_path / "history.csv").write_text("\n".join(["step,reward", *rows]), encoding="utf-8")
    with pytest.raises(InputError, match="not a whole number below 1e8"):
        read_runs(tmp_path / "history.csv")


def test_folders_behind_links_are_read_once(tmp_path) -> None:
    there, here = tmp_path / "scratch" / "a", tmp_path / "runs"
    there.mkdir(parents=True)
    here.mkdir()
    rows = "".join(f"{n},{level}\n" for n, level in enumerate(LEVELS, start=1))
    (there / "log.csv").write_text("step,reward\n" + rows)
    for name, target in (("a", there), ("again", there), ("loop", here), ("up", tmp_path)):
        (here / name).symlink_to(target)
    (here / "dead").symlink_to(tmp_path / "nowhere")
    (run,) = inspect(here).runs
    assert run.reward.tolist() == LEVELS


def test_a_decimal_comma_is_named(tmp_path) -> None:
    rows = "".join(f"{n};{str(level).replace('.', ',')}\n" for n, level in enumerate(LEVELS))
    (tmp_path / "a.csv").write_text("step;reward\n" + rows)
    (item,) = inspect(tmp_path).unread
    assert "has a decimal comma" in item.reason


def test_one_absurd_reward_is_named_and_not_read(tmp_path) -> None:
    rows = [{"step": n, "reward": level} for n, level in enumerate(LEVELS, start=1)]
    for absurd in (-1e9, 1e30, -4e7):
        rows[32]["reward"] = absurd
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (run,) = inspect(tmp_path).runs
        assert np.isnan(run.reward[32])
        assert np.isfinite(run.reward).sum() == 59
        assert any("the reward of row 33" in line and "absurd" in line for line in run.warnings)
    # Large rewards in all rows, or penalties in a few, are what they are.
    for scale, penalty in ((1e6, 0.0), (1.0, -500.0)):
        rows = [{"step": n, "reward": level * scale} for n, level in enumerate(LEVELS, start=1)]
        rows[32]["reward"] += penalty
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (run,) = inspect(tmp_path).runs
        assert np.isfinite(run.reward).all()


def test_rows_that_a_restart_did_not_reach_again_are_named_apart(tmp_path) -> None:
    steps = [*range(1, 51), *range(26, 41)]
    text = "step,reward\n" + "".join(f"{n},{LEVELS[n - 1]}\n" for n in steps)
    (tmp_path / "a.csv").write_text(text)
    (run,) = inspect(tmp_path).runs
    assert run.step.tolist() == list(range(1, 41))
    named = "steps 26 to 40 were logged twice (a resumed run), and up to 50 before it"
    assert any(line.startswith(named) for line in run.warnings)


@pytest.mark.parametrize(
    "top", ["// lr 1e-6\n// of Tuesday\n", "A run of Tuesday\n\n", "# exported\nA run\n"]
)
def test_a_title_and_remarks_stand_above_a_table(tmp_path, top) -> None:
    rows = "".join(f"{n},{level}\n" for n, level in enumerate(LEVELS, start=1))
    (tmp_path / "a.csv").write_text(f"{top}step,reward\n{rows}")
    (run,) = inspect(tmp_path).runs
    assert run.reward.tolist() == LEVELS


def test_a_row_for_each_value_in_jsonl(tmp_path) -> None:
    cells = [
        {"run_name": name, "tag": tag, "step": n, "value": value}
        for name in ("a", "b")
        for n, level in enumerate(LEVELS, start=1)
        for tag, value in (("train/reward", level), ("train/kl", 0.1))
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, cells)))
    runs = inspect(tmp_path).runs
    assert [run.id for run in runs] == ["a", "b"]
    assert all(run.reward.tolist() == LEVELS for run in runs)
    assert all((run.series["kl"] == 0.1).all() for run in runs)


def test_a_link_that_leads_nowhere_is_named(tmp_path) -> None:
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    (item,) = inspect(tmp_path).unread
    assert item.reason == "a link that leads nowhere"
