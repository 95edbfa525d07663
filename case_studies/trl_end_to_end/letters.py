"""A task of eight letters and a model of twelve thousand parameters, trained by TRL as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trl
import yaml
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

LETTERS, LENGTH, PROMPTS = "abcdefgh", 6, 8

FIXED: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_completion_length": LENGTH,
}
"""What this machine needs, and the length of an answer."""


def grpo(rate: float, group: int, iterations: int, steps: int) -> dict[str, Any]:
    """Arguments of a `GRPOConfig` as a user would write them."""
    return {
        "learning_rate": rate,
        "lr_scheduler_type": "constant",
        "num_generations": group,
        "num_iterations": iterations,
        "per_device_train_batch_size": PROMPTS * group,
        "steps_per_generation": 1,
        "max_steps": steps,
    }


def train(folder: Path, arguments: dict[str, Any], seed: int, callbacks: list[Any]) -> list[float]:
    """Train a fresh copy of the model; what TRL leaves behind lies in the folder.

    Returns
    -------
    rewards : list of float
        Of each logged step.
    """
    words = _tokenizer()
    set_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            vocab_size=len(words),
        )
    )
    folder.mkdir(parents=True, exist_ok=True)
    # What a user keeps beside a run: the config that started it.
    (folder / "config.yaml").write_text(yaml.safe_dump(arguments), encoding="utf-8")
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=_rewarded,
        args=trl.GRPOConfig(**{**arguments, **FIXED, "output_dir": str(folder), "seed": seed}),
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in LETTERS * 8]),
        processing_class=words,
        callbacks=callbacks,
    )
    trainer.train()
    trainer.save_state()
    return [row["reward"] for row in trainer.state.log_history if "reward" in row]


def _tokenizer() -> PreTrainedTokenizerFast:
    """Eight letters, padding and an end."""
    words = {word: place for place, word in enumerate(["<pad>", "<eos>", *LETTERS])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )


def _rewarded(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
    """Share of the letters allowed that are the prompt's."""
    return [text.count(prompt) / LENGTH for prompt, text in zip(prompts, completions, strict=True)]
