"""Files as other people leave them: what is a run, and what its own lines say of its settings."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor import diagnose, inspect, read_runs
from advisor.errors import InputError

PEFT = "trainable params: {own:,} || all params: {whole:,} || trainable%: {percent:.4f}"


def own_loop(folder, *head, name="train.log"):
    rows = [
        f"step {n}/40 | loss: 0.1 | reward: {0.2 + 0.01 * n:.3f} | KL: 0.01" for n in range(1, 41)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join([*head, *rows]) + "\n")
    return folder


def trl(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps({"log_history": rows, "max_steps": 40}))
    return folder


@pytest.mark.parametrize(("own", "adapter"), [(16_056_320, "lora"), (9_999_999_999, None)])
def test_the_share_that_is_trained_tells_of_an_adapter(tmp_path, own, adapter):
    line = PEFT.format(own=own, whole=10_308_833_792, percent=100 * own / 10_308_833_792)
    (run,) = read_runs(own_loop(tmp_path, line))
    assert run.hyperparameters.adapter == adapter


def test_a_command_line_that_a_loop_prints_holds_its_settings(tmp_path):
    flags = "--learning_rate 5e-06 --num-groups 4 --group_size 8 --lora_rank 8"
    line = f"  cmd: python train/grpo.py {flags}"
    (run,) = read_runs(own_loop(tmp_path, line))
    known = run.hyperparameters
    assert (known.learning_rate, known.group_size, known.prompts_per_step) == (5e-6, 8, 4)
    assert (known.adapter, known.adapter_rank) == ("lora", 8)


def test_a_logged_kl_asks_for_its_coefficient_whatever_the_trainer(tmp_path):
    (run,) = read_runs(own_loop(tmp_path))
    assert "kl_coefficient" in run.questions
    (told,) = read_runs(own_loop(tmp_path / "told", "kl_coef: 0.05"))
    assert "kl_coefficient" not in told.questions


@pytest.mark.parametrize("every", [1, 8])
def test_rows_without_a_reward_tell_how_long_rollouts_serve(tmp_path, every):
    rows = [
        {"step": n, "loss": 0.1, "learning_rate": 1e-6}
        | ({"reward": 0.2 + 0.01 * n} if (n - 1) % every == 0 else {})
        for n in range(1, 41)
    ]
    (run,) = read_runs(trl(tmp_path / "all", rows))
    assert run.hyperparameters.minibatches_per_refresh == (None if every == 1 else every)
    # Where the rows between were never logged nothing is told.
    (sparse,) = read_runs(trl(tmp_path / "sparse", [row for row in rows if "reward" in row]))
    assert sparse.hyperparameters.minibatches_per_refresh is None


@pytest.mark.parametrize(("offset", "steps"), [(0, 40), (1, 40), (0, 20), (1, 20)])
def test_a_linear_rate_is_the_round_one_that_was_set(tmp_path, offset, steps):
    rate = 5e-6 * (1 - (np.arange(1, 41) - offset) / 40)
    rows = [
        {"step": n, "reward": 0.2 + 0.01 * n, "learning_rate": float(f"{rate[n - 1]:.4g}")}
        for n in range(1, steps + 1)
    ]
    (run,) = read_runs(trl(tmp_path, rows))
    assert run.hyperparameters.learning_rate == pytest.approx(5e-6, rel=1e-3)
    assert run.hyperparameters.planned_steps == 40


def test_objects_in_lines_are_read_whatever_the_ending(tmp_path):
    lines = [json.dumps({"step": n, "reward": 0.1 * n, "loss": 0.1}) for n in range(1, 9)]
    (tmp_path / "training_log.json").write_text("\n".join(lines))
    (run,) = read_runs(tmp_path)
    assert run.reward.size == 8


def test_completions_and_what_was_written_are_no_runs(tmp_path):
    samples = [
        {"prompt": f"What is {n}?", "generated_text": "It is so.", "reward": float(n % 2)}
        for n in range(40)
    ]
    (tmp_path / "iter_1.jsonl").write_text("\n".join(map(json.dumps, samples)))
    with pytest.raises(InputError, match="each row is a completion, not a step"):
        read_runs(tmp_path)
    # With a loss beside it a text is that of a step.
    steps = [one | {"loss": 0.1} for one in samples]
    (tmp_path / "iter_1.jsonl").write_text("\n".join(map(json.dumps, steps)))
    assert len(read_runs(tmp_path)) == 1


@pytest.mark.parametrize(
    ("name", "is_run"),
    [
        ("baseline_real.json", False),
        ("evals/before.json", False),
        ("baseline_metrics.json", True),
        ("results/reward.json", True),
    ],
)
def test_rewards_of_tasks_in_an_evaluation_are_no_run(tmp_path, name, is_run):
    rows = [{"task": f"t{n}", "reward": 0.1 * n} for n in range(12)]
    file = tmp_path / "out" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows))
    assert bool(inspect(tmp_path).runs) is is_run
    # Steps, or what only training measures, make it one.
    for more in ("step", "loss"):
        file.write_text(json.dumps([row | {more: n} for n, row in enumerate(rows, 1)]))
        assert len(read_runs(tmp_path)) == 1


def test_what_was_written_does_not_take_the_settings_of_the_run(tmp_path):
    folder = own_loop(tmp_path, name="train.log")
    own_loop(tmp_path, name="generations.log")
    (folder / "args.json").write_text(json.dumps({"learning_rate": 5e-6, "group_size": 8}))
    (run,) = inspect(tmp_path).runs
    assert run.hyperparameters.group_size == 8


@pytest.mark.parametrize("name", ["grpo.yaml", "config.yaml", "run_grpo_small.yml"])
def test_a_config_named_after_the_method_is_read(tmp_path, name):
    folder = own_loop(tmp_path)
    (folder / name).write_text(
        "rollout:\n  group_size: 8\ntrain:\n  prompts_per_step: 16\n  lr: 1e-5\n"
    )
    (run,) = read_runs(folder)
    assert run.hyperparameters.prompts_per_step == 16


@pytest.mark.parametrize(
    ("name", "missing"),
    [("reward", None), ("loss", None), ("loss", "N/A"), ("grad_norm", None), ("grad_norm", "None")],
)
def test_a_series_that_stops_is_said_to(tmp_path, name, missing):
    rng = np.random.default_rng(1)
    rows = [
        {"step": n, "reward": 0.5 + 0.05 * rng.normal(), "loss": 0.1, "grad_norm": 0.3}
        for n in range(1, 81)
    ]
    (tmp_path / "whole.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for row in rows[60:]:
        row[name] = missing
    (tmp_path / "stops.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (whole,), (stops,) = (read_runs(tmp_path / f"{one}.jsonl") for one in ("whole", "stops"))
    ours = "gradient_norm" if name == "grad_norm" else name
    assert stops.not_finite[ours].tolist() == list(range(61, 81))
    assert not whole.not_finite
    card = diagnose(stops).card("dynamical_instability")
    assert card.kind == "not_finite"
    assert "20 of 80 rows from step 61 on" in card.headline


def test_a_series_that_is_logged_now_and_then_did_not_stop(tmp_path):
    rows = [
        {"step": n, "reward": 0.5, "loss": 0.1} | ({"kl": 0.01} if n % 10 == 1 else {})
        for n in range(1, 81)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (run,) = read_runs(tmp_path)
    assert not run.not_finite
