"""Settings of verl and EasyR1 by verl's names, and what is derived from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from advisor.runs.trainers.settings_extractor import SettingsExtractor
from advisor.runs.trainers.values import literal, number

ACTOR = "actor_rollout_ref.actor."
OPTIM = f"{ACTOR}optim."

EASYR1 = {
    "data.rollout_batch_size": "data.train_batch_size",
    "worker.actor.global_batch_size": f"{ACTOR}ppo_mini_batch_size",
    "worker.actor.ppo_epochs": f"{ACTOR}ppo_epochs",
    "worker.actor.clip_ratio_low": f"{ACTOR}clip_ratio_low",
    "worker.actor.clip_ratio_high": f"{ACTOR}clip_ratio_high",
    "worker.actor.optim.lr": f"{OPTIM}lr",
    "worker.actor.optim.betas": f"{OPTIM}betas",
    "worker.actor.optim.strategy": f"{OPTIM}optimizer",
    "worker.actor.optim.lr_warmup_steps": f"{OPTIM}lr_warmup_steps",
    "worker.actor.optim.lr_warmup_ratio": f"{OPTIM}lr_warmup_steps_ratio",
    "worker.actor.optim.lr_scheduler_type": f"{OPTIM}lr_scheduler_type",
    "worker.actor.optim.training_steps": f"{OPTIM}total_training_steps",
    "worker.actor.model.model_path": "actor_rollout_ref.model.path",
    "worker.actor.model.lora.rank": "actor_rollout_ref.model.lora_rank",
    "worker.actor.model.lora.alpha": "actor_rollout_ref.model.lora_alpha",
    "worker.rollout.n": "actor_rollout_ref.rollout.n",
    "trainer.max_steps": "trainer.total_training_steps",
}
"""Names in EasyR1, a fork, of settings that mean the same in verl."""

EASYR1_MARKS = ("worker.actor.", "worker.rollout.", "data.rollout_batch_size")

DEFAULTS: dict[str, float] = {
    "data.train_batch_size": 1024,
    f"{ACTOR}ppo_mini_batch_size": 256,
    f"{ACTOR}ppo_epochs": 1,
    f"{ACTOR}kl_loss_coef": 0.001,
    f"{OPTIM}lr_warmup_steps_ratio": 0.0,
    "algorithm.kl_ctrl.kl_coef": 0.001,
    "async_training.require_batches": 1,
    "async_training.trigger_parameter_sync_step": 4,
    "async_training.staleness_threshold": 0.1,
    "trainer.v1.colocate_async.num_warmup_batches": 1,
    "trainer.v1.separate_async.num_warmup_batches": 1,
}
"""Documented defaults of verl, for a factor that a partial source lacks."""

LARGEST = 1e12
"""Numbers above it are no settings of a trainer."""

SUFFIX = re.compile(r"\.(?:parquet|jsonl?|csv|arrow|safetensors)(?:\.gz)?$")

DULL = re.compile(
    r"(?:train|val|test|valid|validation|data|datasets?|processed|verl|parquet|hf|huggingface"
    r"|actor|models?|(?:models?_)?merged|final|last|latest|main|checkpoint-\d+|global_step_\d+"
    r"|\d+|(?:train|test)[-_]\d[\w-]*|[0-9a-f]{12,})",
    re.IGNORECASE,
)
"""Names of files and folders that tell no data set or model from another."""


class SettingsDerivation(SettingsExtractor):
    """Settings by verl's names, and what was derived from them.

    Attributes
    ----------
    is_easyr1 : bool
        Whether the settings are EasyR1's.
    is_whole : bool
        Whether they are a resolved configuration rather than overrides of one.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.is_easyr1 = any(key.startswith(EASYR1_MARKS) for key in settings)
        names = EASYR1 if self.is_easyr1 else {}
        self._called = {names.get(key, key): key for key in settings}
        super().__init__({names.get(key, key): value for key, value in settings.items()})
        # Nobody sets this one by hand, so only a resolved configuration has it.
        self.is_whole = f"{OPTIM}total_training_steps" in self.settings

    @property
    def interval(self) -> int | None:
        """K, optimizer steps per batch of rollouts, where it was derived."""
        counts = [self.facts.get(f"{name}_per_refresh") for name in ("minibatches", "epochs")]
        return None if None in counts else int(counts[0]) * int(counts[1])  # type: ignore[arg-type]

    def has_any(self, *prefixes: str) -> bool:
        """Whether some setting begins with one of these."""
        return any(name.startswith(prefixes) for name in self.settings)

    def call(self, name: str) -> str:
        """Name of a setting as the user wrote it, without its path."""
        return self._called.get(name, name).rpartition(".")[2]

    def number(self, name: str) -> float | None:
        """A number, also where it is quoted; None where the setting is none."""
        value = number(self.settings.get(name))
        return None if value is None or abs(value) >= LARGEST else value

    def whole(self, name: str, least: int = 1) -> int | None:
        """A whole number of at least ``least``."""
        value = self.number(name)
        return int(value) if value is not None and value == int(value) >= least else None

    def word(self, name: str) -> str | None:
        """Text that is neither an interpolation nor hydra's mark of a missing value."""
        value = literal(self.settings.get(name))
        if not isinstance(value, str) or "${" in value or value == "???":
            return None
        return value.strip() or None

    def listed(self, name: str) -> list[str]:
        """Entries of a list, one name each (``betas.0``) or as text: ``"['a', 'b']"``."""
        value = self.settings.get(name)
        if isinstance(value, str):
            entries: list[Any] = value.strip().strip("[]()").split(",")
        else:
            entries = [value, *(self.settings.get(f"{name}.{place}") for place in range(16))]
        bare = [str(entry).strip().strip("'\"").strip() for entry in entries if entry is not None]
        return [entry for entry in bare if entry and "${" not in entry]

    def factor(self, name: str) -> tuple[float, str]:
        """A number and its text in the arithmetic; verl's default where it is not stated."""
        value = self.number(name)
        if value is not None:
            return value, f"{self.call(name)} {value:g}"
        default = DEFAULTS[name]
        read = f"{self.call(name)} {default:g} (verl's default)"
        self.assume(f"{read}, which the settings do not state")
        return default, read

    def take_over(self, ours: str, value: Any, name: str) -> None:
        """Note a setting that only changes its name."""
        shown = f"{value:g}" if isinstance(value, float) else value
        self.put(ours, value, f"{ours} {shown} ({self.call(name)})")


def bare_name(path: str) -> str:
    """What a path calls its model or data set.

    Examples
    --------
    >>> bare_name("~/data/gsm8k/train.parquet")
    'gsm8k'
    >>> bare_name("/models/Qwen2.5-7B-Instruct")
    'Qwen2.5-7B-Instruct'
    """
    cached = re.search(r"models--([^/]+?)--([^/]+)", path)
    if cached is not None:
        return f"{cached.group(1)}/{cached.group(2)}"
    is_id = re.fullmatch(r"\w[\w.-]*/[\w.-]+(?:@\w+)?", path) and not SUFFIX.search(path)
    if is_id:
        return path.partition("@")[0]
    parts = [SUFFIX.sub("", part) for part in PurePosixPath(path.replace("\\", "/")).parts]
    named = [part for part in parts if part.strip("/~.") and not DULL.fullmatch(part)]
    return named[-1] if named else path
