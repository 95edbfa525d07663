"""Settings under the names of ``TrainingArguments`` and ``GRPOConfig``, as a log gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from advisor.trainers.values import literal, number

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
PLANNED = "total_optimization_steps"
"""Length of a run as a trainer prints it, also where ``max_steps`` is -1: so many epochs."""

LORA_KIND = ("tuner_type", "train_type", "sft_type")

NAMES = frozenset(
    {
        *MODEL,
        *TASK,
        *DEVICES,
        *LORA_RANK,
        *LORA_KIND,
        PLANNED,
        "_n_gpu",
        "adam_beta1",
        "async_generate",
        "beta",
        "epsilon",
        "epsilon_high",
        "full_finetuning",
        "generation_batch_size",
        "global_batch_size",
        "gradient_accumulation_steps",
        "kl_in_reward",
        "learning_rate",
        "logging_steps",
        "logging_strategy",
        "loss_type",
        "lr_scheduler_type",
        "max_completion_length",
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


class Found(NamedTuple):
    """A number and the name it stands under."""

    name: str
    value: float

    def __str__(self) -> str:
        return f"{self.name} {self.value:.12g}"


class Given:
    """Settings, and what was made of them so far.

    Parameters
    ----------
    settings : mapping of str to object
        Flattened with dots; text may be a number, a quoted text or an expression of the code that
        set it, and an expression counts as not given.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._values: dict[str, Any] = {}
        # A setting that stands less deep is the run's own, not that of a nested configuration.
        for key in sorted(settings, key=lambda key: key.count(".")):
            value = settings[key]
            if value is None or str(value).strip() in NOTHING:
                continue
            above, _, name = key.rpartition(".")
            if name == "0" and f"{above}.1" not in settings:
                name = above.rpartition(".")[2]  # a list of one
            if name == "r" and ("peft" in key or "lora" in key):
                name = "lora_r"
            self._values.setdefault(name.replace("-", "_"), value)
        self.facts: dict[str, Any] = {}
        self.arithmetic: dict[str, str] = {}
        self.assumptions: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def set(self, name: str, value: Any, arithmetic: str) -> None:
        """File a fact and how it was reached."""
        self.facts[name], self.arithmetic[name] = value, arithmetic

    def number(self, *names: str) -> Found | None:
        """First of the settings that is a finite number."""
        for name in names:
            value = number(self._values.get(name))
            if value is not None:
                return Found(name, value)
        return None

    def count(self, *names: str) -> Found | None:
        """First of the settings that is a whole number of at least one."""
        found = [self.number(name) for name in names]
        return next((f for f in found if f and f.value >= 1 and f.value == int(f.value)), None)

    def text(self, *names: str) -> tuple[str, str] | None:
        """Name and value of the first of the settings that is text."""
        for name in names:
            value = literal(self._values.get(name))
            if isinstance(value, str):
                return name, value
        return None

    def word(self, name: str) -> str:
        """A choice as one bare word in lower case, also where it is a switch; empty without it."""
        return str(self._values.get(name, "")).strip().strip("\"'").lower()

    def is_on(self, name: str) -> bool | None:
        """Whether a switch is on, None where it is not given."""
        value = literal(self._values.get(name))
        return value if isinstance(value, bool) else None
