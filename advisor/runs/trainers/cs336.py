"""GRPO loops of Stanford's CS336 (assignment 5): settings from their config and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from advisor.runs.logfiles.table import Table
from advisor.runs.trainers.derived import Derived, Setting, SettingsExtractor, share
from advisor.runs.trainers.registry import read_trainer

OTHER_PASSES = ("n_train_steps_per_rollout_batch", "off_policy_updates", "num_epochs")
"""Counts of updates that some loops have in place of epochs, each in its own sense."""

CORRECTED = {"grpo_clip": True, "grpo": True, "grpo_no_clip": False, "noclip": False}
"""Losses with an importance ratio -> whether it is clipped."""

UNCORRECTED = ("no_baseline", "reinforce_with_baseline", "none")
SCALINGS = {"std": "group", "none": "none"}
NOT_A_TASK = {"", ".", "/", "train", "training", "data", "dataset", "datasets", "sft", "processed"}


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of one loop from its config."""
    # One optimizer step is taken per ``train_batch_size``.
    extractor = SettingsExtractor(
        {**{key.rpartition(".")[2]: settings[key] for key in settings}, **settings}, "cs336"
    )
    _derive_batches(extractor)
    is_stated = any(
        name in extractor.settings for name in ("epochs_per_rollout_batch", *OTHER_PASSES)
    )
    if "minibatches_per_refresh" in extractor.facts and not is_stated:
        assumption = "epochs_per_rollout_batch 1 (default of the assignment)"
        extractor.put("epochs_per_refresh", 1, f"epochs_per_refresh 1: {assumption}")
        extractor.assume(assumption)
    refreshes, interval = extractor.count("refreshes"), extractor.interval
    if refreshes is not None and interval is not None:
        minibatches, epochs = (
            extractor.facts[f"{name}_per_refresh"] for name in ("minibatches", "epochs")
        )
        steps = refreshes.value * interval
        line = f"{refreshes} x {minibatches} mini-batches x {epochs} epochs = {steps}"
        extractor.put("planned_steps", steps, line)
    _derive_loss(extractor)
    extractor.take_over("learning_rate", "momentum", "max_completion_length", "seed", "model")
    _derive_task(extractor)
    return extractor.derived()


def observe(table: Table) -> Derived:
    """Settings of one loop from its rows, where one value stands in all that have any."""
    settings: dict[str, Any] = {}
    for key in TRAINER.keys[0].observed:
        column = table.column(key)
        values = np.unique(column[np.isfinite(column)])
        texts = set(table.text(key).values())
        if values.size == 1 and not texts:
            settings[key] = float(values[0])
        elif len(texts) == 1 and not values.size:
            settings[key] = texts.pop()
    extractor = SettingsExtractor(settings, "cs336")
    _derive_batches(extractor)
    _derive_loss(extractor)
    if "reference_kl" in table.keys and not table.has("reference_kl").any():
        why = "kl_coefficient 0: reference_kl is null in every row, no reference was scored"
        extractor.put("kl_coefficient", 0.0, why)
    return extractor.derived()


def _derive_batches(extractor: SettingsExtractor) -> None:
    """G, P and the two factors of K."""
    extractor.take_over("group_size", "epochs_per_refresh")
    rollout, train = extractor.count("rollout"), extractor.count("train")
    batches = extractor.count("num_train_batches")
    if rollout is not None and train is not None and not rollout.value % train.value:
        count = rollout.value // train.value
        line = f"{rollout} / {train} = {count}"
        extractor.put("minibatches_per_refresh", count, line)
    elif batches is not None:
        extractor.take("minibatches_per_refresh", batches)
        if rollout is not None and train is None:
            train = Setting(f"{rollout} / {batches} =", rollout.value // batches.value)
    size = extractor.facts.get("group_size")
    if train is not None and size is not None:
        prompts = share(train.value, size)
        line = f"{train} completions / group_size {size} = {prompts:g}"
        extractor.put("prompts_per_step", prompts, line)


def _derive_loss(extractor: SettingsExtractor) -> None:
    """Importance ratio, its bounds, what advantages are divided by, and the KL term."""
    extractor.take_over("kl_coefficient")
    # Not by ``text``: ``none`` is a method here.
    methods = {name: extractor.settings.get(name) for name in extractor.names["loss"]}
    key, loss = next(
        ((name, word) for name, word in methods.items() if isinstance(word, str)), ("", "")
    )
    why = f"{key} {loss}"
    if loss in CORRECTED:
        extractor.note("importance_ratio", True, why)
        if CORRECTED[loss]:
            extractor.take_over("clip_low", "clip_high")
        else:
            extractor.assume(f"the importance ratio is not clipped ({why})")
    elif loss in UNCORRECTED:
        extractor.note("importance_ratio", False, why)
    divided = extractor.switch("divided")
    divisor = str(extractor.settings.get("advantage_normalizer"))
    if loss == "no_baseline":
        extractor.note("advantage_scaling", "none", why)
        extractor.assume(f"rewards are not centred within groups ({why}): not quite GRPO")
    elif divided is not None:
        extractor.note("advantage_scaling", "group" if divided.value else "none", str(divided))
    elif divisor in SCALINGS:
        extractor.note("advantage_scaling", SCALINGS[divisor], f"advantage_normalizer {divisor}")


def _derive_task(extractor: SettingsExtractor) -> None:
    """Name of the dataset, or of the folder that holds it."""
    found = extractor.text("task")
    if found is None:
        return
    path = PurePosixPath(str(found.value).replace("\\", "/"))
    if not path.suffix and not path.is_absolute():
        extractor.take("task", found)
        return
    names = [path.stem, *(parent.name for parent in path.parents)]
    task = next((name for name in names if name.lower() not in NOT_A_TASK), None)
    if task is not None:
        extractor.note("task", task, str(found))


TRAINER = read_trainer("cs336", derive=derive, observe=observe)
