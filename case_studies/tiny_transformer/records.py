"""What a run leaves behind: TRL's trainer_state.json, and a sidecar with the hyperparameters."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from config import GrpoConfig
from grpo import EVALUATION_INTERVAL, Row
from tasks import MAX_COMPLETION_LENGTH
from transformer import Transformer

# What every committed run has in common, as the sidecar states it.
SHARED = {
    "optimizer": "adamw",
    "momentum": 0.9,
    "schedule": "constant",
    "warmup_steps": 0,
    "prompts_per_step": 16,
    "kl_coefficient": 0.0,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "importance_ratio": True,
    "advantage_scaling": "group",
    "lag": 0,
}
# The fields that may differ between committed runs.
VARIED_FIELDS = (
    "learning_rate",
    "group_size",
    "minibatches_per_refresh",
    "epochs_per_refresh",
    "seed",
)


@dataclass(frozen=True)
class Run:
    """A GRPO run with its task and model size."""

    task: str
    size: str
    config: GrpoConfig

    @property
    def name(self) -> str:
        """Folder name, for example s_lr3e-4_g8_k2 or s_lr3e-4_g8_k2x2_seed1."""
        config = self.config
        rate = f"{config.learning_rate:.1e}".replace(".0e", "e").replace("e-0", "e-")
        epochs = f"x{config.epochs_per_refresh}" if config.epochs_per_refresh > 1 else ""
        seed = f"_seed{config.seed}" if config.seed else ""
        refresh = f"k{config.minibatches_per_refresh}{epochs}"
        return f"{self.size}_lr{rate}_g{config.group_size}_{refresh}{seed}"


def trainer_state(rows: list[Row], config: GrpoConfig, logging_steps: int = 1) -> str:
    """Lay log rows of `grpo.train` out as TRL's trainer_state.json, one row per line.

    Of more than one optimizer step per row, like TRL, a row has means, and the last count of
    tokens. Numbers keep five significant digits.
    """
    last = rows[-1]
    state: dict[str, object] = {
        "best_global_step": None,
        "best_metric": None,
        "best_model_checkpoint": None,
        "epoch": _rounded(last["epoch"]),
        "eval_steps": EVALUATION_INTERVAL,
        "global_step": last["step"],
        "is_hyper_param_search": False,
        "is_local_process_zero": True,
        "is_world_process_zero": True,
        "log_history": [],
        "logging_steps": logging_steps,
        "max_steps": config.steps,
        "num_input_tokens_seen": max(row.get("num_tokens", 0) for row in rows),
        "num_train_epochs": math.ceil(last["epoch"]),
        "save_steps": config.steps,
        "stateful_callbacks": {},
        "total_flos": 0,
        "train_batch_size": config.prompts_per_step * config.group_size,
        "trial_name": None,
        "trial_params": None,
    }
    lines = [
        json.dumps({key: _rounded(value) for key, value in row.items()}, separators=(",", ":"))
        for row in averaged(rows, logging_steps)
    ]
    text = json.dumps(state, indent=1)
    return (
        text.replace('"log_history": []', '"log_history": [\n' + ",\n".join(lines) + "\n ]") + "\n"
    )


def averaged(rows: list[Row], steps: int) -> list[Row]:
    """Means of so many training rows each; evaluations and the summary as they are."""
    found: list[Row] = []
    pending: list[Row] = []
    for row in rows:
        if "reward" not in row:
            found.append(row)
            continue
        pending.append(row)
        if len(pending) == steps:
            means = {key: sum(one[key] for one in pending) / steps for key in row}
            found.append({**means, **{key: row[key] for key in ("step", "num_tokens", "epoch")}})
            pending = []
    return found


def _rounded(value: float | int) -> float | int:
    """Round a float to five significant digits; leave integers alone."""
    return value if isinstance(value, int) else float(f"{value:.5g}")


def sidecar(runs: list[Run]) -> str:
    """Write the hyperparameters that trainer_state.json does not hold, as TOML."""
    lines = [
        "# hyperparameters of the runs beside this file; paths are relative to it",
        "[defaults]",
    ]
    lines += ['task = "sort"', 'adapter = "full"']
    lines += [f"{name} = {json.dumps(value)}" for name, value in SHARED.items()]
    lines += [f"max_completion_length = {MAX_COMPLETION_LENGTH}"]
    lines += ["reward_floor = 0.0", "reward_ceiling = 1.0"]
    for run in runs:
        parameters = sum(parameter.numel() for parameter in Transformer(run.size).parameters())
        lines += ["", "[[run]]", f'path = "{run.name}/trainer_state.json"']
        lines += [f'model = "tiny-{run.size}"', f"parameters = {parameters}"]
        lines += [f"{name} = {json.dumps(getattr(run.config, name))}" for name in VARIED_FIELDS]
    return "\n".join(lines) + "\n"
