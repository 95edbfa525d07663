"""Settings under the names of ``TrainingArguments`` and ``GRPOConfig``, as a log gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.settings_extractor import SettingsExtractor

MODEL = (
    "model_name_or_path",
    "model_name",
    "model_id",
    "model_id_or_path",
    "base_model_name_or_path",
    "model",
    "_model",
    "_name_or_path",
)
TASK = ("dataset_name", "dataset", "_dataset")
DEVICES = ("world_size", "num_processes", "global_world_size", "n_gpu", "num_gpus")
LORA_RANK = ("lora_r", "lora_rank", "_lora_rank")
LORA_TARGETS = ("lora_target_modules", "target_modules")
PLANNED = "total_optimization_steps"
"""Length of a run as a trainer prints it, also where ``max_steps`` is -1: so many epochs."""

LORA_KIND = ("tuner_type", "train_type", "sft_type")

NAMES = frozenset(
    {
        *MODEL,
        *TASK,
        *DEVICES,
        *LORA_RANK,
        *LORA_TARGETS,
        *LORA_KIND,
        PLANNED,
        "_n_gpu",
        "adam_beta1",
        "async_generate",
        "beta",
        "bf16",
        "epsilon",
        "epsilon_high",
        "fp16",
        "full_finetuning",
        "generation_batch_size",
        "global_batch_size",
        "gradient_accumulation_steps",
        "kl_in_reward",
        "learning_rate",
        "logging_steps",
        "logging_strategy",
        "lora_alpha",
        "loss_type",
        "lr_scheduler_type",
        "max_completion_length",
        "max_prompt_length",
        "max_staleness",
        "max_steps",
        "num_generations",
        "num_iterations",
        "optim",
        "optim_args",
        "per_device_train_batch_size",
        "scale_rewards",
        "seed",
        "steps_per_generation",
        "total_train_batch_size",
        "use_peft",
        "warmup_ratio",
        "warmup_steps",
        "weight_sync_steps",
    }
)
"""Settings that are looked at, for readers of logs in which much else stands too."""


NOTHING = ("", "None", "null")
"""Not ``none``, which ``scale_rewards`` may be."""


class ArgumentsExtractor(SettingsExtractor):
    """Settings under the names of ``TrainingArguments``, whatever section they stand in."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        values: dict[str, Any] = {}
        # A setting that stands less deep is the run's own, not that of a nested configuration.
        for key in sorted(settings, key=lambda key: key.count(".")):
            value = settings[key]
            if value is None or str(value).strip() in NOTHING:
                continue
            above, _, name = key.rpartition(".")
            if name == "0" and f"{above}.1" not in settings:
                name = above.rpartition(".")[2]  # a list of one
            elif name.isdecimal() and above.rpartition(".")[2] in LORA_TARGETS:
                name = f"{above.rpartition('.')[2]}.{name}"
            if name in ("r", "rank") and ("peft" in key or "lora" in key):
                name = "lora_r"
            if name in ("name", "path") and above.rpartition(".")[2] == "model":
                name = "model_name_or_path"
            values.setdefault(name.replace("-", "_"), value)
        super().__init__(values)

    def word(self, name: str) -> str:
        """A choice as one bare word in lower case, also where it is a switch; empty without it."""
        return str(self.settings.get(name, "")).strip().strip("\"'").lower()
