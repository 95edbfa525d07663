"""Exported configurations and how to start one without its trainer."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Any, get_args

from hypothesis import strategies as st

from advisor.runs import PartialSettings, Settings

SETTINGS = PartialSettings(
    learning_rate=2.1544346900318822e-06,
    group_size=8,
    prompts_per_step=6,
    minibatches_per_refresh=4,
    epochs_per_refresh=2,
).completed()
STEPS = 200

ADAPTED = {
    "adapter": "lora",
    "adapter_rank": 16,
    "adapter_alpha": 32,
    "adapter_targets": "q_proj,v_proj",
}

ENVIRONMENT = {
    "MODEL": "org/model-1B",
    "TRAIN_FILES": "train.parquet",
    "VAL_FILES": "val.parquet",
    "PROMPT_DATA": "org/prompts",
    "REWARD": "reward.py",
    "DATASET": "org/questions",
}

STUB = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word"; done
"""


def words_for(name: str) -> tuple[str, ...]:
    """What a setting may be, but for nothing."""
    return get_args(get_args(Settings.model_fields[name].annotation)[0])


def changed(**updates: Any) -> Settings:
    return Settings.model_validate({**SETTINGS.model_dump(), **updates})


def run_script(
    script: str, folder: Path, *more: str, without: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a script where the trainer's program only says what it was called with."""
    for program in ("python3", "swift", "uv"):
        stub = folder / "bin" / program
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(STUB)
        stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    (folder / "start.sh").write_text(script)
    variables = {name: value for name, value in ENVIRONMENT.items() if name != without}
    return subprocess.run(
        ["bash", str(folder / "start.sh"), *more],
        env={**variables, "PATH": f"{stub.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def words_of(script: str, folder: Path, *more: str) -> list[str]:
    """Words that the trainer's program would be called with."""
    done = run_script(script, folder, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\0")[:-1]


@st.composite
def launches(
    draw: st.DrawFn, schedules: tuple[str, ...] = ("constant", "linear", "cosine")
) -> tuple[Settings, int, int]:
    """Settings, steps and devices that divide, in every setting that an export writes."""
    small = st.integers(1, 6)
    group, devices = draw(st.integers(2, 16)), draw(st.sampled_from([1, 2, 8]))
    prompts = draw(small) * (1 if group % devices == 0 else devices)
    minibatches, epochs = draw(small), draw(small)
    refreshes = draw(st.integers(1, 40))
    interval = minibatches * epochs
    amount = st.floats(1e-9, 0.5)
    settings = Settings(
        learning_rate=draw(amount),
        group_size=group,
        prompts_per_step=prompts,
        minibatches_per_refresh=minibatches,
        epochs_per_refresh=epochs,
        lag=0.0,
        optimizer=draw(st.sampled_from(["adamw", "adam"])),
        momentum=draw(st.floats(0, 0.999)),
        schedule=draw(st.sampled_from(schedules)),
        warmup_steps=draw(st.integers(0, refreshes)) * interval,
        planned_steps=refreshes * interval,
        kl_coefficient=draw(st.just(0.0) | amount),
        clip_low=draw(amount),
        clip_high=draw(amount),
        advantage_scaling=draw(st.sampled_from(["group", "batch", "none"])),
        importance_ratio=True,
        adapter="full",
        loss_averaging=draw(st.none() | st.sampled_from(words_for("loss_averaging"))),
        precision=draw(st.none() | st.sampled_from(words_for("precision"))),
        max_prompt_length=draw(st.none() | st.integers(1, 1 << 17)),
        max_completion_length=draw(st.none() | st.integers(1, 1 << 17)),
    )
    return settings, refreshes * interval, devices


def without_words_for(settings: Settings, **words: set[str]) -> list[str]:
    """Settings whose value a trainer has no word for."""
    return [name for name, known in words.items() if getattr(settings, name) not in known]


def told(settings: Settings, *left_out: str, **updates: Any) -> dict[str, Any]:
    """What reading an export back must give, but for settings that the trainer keeps elsewhere."""
    facts = {name: value for name, value in settings.model_dump().items() if value is not None}
    return {name: value for name, value in (facts | updates).items() if name not in left_out}
