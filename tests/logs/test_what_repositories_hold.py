"""Repositories as students leave them: guides, evaluations, own loops and notebooks beside runs."""

from __future__ import annotations

import csv
import json

import pytest

from advisor import inspect, read_runs
from advisor.errors import InputError

STEPS = range(1, 31)


def rewards(printed="[Step {n}] loss=0.1000 reward={reward:.4f}"):
    return [printed.format(n=n, reward=0.2 + 0.01 * n + 0.002 * (n % 3)) for n in STEPS]


def notebook(folder, *cells, lines=()):
    """A notebook of code cells, of which the last one printed some lines."""
    shown = [{"output_type": "stream", "name": "stdout", "text": "\n".join(lines)}]
    written = [{"cell_type": "code", "source": source, "outputs": []} for source in cells]
    written[-1]["outputs"] = shown
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.ipynb").write_text(json.dumps({"cells": written}))
    return folder


def no_runs(folder):
    with pytest.raises(InputError):
        read_runs(folder)


@pytest.mark.parametrize(("rows", "is_run"), [(5, False), (30, True)])
def test_what_a_guide_promises_is_no_run(tmp_path, rows, is_run):
    told = [f"Prose about the reward of a step, line {n}." for n in range(20)]
    (tmp_path / "GUIDE.md").write_text("\n".join([*told, *rewards()[:rows]]))
    if is_run:
        assert len(read_runs(tmp_path)) == 1
    else:
        no_runs(tmp_path)


def test_answers_of_a_held_out_set_are_no_run(tmp_path):
    answers = [{"idx": n, "answer": str(n), "reward": n % 2, "tokens": 90 + n} for n in range(40)]
    document = {"results": [{"model": "Qwen/Qwen3-8B", "per_problem": answers}]}
    (tmp_path / "heldout.json").write_text(json.dumps(document))
    episodes = [{"episode_id": f"a{n}", "domain": "x", "reward": 0.1 * (n % 7)} for n in range(40)]
    (tmp_path / "results.json").write_text(json.dumps({"records": episodes}))
    no_runs(tmp_path)


def test_a_reward_for_answers_is_no_answer(tmp_path):
    rows = [{"step": n, "reward": 0.01 * n, "answer": 0.02 * n} for n in STEPS]
    (tmp_path / "log.json").write_text(json.dumps({"history": rows}))
    assert len(read_runs(tmp_path)) == 1


def test_policies_that_are_compared_are_no_run(tmp_path):
    lines = ["policy,episodes,avg_reward", "naive,10,-8.0", "trained,10,1.1", "careful,10,2.5"]
    (tmp_path / "comparison.csv").write_text("\n".join(lines))
    no_runs(tmp_path)


def test_an_agent_without_words_is_no_language_model(tmp_path):
    rows = [{"step": n, "rollout/ep_rew_mean": 1.0 * n, "eval/mean_reward": 2.0 * n} for n in STEPS]
    (tmp_path / "progress.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match="agent in its environment"):
        read_runs(tmp_path)


def test_actions_of_an_agent_in_a_notebook_are_no_run(tmp_path):
    lines = rewards("  Step {n}: ask_for_documents   | reward={reward:+.3f} | day={n}")
    no_runs(notebook(tmp_path, "play()", lines=lines))


def test_a_length_is_no_held_out_reward(tmp_path):
    rows = [
        {"rollout/raw_reward": 0.01 * n, "rollout/step": n, "train/step": n, "train/loss": 0.1}
        | {"eval/aime": 0.3, "eval/aime-response_len": 900.0, "eval/mean_ep_length": 12.0}
        for n in STEPS
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (run,) = read_runs(tmp_path)
    assert run.keys_read["eval_reward"] == "eval/aime"


def test_a_summary_under_the_columns_of_the_steps_is_left_out(tmp_path):
    with (tmp_path / "metrics.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["step", "loss", "learning_rate", "reward", "kl"])
        table.writerows([n, 0.1, 5e-6, 0.01 * n, 0.001] for n in STEPS)
        table.writerow([30, 4760.2, 0.021])
    (run,) = read_runs(tmp_path)
    assert run.hyperparameters.learning_rate == 5e-6
    assert any("is cut" in warning for warning in run.warnings)


def test_fewer_planned_steps_than_were_made_are_not_those_of_the_run(tmp_path):
    (tmp_path / "train.log").write_text("\n".join(["chain: steps=4", *rewards()]))
    (run,) = read_runs(tmp_path)
    assert run.hyperparameters.planned_steps is None
    assert any("planned_steps 4 was left out" in warning for warning in run.warnings)


def test_a_class_is_no_name_of_a_model(tmp_path):
    (tmp_path / "train.log").write_text("\n".join(["ready (model=Qwen2ForCausalLM)", *rewards()]))
    (run,) = read_runs(tmp_path)
    assert run.model is None


@pytest.mark.parametrize(("name", "size"), [("run_Qwen1_5b_tools", None), ("run_Qwen3_4b", 4e9)])
def test_the_digit_behind_a_point_is_no_size(tmp_path, name, size):
    (tmp_path / f"{name}.log").write_text("\n".join(rewards()))
    (run,) = read_runs(tmp_path)
    assert run.parameters == size


def test_a_reward_of_selected_completions_is_one(tmp_path):
    rows = [
        {"reward/selected_mean": 0.01 * n, "reward/selected_std": 0.4, "actor/lr": 1e-6}
        for n in STEPS
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (run,) = read_runs(tmp_path)
    assert run.keys_read["reward"] == "reward/selected_mean"


LONG = "[Step {n}] " + "completions/some_long_name=0.0000 " * 20 + "reward={reward:.4f}"
TRAINER = "args = GRPOConfig(learning_rate=cfg.lr, num_generations=cfg.groups, beta=0.1)"


def test_a_notebook_may_print_long_lines_and_keep_its_settings_in_a_class(tmp_path):
    fields = "class Settings:\n    lr: float = 5e-7\n    groups: int = 4\ncfg = Settings()"
    (run,) = read_runs(notebook(tmp_path, fields, TRAINER, lines=rewards(LONG)))
    assert run.hyperparameters.learning_rate == 5e-7
    assert run.hyperparameters.group_size == 4


@pytest.mark.parametrize("other", ["cfg.lr = 1e-5", "cfg = Settings(lr=1e-5)"])
def test_a_field_with_two_values_is_not_known(tmp_path, other):
    fields = "class Settings:\n    lr: float = 5e-7\n    groups: int = 4\ncfg = Settings()"
    (run,) = read_runs(notebook(tmp_path, fields, other, TRAINER, lines=rewards()))
    assert run.hyperparameters.learning_rate is None
    assert run.hyperparameters.group_size == 4


def test_the_code_of_an_own_loop_tells_its_settings(tmp_path):
    code = "G = 4\nBETA = 0.04\nopt = torch.optim.AdamW(model.parameters(), lr=2e-5)"
    (run,) = read_runs(notebook(tmp_path, code, "train()", lines=rewards()))
    known = run.hyperparameters
    assert (known.learning_rate, known.group_size, known.kl_coefficient) == (2e-5, 4, 0.04)


def test_two_optimizers_leave_the_learning_rate_open(tmp_path):
    code = "one = AdamW(a, lr=2e-5)\ntwo = AdamW(b, lr=1e-4)"
    (run,) = read_runs(notebook(tmp_path, code, "train()", lines=rewards()))
    assert run.hyperparameters.learning_rate is None


def test_a_model_may_be_loaded_by_its_own_class(tmp_path):
    code = 'm = Qwen2VLForConditionalGeneration.from_pretrained("Qwen/Qwen2-VL-2B-Instruct")'
    (run,) = inspect(notebook(tmp_path, code, "train()", lines=rewards())).runs
    assert (run.model, run.parameters) == ("Qwen/Qwen2-VL-2B-Instruct", 2e9)


def test_the_version_of_a_kept_model_is_no_part_of_its_name(tmp_path):
    kept = "/root/.cache/kagglehub/models/deepseek-ai/transformers/r1-distill-qwen-1.5b"
    code = f'm = AutoModelForCausalLM.from_pretrained("{kept}/1")'
    (run,) = read_runs(notebook(tmp_path, code, "train()", lines=rewards()))
    assert (run.model, run.parameters) == (kept, 1.5e9)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "rows.csv",
            "seed,step,metric,val\n" + "".join(f"a,{n},mean_score,0.{n}\n" for n in range(9)),
        ),
        ("rows.json", json.dumps([{"step": n, "rewards/mean_score": n / 9} for n in range(9)])),
    ],
)
def test_a_table_without_a_known_reward_says_which_column_may_be_it(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"--column reward=COLUMN one of .*mean_score"):
        read_runs(tmp_path)


def test_a_file_of_the_system_is_refused_and_not_waited_for():
    with pytest.raises(InputError, match="a file of the system is no log"):
        read_runs("/proc/self/status")
