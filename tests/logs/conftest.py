"""Small logs, written where a test wants them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def trl_rows(
    steps: list[int], *, peak: float = 3e-4, std_is_batch: bool = False
) -> list[dict[str, Any]]:
    """Rows as TRL logs them, at a constant rate; deterministic."""
    rng = np.random.default_rng(7)
    rows = []
    for step in steps:
        reward = float(np.round(0.2 + 0.6 * (1 - np.exp(-step / 15)) + rng.normal(0, 0.02), 5))
        batch = float(np.round(np.sqrt(max(reward * (1 - reward), 1e-6)), 5))
        rows.append(
            {
                "step": step,
                "loss": 0.01,
                "reward": reward,
                "reward_std": batch if std_is_batch else round(batch * 0.7, 5),
                "rewards/exact/mean": reward,
                "rewards/exact/std": batch,
                "frac_reward_zero_std": 0.25,
                "entropy": 0.5,
                "grad_norm": 1.0,
                "learning_rate": peak,
                "completions/mean_length": 12.0,
                "completions/clipped_ratio": 0.0,
                "clip_ratio/region_mean": 0.0,
                "step_time": 0.1,
            }
        )
    return rows


def state(rows: list[dict[str, Any]], **top: Any) -> dict[str, Any]:
    given = {"global_step": rows[-1]["step"], "logging_steps": 1, "max_steps": 200}
    return {**given, "log_history": rows, **top}


Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Write text, bytes, JSON (dict or list) or JSONL rows below the test's folder."""

    def _write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        else:
            path.write_text(json.dumps(content, indent=1), encoding="utf-8")
        return path

    return _write


@pytest.fixture
def make_rows() -> Callable[..., list[dict[str, Any]]]:
    return trl_rows


@pytest.fixture
def write_state(write: Writer) -> Writer:
    """Write a trainer state of rows 1 to ``size``."""

    def _write_state(name: str = "x/trainer_state.json", size: int = 20, **options: Any) -> Path:
        top = options.pop("top", {})
        return write(name, state(trl_rows(list(range(1, size + 1)), **options), **top))

    return _write_state


@pytest.fixture
def make_state() -> Callable[..., dict[str, Any]]:
    return state
