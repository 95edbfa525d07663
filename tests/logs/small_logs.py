"""Small logs in the true formats of trainers and trackers, from simulated runs.

``python tests/logs/small_logs.py`` writes ``tests/logs/small/`` anew, and ``small_truth.json``
beside it: what was simulated, which a reader has to find again. Formats and key names are those of
public logs and of the trainers' own sources; no line is copied from anyone's log.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

SMALL = Path(__file__).parent / "small"
ROWS = 30
GROUPS, SIZE = 8, 8
RATE, KL_WEIGHT = 1e-5, 0.04

TABLE = "table with a reward (CSV, JSONL or JSON list)"
COMMON = "common names"


class Simulated:
    """Series of one run: 8 groups of 8 completions that are right or wrong."""

    def __init__(self, seed: int, rows: int = ROWS) -> None:
        rng = np.random.default_rng(seed)
        self.rows = rows
        self.step = np.arange(1, rows + 1)
        chance = 0.2 + 0.6 * (1 - np.exp(-self.step / 15))
        prompt = rng.beta(2 * chance[:, None], 2 * (1 - chance[:, None]), (rows, GROUPS))
        right = rng.binomial(SIZE, prompt)
        self.reward = right.mean(axis=1) / SIZE
        self.silent = np.mean((right == 0) | (right == SIZE), axis=1)
        share = right / SIZE
        spread = np.sqrt(share * (1 - share) * SIZE / (SIZE - 1)).mean(axis=1)
        self.spread = np.round(spread, 6)
        batch = np.sqrt(self.reward * (1 - self.reward) * 64 / 63)
        self.batch_spread = np.round(batch, 6)
        self.kl = np.round(0.0005 * self.step * rng.lognormal(0, 0.3, rows), 6)
        self.entropy = np.round(0.6 - 0.004 * self.step + rng.normal(0, 0.01, rows), 4)
        self.norm = np.round(rng.lognormal(-0.5, 0.3, rows), 4)
        self.length = np.round(rng.normal(180, 6, rows), 2)
        self.rate = np.round(RATE * (1 - (self.step - 1) / rows), 12)

    def truth(self, log: str, kind: str, framework: str, **more: Any) -> dict[str, Any]:
        """What a reader must find, in the package's own names."""
        return {
            "log": log,
            "format": kind,
            "framework": framework,
            "step": self.step.tolist(),
            "reward": self.reward.tolist(),
            "kl": self.kl.tolist(),
            "entropy": self.entropy.tolist(),
            "digits": 12,
            "unit": "optimizer",
            "interval": 1,
            "eval_step": [],
            **more,
        }


def trl_row(run: Simulated, n: int) -> dict[str, float]:
    return {
        "loss": round(KL_WEIGHT * run.kl[n], 10),
        "grad_norm": run.norm[n],
        "learning_rate": run.rate[n],
        "num_tokens": 12000.0 * (n + 1),
        "completions/mean_length": run.length[n],
        "completions/clipped_ratio": 0.0,
        "rewards/correct/mean": run.reward[n],
        "rewards/correct/std": run.batch_spread[n],
        "reward": run.reward[n],
        "reward_std": run.spread[n],
        "frac_reward_zero_std": run.silent[n],
        "kl": run.kl[n],
        "entropy": run.entropy[n],
        "clip_ratio/region_mean": 0.0,
        "epoch": round(0.01 * (n + 1), 4),
    }


def dumped(document: Any, **options: Any) -> str:
    return json.dumps(document, default=float, **options) + "\n"


def trl_state(run: Simulated) -> dict[str, str]:
    """An output folder of TRL 0.20 to 0.26: two nested checkpoints, settings in none of them."""
    files = {}
    for last in (10, run.rows):
        rows = [{**trl_row(run, n), "step": n + 1} for n in range(last)]
        state = {
            "best_metric": None,
            "epoch": 0.01 * last,
            "global_step": last,
            "log_history": rows,
            "logging_steps": 1,
            "max_steps": run.rows,
            "num_train_epochs": 1,
            "save_steps": 10,
            "train_batch_size": 8,
        }
        files[f"checkpoint-{last}/trainer_state.json"] = dumped(state, indent=1)
    return files


def trl_console(run: Simulated) -> dict[str, str]:
    """What transformers 5 prints: dicts of quoted numbers, among bars and warnings; no step."""
    lines = [
        "***** Running training *****",
        "  Num examples = 7,473",
        "  Num Epochs = 1",
        "  Instantaneous batch size per device = 8",
        "  Total train batch size (w. parallel, distributed & accumulation) = 64",
        "  Gradient Accumulation steps = 8",
        f"  Total optimization steps = {run.rows}",
    ]
    for n in range(run.rows):
        cells = {key: f"{value:.4g}" for key, value in trl_row(run, n).items()}
        share = f"{100 * n // run.rows:3d}%"
        bar = f"{share}|{'█' * (n % 10)}   | {n}/{run.rows} [00:12<01:00,  3.2s/it]"
        lines.append(f"\r{bar}{cells}")
        if n % 10 == 3:
            lines.append("UserWarning: None of the inputs have requires_grad=True")
    lines.append("{'train_runtime': '96.4', 'train_loss': '0.0003', 'epoch': '0.3'}")
    return {"train.log": "\n".join(lines) + "\n"}


def swift(run: Simulated) -> dict[str, str]:
    """ms-swift's ``logging.jsonl``, with the step as a fraction, and the file of its arguments."""
    rows = []
    for n in range(run.rows):
        row = {key: value for key, value in trl_row(run, n).items() if key != "entropy"}
        row |= {
            "entropy/mean": run.entropy[n],
            "global_step/max_steps": f"{n + 1}/{run.rows}",
            "percentage": f"{100 * (n + 1) / run.rows:.2f}%",
            "elapsed_time": f"{n}m 20s",
            "memory(GiB)": 55.33,
            "train_speed(s/it)": 35.870414,
        }
        rows.append(row)
    settings = {"num_generations": SIZE, "beta": KL_WEIGHT, "learning_rate": RATE, "seed": 42}
    return {"logging.jsonl": "".join(map(dumped, rows)), "args.json": dumped(settings)}


def notebook(run: Simulated) -> dict[str, str]:
    """Unsloth's notebook: the configuration as code, the rows as a progress table."""
    header = ("Step", "Training Loss", "reward", "reward_std", "completions / mean_length", "kl")
    html = [f"<progress value='{run.rows}' max='{run.rows}'></progress>", '<table border="1">']
    html += ["<thead>", "<tr>", *(f"<th>{name}</th>" for name in header), "</tr>", "</thead>"]
    for n in range(run.rows):
        cells = (KL_WEIGHT * run.kl[n], run.reward[n], run.spread[n], run.length[n], run.kl[n])
        html += ["<tr>", f"<td>{n + 1}</td>", *(f"<td>{c:.6f}</td>" for c in cells), "</tr>"]
    html.append("</table>")
    source = [
        "from trl import GRPOConfig\n",
        "batch = 8\n",
        f"args = GRPOConfig(learning_rate={RATE}, num_generations={SIZE}, beta={KL_WEIGHT},\n",
        "    per_device_train_batch_size=batch, gradient_accumulation_steps=8,\n",
        f"    max_steps={run.rows})\n",
    ]
    shown = {"output_type": "display_data", "data": {"text/html": html}}
    cell = {"cell_type": "code", "source": source, "outputs": [shown]}
    return {"grpo.ipynb": dumped({"nbformat": 4, "metadata": {}, "cells": [cell]}, indent=0)}


def verl_metrics(run: Simulated, n: int) -> dict[str, Any]:
    return {
        "actor/entropy": run.entropy[n],
        "actor/kl_loss": run.kl[n],
        "actor/kl_coef": 0.001,
        "actor/pg_clipfrac": 0.0,
        "actor/grad_norm": run.norm[n],
        "actor/lr": RATE,
        "training/global_step": n + 1,
        "critic/score/mean": run.reward[n],
        "critic/score/max": 1.0,
        "critic/rewards/mean": round(run.reward[n] - 9 * run.kl[n], 6),
        "response_length/mean": run.length[n],
        "response_length/clip_ratio": 0.0,
        "perf/throughput": 121.9,
    }


def verl_console(run: Simulated) -> dict[str, str]:
    """verl under ray: one line per step with numpy's spelling of numbers, evaluations among it."""
    tag = "\x1b[36m(TaskRunner pid=4242)\x1b[0m "
    lines = [f"{tag}start-up", f"{tag}step:0 - val-core/gsm8k/acc/mean@1:0.25"]
    for n in range(run.rows):
        cells = verl_metrics(run, n)
        if (n + 1) % 10 == 0:
            cells["val-core/gsm8k/acc/mean@1"] = 0.25 + 0.01 * (n + 1)
        shown = {k: f"np.float64({v})" if "actor/" in k else v for k, v in cells.items()}
        lines.append(tag + " - ".join([f"step:{n + 1}", *(f"{k}:{v}" for k, v in shown.items())]))
    settings = ["data.train_batch_size=8", "actor_rollout_ref.rollout.n=8"]
    settings += ["actor_rollout_ref.actor.ppo_mini_batch_size=4"]
    overrides = "".join(f"- {line}\n" for line in settings)
    return {"run.log": "\n".join(lines) + "\n", ".hydra/overrides.yaml": overrides}


def verl_jsonl(run: Simulated) -> dict[str, str]:
    """verl's FileLogger: metrics one level down."""
    rows = [{"step": n + 1, "data": verl_metrics(run, n)} for n in range(run.rows)]
    return {"gsm8k.jsonl": "".join(map(dumped, rows))}


def openrlhf(run: Simulated) -> dict[str, str]:
    """Rows of OpenRLHF as trackers keep them, whose return holds the KL penalty."""
    rows = []
    for n in range(run.rows):
        row = {
            "train/policy_loss": -0.01,
            "train/reward": float(run.reward[n]),
            "train/return": float(run.reward[n] - 0.5),
            "train/response_length": float(run.length[n]),
            "train/kl": float(run.kl[n]),
            "train/entropy_loss": float(run.entropy[n]),
            "train/actor_lr": RATE,
            "train/global_step": n + 1,
        }
        rows.append(row)
    return {"metrics.jsonl": "".join(map(dumped, rows))}


def tinker(run: Simulated) -> dict[str, str]:
    """tinker-cookbook's ``metrics.jsonl``: steps from 0, shares of mixed groups, its config."""
    rows = []
    for n in range(run.rows):
        row = {
            "step": n,
            "progress/batch": n,
            "optim/lr": RATE,
            "env/all/reward/total": run.reward[n],
            "env/all/correct": run.reward[n],
            "env/all/by_group/frac_mixed": 1 - run.silent[n],
            "optim/entropy": run.entropy[n],
            "optim/kl_sample_train_v1": 0.0004,
            "env/all/ac_tokens_per_turn": run.length[n],
            "time/total": 31.5,
        }
        if n % 10 == 0:
            row["time/run_evals"] = 12.5
        rows.append(row)
    config = {"model_name": "Qwen/Qwen3-4B", "learning_rate": RATE, "lora_rank": 32}
    dataset = {"dataset_builder": {"batch_size": GROUPS, "group_size": SIZE}}
    files = {"metrics.jsonl": "".join(map(dumped, rows))}
    return {**files, "config.json": dumped({**config, **dataset})}


def cs336(run: Simulated) -> dict[str, str]:
    """A loop of one's own with rows of three kinds, two updates per batch of rollouts."""
    rows: list[dict[str, Any]] = []
    for n in range(run.rows):
        if n % 10 == 0:
            held_out = {"num_examples": 64, "reward": 0.3 + n / 100}
            rows.append({"type": "eval", "grpo_step": n, **held_out})
        rows.append({"type": "rollout", "grpo_step": n + 1, "reward": run.reward[n]})
        for update in (1, 2):
            more = {"optimizer_step": 2 * n + update, "token_entropy": run.entropy[n]}
            shown = {"learning_rate": RATE, "reference_kl": None, "train_reward": run.reward[n]}
            rows.append({"type": "train", "grpo_step": n + 1, "loss": 0.01, **shown, **more})
    return {"metrics.jsonl": "".join(map(dumped, rows))}


def own_csv(run: Simulated) -> dict[str, str]:
    """A CSV that began with an aborted attempt; a column that is filled on few rows."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["step", "loss", "kl", "reward_avg", "entropy_avg", "eval_acc"])
    for n in range(2):
        writer.writerow([n + 1, "0.000000", "0.000000", "0.125000", "0.600000", ""])
    for n in range(run.rows):
        evaluated = f"{15 + n / 2:.1f}" if n % 10 == 0 else ""
        cells = (0.0, run.kl[n], run.reward[n], run.entropy[n])
        writer.writerow([n + 1, *(f"{cell:.6f}" for cell in cells), evaluated])
    return {"train.csv": text.getvalue()}


def wandb_csv(run: Simulated) -> dict[str, str]:
    """Charts of W&B as CSV: one metric each, with its least and largest value."""
    files = {}
    series = {"reward": run.reward, "kl": run.kl, "entropy": run.entropy}
    for place, (name, values) in enumerate(series.items()):
        text = io.StringIO(newline="")
        writer = csv.writer(text, quoting=csv.QUOTE_ALL)
        column = f"qwen-7b - train/{name}"
        writer.writerow(["train/global_step", column, f"{column}__MIN", f"{column}__MAX"])
        writer.writerows((n + 1, values[n], values[n], values[n]) for n in range(run.rows))
        files[f"wandb_export_2026-05-19T17_35_0{place}.153+01_00.csv"] = text.getvalue()
    return files


def crc32c(data: bytes) -> int:
    """Bit by bit, after RFC 3720."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value: int) -> bytes:
    """A number of protobuf, negative ones in two's complement."""
    value &= (1 << 64) - 1
    digits = []
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def message(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensorboard(run: Simulated) -> dict[str, bytes]:
    """An event file of TRL through transformers' callback: a record per scalar."""
    time = b"\x09" + struct.pack("<d", 1.7e9)
    out = record(time + message(3, b"brain.Event:2"))
    series = {"reward": run.reward, "kl": run.kl, "entropy": run.entropy, "reward_std": run.spread}
    for n in range(run.rows):
        for name, values in series.items():
            tag = message(1, f"train/{name}".encode())
            value = message(1, tag + b"\x15" + struct.pack("<f", values[n]))
            out += record(time + bytes([0x10, n + 1]) + message(5, value))
    return {"events.out.tfevents.1700000000.host.1.0": out}


TRL_FACTS = {"kl_coefficient": KL_WEIGHT, "learning_rate": RATE, "schedule": "linear"}
COUNTED = {"group_size": SIZE, "prompts_per_step": GROUPS}
VERL_FACTS = {"learning_rate": RATE, "schedule": "constant", "kl_coefficient": 0.001}

LOGS: dict[str, tuple[Any, str, str, dict[str, Any]]] = {
    "trl_state": (
        trl_state,
        "TRL trainer_state.json",
        "TRL",
        {"settings": {**TRL_FACTS, **COUNTED, "planned_steps": ROWS}},
    ),
    "trl_console": (trl_console, "TRL console log", "TRL", {"digits": 4, "settings": TRL_FACTS}),
    "swift": (swift, TABLE, "TRL", {"settings": {**TRL_FACTS, **COUNTED}}),
    "notebook": (
        notebook,
        "notebook with progress tables",
        "TRL",
        {"entropy": None, "settings": {**COUNTED, "kl_coefficient": KL_WEIGHT}},
    ),
    "verl_console": (
        verl_console,
        "verl console log",
        "verl",
        {
            "settings": {**VERL_FACTS, "group_size": SIZE, "prompts_per_step": 4},
            "interval": 2,
            "eval_step": [0, 20, 40, 60],
        },
    ),
    "verl_jsonl": (
        verl_jsonl,
        TABLE,
        "verl",
        {"settings": VERL_FACTS, "unit": "refresh"},
    ),
    "openrlhf": (
        openrlhf,
        TABLE,
        "OpenRLHF",
        {"settings": {"learning_rate": RATE}, "unit": "refresh"},
    ),
    "tinker": (
        tinker,
        TABLE,
        "Tinker",
        {"kl": None, "settings": {**COUNTED, "learning_rate": RATE, "adapter_rank": 32}},
    ),
    "cs336": (
        cs336,
        TABLE,
        "CS336",
        {
            "kl": None,
            "settings": {"learning_rate": RATE},
            "unit": "refresh",
            "eval_step": [0, 10, 20],
        },
    ),
    "own_csv": (own_csv, TABLE, COMMON, {"digits": 4, "settings": {}, "eval_step": [1, 11, 21]}),
    "wandb_csv": (wandb_csv, "W&B chart as CSV", COMMON, {"settings": {}}),
    "tensorboard": (tensorboard, "TensorBoard event files", COMMON, {"digits": 6, "settings": {}}),
}
"""Name -> who writes it, its format, whose keys it has, and what else is true of it."""


def write_all(folder: Path) -> None:
    """Write all logs, each in a folder of its own, and the truth about them beside the folder."""
    truth = []
    for seed, (name, (make, kind, framework, more)) in enumerate(LOGS.items(), start=1):
        run = Simulated(seed)
        for file, content in make(run).items():
            path = folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        truth.append(run.truth(name, kind, framework, **more))
    (folder.parent / f"{folder.name}_truth.json").write_text(dumped(truth), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else SMALL)
