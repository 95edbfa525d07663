"""Console logs of verl: one line per step, blocks, printed configurations, cut lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.errors import InputError

VERL = LogFormat("verl console")

TAG = "\x1b[36m(TaskRunner pid=4242)\x1b[0m "
MAPPED = {"learning_rate": "actor/lr", "gradient_norm": "actor/grad_norm"}
"""Keys whose cells are kept here whether or not some framework asks for them."""


def metrics(step: int, reward: float, **more: object) -> str:
    pairs = {
        "actor/entropy": "0.115",
        "actor/pg_loss": "np.float64(-0.01)",
        "actor/lr": "np.float64(1e-06)",
        "training/global_step": step,
        "critic/score/mean": reward,
        "critic/score/max": "np.int32(2)",
        "critic/rewards/mean": reward - 13,
        "response_length/mean": 18.25,
        **more,
        "perf/throughput": 121.9,
    }
    return " - ".join([f"step:{step}", *(f"{key}:{value}" for key, value in pairs.items())])


def read_text(folder: Path, text: str | bytes, name: str = "train.log") -> Logged:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    log = path
    assert VERL.claims(log)
    (run,) = VERL.read(log, columns=MAPPED)
    return run


def rewards(run: Logged) -> list[float]:
    return run.table.column("critic/score/mean").tolist()


class TestConsole(ReaderConformance):
    reader = VERL.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "train.log"
        lines = [f"{TAG}{metrics(n, r)}\n" for n, r in enumerate(rewards, 1)]
        path.write_text("(pid=1) start-up\n" + "".join(lines), encoding="utf-8")
        return path


def test_values_in_every_form(tmp_path: Path) -> None:
    more = {"actor/grad_norm": "np.float64(nan)", "actor/ppo_kl": "-0.000", "actor/on": "np.True_"}
    run = read_text(tmp_path, metrics(1, -0.5, **more) + "\n" + metrics(2, -1e-05) + "\n")
    assert rewards(run) == [-0.5, -1e-05]
    assert run.table.column("actor/lr").tolist() == [1e-6, 1e-6]
    assert math.isnan(run.table.column("actor/grad_norm")[0])
    assert run.table.has("actor/grad_norm").tolist() == [True, False]
    assert run.table.column("step").tolist() == [1, 2]
    assert "critic/rewards/mean" in run.table.keys
    assert not run.table.cut.any()


def test_key_with_colons_splits_at_the_last(tmp_path: Path) -> None:
    run = read_text(tmp_path, metrics(1, 0.5, **{"val-core/a:b/acc/mean@8": 0.25}) + "\n")
    assert "val-core/a:b/acc/mean@8" in run.table.keys


@pytest.mark.parametrize(
    "before",
    [
        "",
        TAG,
        "(main_task pid=19799) ",
        "\x1b[36m(TaskRunner pid=1, ip=10.4.1.33)\x1b[0m ",
        "Training Progress:   3%|#   | 3/100 [01:00<30:00, 81.49s/it]",
        "timing_s/step:12 global_step:9 ",
        "some words \rmore words ",
    ],
)
def test_text_before_the_step(tmp_path: Path, before: str) -> None:
    run = read_text(tmp_path, "".join(f"{before}{metrics(n, n / 8)}\n" for n in range(1, 5)))
    assert rewards(run) == [0.125, 0.25, 0.375, 0.5]
    assert run.table.column("step").tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "after",
    [
        " [repeated 3x across cluster]",
        "\x1b[32m [repeated 3x across cluster]\x1b[0m",
        "\rTraining Progress:   3%|#   | 3/100 [01:00<30:00, 81.49s/it]",
        "Training Progress:   3%|#   | 3/100",
        "\r",
    ],
)
def test_text_after_the_last_pair(tmp_path: Path, after: str) -> None:
    text = "".join(
        f"step:{n} - critic/score/mean:{n / 8} - actor/grad_norm:0.75{after}\n" for n in (1, 2)
    )
    run = read_text(tmp_path, text)
    assert rewards(run) == [0.125, 0.25]
    assert run.table.column("actor/grad_norm").tolist() == [0.75, 0.75]
    assert not run.table.cut.any()


def test_lines_without_metrics_are_no_rows(tmp_path: Path) -> None:
    text = (
        "epoch 0, step 2\nsaved to /ckpt/global_step:9 - actor\nwarm-up step:4\n"
        f"step:5 - nothing here\n{metrics(6, 0.5)}\nstep:7 -\nreached step:8 - done: yes\n"
    )
    run = read_text(tmp_path, text)
    assert run.table.column("step").tolist() == [6]
    assert run.table.numbers.tolist() == [5]


def test_line_cut_by_wandb_loses_its_last_pair(tmp_path: Path) -> None:
    whole = metrics(2, 0.5)
    room = 4096 - len("step:2 - x/pad: - critic/score/mean:0.12")
    cut = f"step:2 - x/pad:{'1' * room} - critic/score/mean:0.12"
    assert len(cut) == 4096
    run = read_text(tmp_path, f"{metrics(1, 0.25)}\n{cut}\n{whole.replace('step:2', 'step:3')}\n")
    assert run.table.cut.tolist() == [False, True, False]
    np.testing.assert_array_equal(rewards(run), [0.25, math.nan, 0.5])
    assert run.table.column("step").tolist() == [1, 2, 3]


@pytest.mark.parametrize("torn", ["critic/sco", "critic/score/mean:", "critic/score/mean:1e-"])
def test_torn_last_line(tmp_path: Path, torn: str) -> None:
    run = read_text(tmp_path, f"{metrics(1, 0.25)}\nstep:2 - actor/grad_norm:0.5 - {torn}")
    assert run.table.cut.tolist() == [False, True]
    assert run.table.column("actor/grad_norm").tolist()[1] == 0.5
    assert math.isnan(rewards(run)[1])


def test_number_torn_at_the_end_of_the_file_is_dropped(tmp_path: Path) -> None:
    start = "".join(f"{metrics(n, 0.25)}\n" for n in (1, 2))
    torn = "step:3 - actor/grad_norm:0.5 - critic/score/mean:0.1"
    assert read_text(tmp_path, start + torn).table.cut.tolist() == [False, False, True]
    ended = read_text(tmp_path, start + torn + "\n")
    assert not ended.table.cut.any()
    assert rewards(ended) == [0.25, 0.25, 0.1]


def test_learning_rate_of_exactly_zero_is_kept(tmp_path: Path) -> None:
    run = read_text(tmp_path, "step:1 - actor/lr:np.float64(0.0) - critic/score/mean:0.1\n")
    assert run.table.column("actor/lr").tolist() == [0]
    assert run.warnings == ()


CONFIG = """\
{'actor_rollout_ref': {'actor': {'clip_ratio': 0.2,
                                 'checkpoint': {'contents': ['model',
                                                             'extra']},
                                 'kl_loss_type': 'low_var_kl',
                                 'optim': {'betas': [0.9, 0.95],
                                           'lr': 1e-06,
                                           'lr_warmup_steps': -1,
                                           'min_lr_ratio': None},
                                 'use_kl_loss': True},
                       'model': {'override_config': {},
                                 'path': "Qwen/Qwen2.5-7B"},
                       'rollout': {'n': 4}},
 'algorithm': {'kl_ctrl': {'kl_coef': 0.001, 'type': 'fixed'}},
 'data': {'prompt': 'a long text that is spread '
                    'over lines',
          'train_batch_size': 32},
 'trainer': {'total_training_steps': None}}
"""

SETTINGS = {
    "actor_rollout_ref.actor.clip_ratio": 0.2,
    "actor_rollout_ref.actor.checkpoint.contents.0": "model",
    "actor_rollout_ref.actor.checkpoint.contents.1": "extra",
    "actor_rollout_ref.actor.kl_loss_type": "low_var_kl",
    "actor_rollout_ref.actor.optim.betas.0": 0.9,
    "actor_rollout_ref.actor.optim.betas.1": 0.95,
    "actor_rollout_ref.actor.optim.lr": 1e-6,
    "actor_rollout_ref.actor.optim.lr_warmup_steps": -1,
    "actor_rollout_ref.actor.optim.min_lr_ratio": None,
    "actor_rollout_ref.actor.use_kl_loss": True,
    "actor_rollout_ref.model.path": "Qwen/Qwen2.5-7B",
    "actor_rollout_ref.rollout.n": 4,
    "algorithm.kl_ctrl.kl_coef": 0.001,
    "algorithm.kl_ctrl.type": "fixed",
    "data.prompt": "a long text that is spread over lines",
    "data.train_batch_size": 32,
    "trainer.total_training_steps": None,
}


@pytest.mark.parametrize("prefix", ["", TAG, "(main_task pid=3) "])
def test_printed_configuration(tmp_path: Path, prefix: str) -> None:
    lines = [prefix + line for line in CONFIG.splitlines()]
    run = read_text(tmp_path, "\n".join([*lines, metrics(1, 0.5), ""]))
    assert dict(run.settings) == SETTINGS


def test_planned_steps_and_size_are_printed(tmp_path: Path) -> None:
    text = CONFIG + (
        f"{TAG}Total training steps: 435\n"
        "(WorkerDict pid=3) Qwen2ForCausalLM contains 7.62B parameters\n"
        "(WorkerDict pid=4) Qwen2ForCausalLM contains 7.62B parameters [repeated 3x across cluster]"
        f"\n{metrics(1, 0.5)}\n"
    )
    run = read_text(tmp_path, text)
    assert run.settings["trainer.total_training_steps"] == 435
    assert "Total training steps" in run.assumptions[0]
    assert run.facts == {"parameters": 7.62e9}


def test_attempts_with_other_settings_share_only_what_is_equal(tmp_path: Path) -> None:
    other = CONFIG.replace("'lr': 1e-06", "'lr': 5e-06")
    text = "".join([CONFIG, metrics(1, 0.5), "\n", other, metrics(1, 0.25), "\n"])
    run = read_text(tmp_path, text)
    assert "actor_rollout_ref.actor.optim.lr" not in run.settings
    assert run.settings["actor_rollout_ref.rollout.n"] == 4
    assert "differ in 1 settings" in run.warnings[0]


def test_command_line_counts_where_nothing_else_is_printed(tmp_path: Path) -> None:
    command = (
        "+ python3 -m verl.trainer.main_ppo --config-path=config algorithm.adv_estimator=grpo "
        "+data.extra=1 'trainer.logger=[console]' actor_rollout_ref.rollout.n=4 data.x=$HOME/y\n"
    )
    run = read_text(tmp_path, command + metrics(1, 0.5) + "\n")
    assert dict(run.settings) == {
        "algorithm.adv_estimator": "grpo",
        "data.extra": "1",
        "trainer.logger": "[console]",
        "actor_rollout_ref.rollout.n": "4",
    }
    both = read_text(tmp_path, command + CONFIG + metrics(1, 0.5) + "\n")
    assert dict(both.settings) == SETTINGS


def test_log_without_rows_says_what_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("start-up only\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"no line of metrics.*trainer\.logger"):
        VERL.read(path)


def test_hostile_lines_take_no_time(tmp_path: Path) -> None:
    opening = "{'actor_rollout_ref': {'a': '"
    text = "\n".join(
        [
            opening + "\\'" * 30_000,
            "{'algorithm': {" + "{[(" * 20_000,
            "{'algorithm': {" + "'x': {" * 5_000,
            "step:" * 100_000,
            " main_ppo " + "a.b" * 20_000,
            "step:1 - a/b:" + "9" * 100_000,
            "step:2 - " + " - " * 50_000,
            metrics(3, 0.5),
            "",
        ]
    )
    assert rewards(read_text(tmp_path, text))[-1] == 0.5
