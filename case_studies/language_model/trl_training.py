"""One run: TRL's arguments in, the folder that a TRL user keeps out."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import trl
import yaml
from datasets import Dataset
from model_folder import model_folder
from model_weights import MODELS, model_of
from prompt_tasks import HELD_OUT_PROMPTS, TRAIN_PROMPTS, Task, exact
from run_plan import Configuration
from shared_prompts import DivergedError, SharedPromptTrainer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

EVALUATED_EVERY, EVALUATED_RARELY = 10, 30

MACHINE: dict[str, Any] = {
    "bf16": True,
    "gradient_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "eval_strategy": "steps",
    "eval_on_start": True,
    "per_device_eval_batch_size": HELD_OUT_PROMPTS,
    "num_generations_eval": 1,
}
"""How it is computed, logged and evaluated: nothing that the policy depends on."""

LORA: dict[str, Any] = {
    "use_peft": True,
    "lora_alpha": 32,
    "lora_target_modules": "all-linear",
}


def arguments(own: Configuration, steps: int, model: str = "") -> dict[str, Any]:
    """Arguments of `trl grpo` as a user would write them, with a constant learning rate."""
    # With 16 completions a step an evaluation costs as much as three steps.
    named = (
        {"model_name_or_path": MODELS[model].name, "eval_steps": EVALUATED_RARELY} if model else {}
    )
    clipped = {"epsilon": own.clip} if own.clip != Configuration(0.0).clip else {}
    return {
        **named,
        "learning_rate": own.rate,
        "lr_scheduler_type": "constant",
        "num_generations": own.group,
        "num_iterations": own.epochs,
        "per_device_train_batch_size": own.completions,
        "steps_per_generation": own.minibatches,
        "beta": own.kl,
        "max_steps": steps,
        **clipped,
        **({"lora_r": own.rank} | LORA if own.lora else {}),
    }


def train(
    folder: Path, task: Task, given: dict[str, Any], seed: int, *, device: str = "cpu"
) -> Path:
    """Train the model on a task; the folder appears whole, or not at all.

    Parameters
    ----------
    folder : Path
        Where the run is to lie; one that is there is finished, and is left as it is.
    given : dict
        Arguments of TRL's ``GRPOConfig`` and ``ModelConfig``, as `advisor export --to trl` writes.
    device : {'cpu', 'cuda'}

    Returns
    -------
    folder : Path
        With ``trainer_state.json`` as TRL writes it, ``config.yaml`` and ``run.json`` (task, seed,
        ``seconds`` of the clock and ``core_seconds`` of the processor, whether weights diverged).
    """
    if folder.is_dir():
        return folder
    warnings.simplefilter("ignore")
    # An adapter is drawn before the trainer sets its seed.
    torch.manual_seed(seed)
    part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    trainer = _trainer(part, task, given, seed, device)
    started, diverged = time.perf_counter(), False
    computed = time.process_time()
    try:
        trainer.train()
    except DivergedError:
        # What a user has then: the log up to this step.
        diverged = True
    trainer.save_state()
    written = json.loads((part / "trainer_state.json").read_text(encoding="utf-8"))
    shutil.rmtree(part)
    part.mkdir()
    _write(part / "trainer_state.json", _compact(written))
    (part / "config.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
    own = {
        "task": task.name,
        "seed": seed,
        "seconds": round(time.perf_counter() - started, 1),
        "core_seconds": round(time.process_time() - computed, 1),
        "device": device,
        "threads": torch.get_num_threads(),
        "diverged": diverged,
    }
    _write(part / "run.json", own)
    if folder.is_dir():
        # Another process was first, with the same seed.
        shutil.rmtree(part)
    else:
        os.replace(part, folder)
    return folder


def _trainer(
    part: Path, task: Task, given: dict[str, Any], seed: int, device: str
) -> SharedPromptTrainer:
    trained = model_of(given)
    weights = model_folder(trained)
    lora = trl.get_peft_config(trl.ModelConfig(**_of(trl.ModelConfig, given)))
    machine = MACHINE | {"use_cpu": device == "cpu", "max_completion_length": task.longest}
    # Frozen weights lie in bfloat16, trained ones in float32.
    made = {"dtype": "float32" if lora is None else "bfloat16", "attn_implementation": "eager"}
    config = trl.GRPOConfig(
        **{"eval_steps": EVALUATED_EVERY, **_of(trl.GRPOConfig, given), **machine},
        model_init_kwargs=made,
        output_dir=str(part),
        seed=seed,
        reward_weights=[1.0, 0.0],
    )
    return SharedPromptTrainer(
        model=str(weights),
        reward_funcs=[_rewards(task, "task"), _rewards(task, "exact")],
        args=config,
        train_dataset=Dataset.from_list(task.prompts(TRAIN_PROMPTS, chat=trained.chat)),
        eval_dataset=Dataset.from_list(
            task.prompts(HELD_OUT_PROMPTS, held_out=True, chat=trained.chat)
        ),
        processing_class=tokenizer(weights),
        peft_config=lora,
    )


def tokenizer(weights: Path) -> PreTrainedTokenizerBase:
    """Of the model, padding on the left as generation needs it."""
    return AutoTokenizer.from_pretrained(weights, padding_side="left")


def _of(kind: type, given: dict[str, Any]) -> dict[str, Any]:
    own = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in given.items() if name in own}


def _rewards(task: Task, name: str) -> Any:
    """A reward function of TRL: what is maximised, or whether the answer is right and alone."""
    score = task.reward if name == "task" else exact

    def scored(completions: list[str], question: list[str], answer: list[str], **_: Any) -> Any:
        return [
            score(text, asked, right)
            for text, asked, right in zip(completions, question, answer, strict=True)
        ]

    scored.__name__ = task.name if name == "task" else name
    return scored


def _compact(state: dict[str, Any]) -> dict[str, Any]:
    """The same file with six digits a number."""
    rows = [{key: _short(value) for key, value in row.items()} for row in state["log_history"]]
    return state | {"log_history": rows}


def _short(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.6g}")
    return value


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value) + "\n", encoding="utf-8")
