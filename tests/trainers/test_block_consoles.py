"""Consoles that print a block of metrics per step, in the forms of the trainers' own sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor import read_runs
from advisor.logfiles.log_file import on_disk
from advisor.testing.reader_conformance import ReaderConformance
from advisor.trainers.generic import blocks

REWARD = np.round(0.2 + 0.6 * (1 - np.exp(-np.arange(1, 31) / 20)), 4)


def saved(folder: Path, text: str) -> Path:
    path = folder / "train.log"
    path.write_text(text + "\n", encoding="utf-8")
    return path


def nemo_rl(rewards: Sequence[float]) -> str:
    """NeMo-RL, ``grpo.py``."""
    return "\n".join(
        f"\n{'=' * 25} Step {n}/{len(rewards)} {'=' * 25}\n▶ Preparing batch...\n"
        f"\n📊 Training Results:\n  • Loss: {0.01 * n:.4f}\n  • Generation KL Error: 0.0010\n"
        f"  • Avg Reward: {r}\n  • Mean Generation Length: 512.2500\n"
        "\n⏱️  Timing:\n  • Total step time: 30.10s\n  • generation: 12.00s (39.9%)"
        for n, r in enumerate(rewards, start=1)
    )


def areal(rewards: Sequence[float]) -> str:
    """AReaL, ``stats_logger.py``: a grid of four pairs per row."""
    return "\n".join(
        f"20250901-10:00:00.000 StatsLogger INFO: Epoch {1 + n // 20}/2 Step {1 + n % 20}/20 "
        f"Train step {n}/40 done.\n20250901-10:00:00.001 StatsLogger INFO: Stats (1/1):\n"
        "20250901-10:00:00.002 StatsLogger INFO: \n╒═══════╤══════╤═══════╤══════╕\n"
        f"│ ppo_actor/task_reward/avg │ {r:.4e} │ ppo_actor/update/entropy/avg │ 5.0000e-01 │\n"
        "├───────┼──────┼───────┼──────┤\n"
        f"│ ppo_actor/update/lr │ 1.0000e-06 │ ppo_actor/final_reward/avg │ {r - 0.1:.4e} │\n"
        "╘═══════╧══════╧═══════╧══════╛"
        for n, r in enumerate(rewards, start=1)
    )


def slime(rewards: Sequence[float]) -> str:
    """slime, ``data.py`` and ``model.py``, under Ray."""
    return "\n".join(
        f"\x1b[36m(RolloutManager pid=12)\x1b[0m [2025-09-01 10:00:00] data.py:148 - rollout {n}: "
        f"{{'rollout/raw_reward': {r}, 'rollout/rewards': 1e-09, "
        "'rollout/response_lengths': 900.5}"
        f"\n\x1b[36m(MegatronTrainRayActor pid=13)\x1b[0m [2025-09-01 10:00:09] model.py:490 - "
        f"step {n}: {{'train/loss': 0.01, 'train/pg_loss': 0.01, 'train/pg_clipfrac': 0.0, "
        "'train/grad_norm': 0.3, 'train/lr-pg_0': 1e-06}"
        for n, r in enumerate(rewards)
    )


def skyrl(rewards: Sequence[float]) -> str:
    """SkyRL, ``tracking.py``: a dict with four decimals over several lines."""
    return "\n".join(
        "\x1b[36m(skyrl_entrypoint pid=7)\x1b[0m 2025-09-01 10:00:00.000 | INFO     | "
        f"skyrl_train.utils.tracking:log:112 - Step {n}: \n{{'generate/avg_num_tokens': '350.1000',"
        f"\n 'loss/avg_final_rewards': '{r - 0.1:.4f}',\n 'policy/policy_entropy': '0.5000',\n"
        f" 'policy/policy_lr': '0.0000',\n 'reward/avg_raw_reward': '{r:.4f}',\n"
        f" 'trainer/epoch': 0,\n 'trainer/global_step': {n}}}"
        for n, r in enumerate(rewards, start=1)
    )


def open_instruct(rewards: Sequence[float]) -> str:
    """open-instruct, ``print_rich_single_line_metrics``: a panel with a group per line."""
    panels = []
    for n, reward in enumerate(rewards, start=1):
        inside = (
            " loss       policy_avg: 0.01 | kl_avg: 2.00e-06",
            f" objective  kl_avg: 0.01 | scores: {reward}",
            f" other      episode: {64 * n} | training_step: {n} | lr: 1.00e-06",
            " val        sequence_lengths: 512.00 | stop_rate: 0.99",
        )
        lines = [f"╭{'─' * 30} Metrics {'─' * 39}╮", *(f"│{line:<78}│" for line in inside)]
        panels.append("\n".join([*lines, f"╰{'─' * 78}╯"]))
    return "\n".join(panels)


CONSOLES = {
    "NeMo-RL": nemo_rl,
    "AReaL": areal,
    "slime": slime,
    "SkyRL": skyrl,
    "open-instruct": open_instruct,
}


class TestBlocks(ReaderConformance):
    reader = blocks.READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        return saved(folder, nemo_rl(rewards))


@pytest.mark.parametrize("name", CONSOLES)
def test_every_form_is_read(name: str, tmp_path: Path) -> None:
    (run,) = read_runs(saved(tmp_path, CONSOLES[name](REWARD.tolist())))
    np.testing.assert_allclose(run.reward, REWARD, atol=1e-4)
    assert run.step.tolist() == list(range(1, 31))
    if name != "NeMo-RL":
        assert run.framework == name
        assert run.step_unit == "refresh"
    if name in ("AReaL", "slime", "open-instruct"):
        assert run.hyperparameters.learning_rate == 1e-6


def test_blocks_without_rewards_are_no_log(tmp_path: Path) -> None:
    text = nemo_rl(REWARD.tolist()).replace("Avg Reward", "Avg Perplexity")
    assert not blocks.claims(on_disk(saved(tmp_path, text)))


def test_pairs_with_a_blank_between_commas(tmp_path: Path) -> None:
    """mlx-lm-lora prints names and numbers with nothing between them."""
    lines = [
        f"Iter {n}: Train loss 0.100, Total rewards mean {r}, Total rewards std 0.300, "
        f"Grouped rewards mean {r}, KL 0.001, r1_format mean 0.5, Learning Rate 1.000e-05, "
        "It/sec 0.5, Tokens/sec 30.0, Peak mem 10.1 GB"
        for n, r in enumerate(REWARD, start=1)
    ]
    (run,) = read_runs(saved(tmp_path, "\n".join(lines)))
    np.testing.assert_allclose(run.reward, REWARD)
    assert run.hyperparameters.learning_rate == 1e-5


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (  # slime
            {"rollout_batch_size": 32, "n_samples_per_prompt": 8, "global_batch_size": 64,
             "rollout_max_response_len": 4096, "lr": 1e-6, "kl_loss_coef": 0.01},
            (8, 8, 4, 1, 0.01),
        ),
        (  # SkyRL
            {"trainer": {"train_batch_size": 64, "policy_mini_batch_size": 16,
                         "update_epochs_per_batch": 2,
                         "policy": {"optimizer_config": {"lr": 1e-6}},
                         "algorithm": {"use_kl_loss": False, "use_kl_in_reward": False}},
             "generator": {"n_samples_per_prompt": 5}},
            (5, 16, 4, 2, 0.0),
        ),
        (  # AReaL
            {"gconfig": {"n_samples": 4}, "train_dataset": {"batch_size": 128},
             "actor": {"ppo_n_minibatches": 4, "kl_ctl": 0.0, "optimizer": {"lr": 1e-6}}},
            (4, 32, 4, 1, 0.0),
        ),
        (  # open-instruct
            {"num_unique_prompts_rollout": 48, "num_samples_per_prompt_rollout": 16,
             "num_mini_batches": 2, "num_epochs": 1, "beta": 0.01, "learning_rate": 1e-6,
             "apply_verifiable_reward": True},
            (16, 24, 2, 1, 0.01),
        ),
    ],
)  # fmt: skip
def test_settings(config: dict[str, Any], expected: tuple[float, ...], tmp_path: Path) -> None:
    saved(tmp_path, nemo_rl(REWARD.tolist()))
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (run,) = read_runs(tmp_path)
    own = run.hyperparameters
    assert own.learning_rate == 1e-6
    assert expected == (
        own.group_size,
        own.prompts_per_step,
        own.minibatches_per_refresh,
        own.epochs_per_refresh,
        own.kl_coefficient,
    )
