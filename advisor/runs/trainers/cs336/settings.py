"""Settings of CS336's GRPO loops, from their config and from the settings in their rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from advisor.runs.logfiles.table import Table
from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.settings_extractor import Setting, SettingsExtractor, share

IN_ROWS = (
    "group_size",
    "rollout_batch_size",
    "num_rollouts",
    "train_batch_size",
    "num_train_batches",
    "epochs_per_rollout_batch",
    "loss_type",
    "cliprange",
    "cliprange_low",
    "cliprange_high",
    "kl_coef",
)
"""Settings that the rows of such loops repeat, at least in part."""

OTHER_PASSES = ("n_train_steps_per_rollout_batch", "off_policy_updates", "num_epochs")
"""Counts of updates that some loops have in place of epochs, each in its own sense."""

CORRECTED = {"grpo_clip": True, "grpo": True, "grpo_no_clip": False, "noclip": False}
"""Losses with an importance ratio -> whether it is clipped."""

UNCORRECTED = ("no_baseline", "reinforce_with_baseline", "none")
SCALINGS = {"std": "group", "none": "none"}
NOT_A_TASK = {"", ".", "/", "train", "training", "data", "dataset", "datasets", "sft", "processed"}


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of one loop from its config."""
    # ``rollout_batch_size`` and ``train_batch_size`` count completions (the assignment's handout);
    # one optimizer step is taken per ``train_batch_size``.
    extractor = SettingsExtractor(
        {**{key.rpartition(".")[2]: settings[key] for key in settings}, **settings}
    )
    _derive_batches(extractor)
    is_told = any(
        name in extractor.settings for name in ("epochs_per_rollout_batch", *OTHER_PASSES)
    )
    if "minibatches_per_refresh" in extractor.facts and not is_told:
        assumption = "epochs_per_rollout_batch 1 (default of the assignment)"
        extractor.put("epochs_per_refresh", 1, f"epochs_per_refresh 1: {assumption}")
        extractor.assume(assumption)
    _derive_planned_steps(extractor)
    _derive_loss(extractor)
    extractor.take("learning_rate", extractor.amount("learning_rate", "lr"))
    extractor.take("momentum", extractor.amount("adam_beta1", "beta1", "betas.0"))
    extractor.take(
        "max_completion_length",
        extractor.count("max_new_tokens", "sampling_max_tokens", "max_tokens"),
    )
    extractor.take("seed", extractor.count("seed", least=0))
    extractor.take(
        "model",
        extractor.text("model", "model_name", "model_id", "model_name_or_path", "model_path"),
    )
    _derive_task(extractor)
    return extractor.derived()


def observe(table: Table) -> Derived:
    """Settings of one loop from its rows, where one value stands in all that have any."""
    settings: dict[str, Any] = {}
    for key in IN_ROWS:
        column = table.column(key)
        values = np.unique(column[np.isfinite(column)])
        texts = set(table.text(key).values())
        if values.size == 1 and not texts:
            settings[key] = float(values[0])
        elif len(texts) == 1 and not values.size:
            settings[key] = texts.pop()
    extractor = SettingsExtractor(settings)
    _derive_batches(extractor)
    _derive_loss(extractor)
    if "reference_kl" in table.keys and not table.has("reference_kl").any():
        why = "kl_coefficient 0: reference_kl is null in every row, no reference was scored"
        extractor.put("kl_coefficient", 0.0, why)
    return extractor.derived()


def _derive_batches(extractor: SettingsExtractor) -> None:
    """G, P and the two factors of K."""
    extractor.take("group_size", extractor.count("group_size"))
    extractor.take("epochs_per_refresh", extractor.count("epochs_per_rollout_batch"))
    rollout = extractor.count("rollout_batch_size", "num_rollouts")
    train = extractor.count("train_batch_size", "training_batch_size")
    batches = extractor.count("num_train_batches")
    if rollout is not None and train is not None and not rollout.value % train.value:
        count = rollout.value // train.value
        line = f"{rollout} / {train} = {count}"
        extractor.put("minibatches_per_refresh", count, line)
    elif batches is not None:
        line = f"minibatches_per_refresh {batches.value} ({batches.name})"
        extractor.put("minibatches_per_refresh", batches.value, line)
        if rollout is not None and train is None:
            train = Setting(f"{rollout} / {batches} =", rollout.value // batches.value)
    size = extractor.facts.get("group_size")
    if train is not None and size is not None:
        prompts = share(train.value, size)
        line = f"{train} completions / group_size {size} = {prompts:g}"
        extractor.put("prompts_per_step", prompts, line)


def _derive_planned_steps(extractor: SettingsExtractor) -> None:
    refreshes = extractor.count("n_grpo_steps", "num_rollout_steps")
    minibatches = extractor.facts.get("minibatches_per_refresh")
    epochs = extractor.facts.get("epochs_per_refresh")
    if refreshes is None or minibatches is None or epochs is None:
        return
    steps = refreshes.value * minibatches * epochs
    line = f"{refreshes} x {minibatches} mini-batches x {epochs} epochs = {steps}"
    extractor.put("planned_steps", steps, line)


def _derive_loss(extractor: SettingsExtractor) -> None:
    """Importance ratio, its bounds, what advantages are divided by, and the KL term."""
    key, loss = _word(extractor, ("importance_reweighting_method", "loss_type"))
    why = f"({key} {loss})"
    if loss in CORRECTED:
        extractor.put("importance_ratio", True, f"importance_ratio true {why}")
        if CORRECTED[loss]:
            extractor.take("clip_low", extractor.amount("cliprange_low", "cliprange", "clip_range"))
            extractor.take(
                "clip_high", extractor.amount("cliprange_high", "cliprange", "clip_range")
            )
        else:
            extractor.assume(f"the importance ratio is not clipped {why}")
    elif loss in UNCORRECTED:
        extractor.put("importance_ratio", False, f"importance_ratio false {why}")
    switch = extractor.switch("use_std_normalization", "normalize_by_std")
    divisor = _word(extractor, ("advantage_normalizer",))[1]
    if loss == "no_baseline":
        extractor.put("advantage_scaling", "none", f"advantage_scaling none {why}")
        extractor.assume(f"rewards are not centred within groups {why}: not quite GRPO")
    elif switch is not None:
        scaling = "group" if switch.value else "none"
        line = f"advantage_scaling {scaling} ({switch.name} {switch.value})"
        extractor.put("advantage_scaling", scaling, line)
    elif divisor in SCALINGS:
        line = f"advantage_scaling {SCALINGS[divisor]} (advantage_normalizer {divisor})"
        extractor.put("advantage_scaling", SCALINGS[divisor], line)
    extractor.take("kl_coefficient", extractor.amount("kl_coef", "kl_coefficient", "kl_beta"))


def _word(extractor: SettingsExtractor, names: tuple[str, ...]) -> tuple[str, str]:
    """First of some names that holds a word; ``none`` is one here."""
    words = ((name, extractor.settings.get(name)) for name in names)
    return next(((name, word) for name, word in words if isinstance(word, str)), ("", ""))


def _derive_task(extractor: SettingsExtractor) -> None:
    """Name of the dataset, or of the folder that holds it."""
    found = extractor.text("dataset_name", "dataset", "train_path", "data_path", "train_data")
    if found is None:
        return
    path = PurePosixPath(str(found.value).replace("\\", "/"))
    if not path.suffix and not path.is_absolute():
        extractor.put("task", str(found.value), f"task {found.value} ({found.name})")
        return
    names = [path.stem, *(parent.name for parent in path.parents)]
    task = next((name for name in names if name.lower() not in NOT_A_TASK), None)
    if task is not None:
        extractor.put("task", task, f"task {task} ({found.name} {found.value})")
