"""From TRL pilots to a TRL run as advised, with the callback: as a user would do it, on a CPU.

python case_studies/trl_end_to_end/run.py [--out FOLDER]      # needs the extra trl; three minutes

A random one-layer Llama and a tokenizer of eight letters, made here: nothing is downloaded. The
reward is the share of a completion's letters that are those of the prompt.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import trl
import yaml
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

import advisor
from advisor.integrations.trl_callback import AdvisorCallback
from advisor.study import load_study

HERE = Path(__file__).resolve().parent
LETTERS, LENGTH, PROMPTS = "abcdefgh", 6, 8
PILOT_STEPS, STEPS = 40, 120
PILOTS = [(1e-3, 4, 1), (1e-3, 8, 1), (3e-3, 8, 1), (3e-3, 4, 2), (1e-2, 8, 1), (3e-2, 8, 1)]
"""Learning rate, group size, iterations."""

FIXED: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
    "max_completion_length": LENGTH,
}


def tokenizer() -> PreTrainedTokenizerFast:
    """Eight letters, padding and an end."""
    words = {word: place for place, word in enumerate(["<pad>", "<eos>", *LETTERS])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )


def rewarded(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
    """Share of the letters allowed that are the prompt's."""
    return [text.count(prompt) / LENGTH for prompt, text in zip(prompts, completions, strict=True)]


def train(folder: Path, arguments: dict[str, Any], seed: int, callbacks: list[Any]) -> list[Any]:
    """Train a fresh copy of the model; what TRL leaves behind lies in the folder."""
    words = tokenizer()
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
        reward_funcs=rewarded,
        args=trl.GRPOConfig(**{**arguments, **FIXED, "output_dir": str(folder), "seed": seed}),
        train_dataset=Dataset.from_list([{"prompt": letter} for letter in LETTERS * 8]),
        processing_class=words,
        callbacks=callbacks,
    )
    trainer.train()
    trainer.save_state()
    return [row["reward"] for row in trainer.state.log_history if "reward" in row]


def command(*words: object) -> str:
    """Run the advisor as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "advisor", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return done.stdout


def main() -> None:
    """Pilots, advice, export, the run, and what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=None, help="folder for the runs")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = asked.out or Path(tempfile.mkdtemp())
    took: dict[str, float] = {}
    started = time.perf_counter()
    for rate, group, iterations in PILOTS:
        arguments = {
            "learning_rate": rate,
            "lr_scheduler_type": "constant",
            "num_generations": group,
            "num_iterations": iterations,
            "per_device_train_batch_size": PROMPTS * group,
            "steps_per_generation": 1,
            "max_steps": PILOT_STEPS,
        }
        name = f"lr{rate:g}_g{group}_i{iterations}"
        rewards = train(folder / "pilots" / name, arguments, 1, [])
        print(name, f"{np.mean(rewards[:5]):.2f} -> {np.mean(rewards[-5:]):.2f}", file=sys.stderr)
    took["pilots"] = time.perf_counter() - started
    started = time.perf_counter()
    given = ("--set", "model=tiny-llama", "--set", "task=letters", "--set", "parameters=1.2e4")
    asked_for = ("--steps", STEPS, "--priors", "small_models", "--quiet", *given)
    said = command("advise", folder / "pilots", "--out", folder / "study", *asked_for)
    print(said, file=sys.stderr)
    posterior, advice = load_study(folder / "study")
    took["advice"] = time.perf_counter() - started
    started = time.perf_counter()
    exported = yaml.safe_load(command("export", folder / "study", "--to", "trl"))
    callback = AdvisorCallback(posterior, task="letters", model="tiny-llama")
    rewards = train(folder / "full", exported, 2, [callback])
    took["run"] = time.perf_counter() - started
    last = callback.last.update if callback.last is not None else None
    final = float(np.mean(rewards[-12:]))
    result = {
        "advised": {
            "kind": advice.kind,
            "learning_rate": advice.settings.learning_rate,
            "group_size": advice.settings.group_size,
            "refresh_interval": advice.settings.refresh_interval,
            "p_stable": advice.stability.probability,
            "reward": advice.reward.model_dump(),
        },
        "came": {"reward": final, "rows": len(rewards)},
        "callback": None if last is None else {"step": last.step, "seconds": last.seconds},
        "seconds": {name: round(value, 1) for name, value in took.items()},
        "versions": {"trl": trl.__version__, "advisor": advisor.__version__},
    }
    (HERE / "trl.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
