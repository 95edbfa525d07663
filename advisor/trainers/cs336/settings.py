"""Settings of CS336's GRPO loops, from their config and from the settings in their rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from advisor.logfiles.table import Table
from advisor.trainers.derived import Derived
from advisor.trainers.settings_extractor import Taking, share

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
    """Settings of one loop from its config.

    Parameters
    ----------
    settings : mapping of str to object
        Flattened; sections (``training.group_size``) do not matter.

    Returns
    -------
    derived : Derived

    Notes
    -----
    ``rollout_batch_size`` and ``train_batch_size`` count completions (the assignment's handout);
    one optimizer step is taken per ``train_batch_size``.
    """
    taking = Taking({**{key.rpartition(".")[2]: settings[key] for key in settings}, **settings})
    _take_batches(taking)
    is_told = any(name in taking.settings for name in ("epochs_per_rollout_batch", *OTHER_PASSES))
    if "minibatches_per_refresh" in taking.facts and not is_told:
        said = "epochs_per_rollout_batch 1 (default of the assignment)"
        taking.keep("epochs_per_refresh", 1, f"epochs_per_refresh 1: {said}")
        taking.assumptions.append(said)
    _take_planned_steps(taking)
    _take_loss(taking)
    taking.keep_amount("learning_rate", ("learning_rate", "lr"))
    taking.keep_amount("momentum", ("adam_beta1", "beta1", "betas.0"))
    taking.keep_count(
        "max_completion_length", ("max_new_tokens", "sampling_max_tokens", "max_tokens")
    )
    taking.keep_count("seed", ("seed",), 0)
    taking.keep_text(
        "model", ("model", "model_name", "model_id", "model_name_or_path", "model_path")
    )
    _take_task(taking)
    return taking.derived()


def observe(table: Table) -> Derived:
    """Settings of one loop from its rows, where one value stands in all that have any.

    Parameters
    ----------
    table : Table
        Rows of every kind, with the cells of ``IN_ROWS``.

    Returns
    -------
    derived : Derived
    """
    settings: dict[str, Any] = {}
    for key in IN_ROWS:
        column = table.column(key)
        values = np.unique(column[np.isfinite(column)])
        texts = set(table.text(key).values())
        if values.size == 1 and not texts:
            settings[key] = float(values[0])
        elif len(texts) == 1 and not values.size:
            settings[key] = texts.pop()
    taking = Taking(settings)
    _take_batches(taking)
    _take_loss(taking)
    if "reference_kl" in table.keys and not table.has("reference_kl").any():
        why = "kl_coefficient 0: reference_kl is null in every row, no reference was scored"
        taking.keep("kl_coefficient", 0.0, why)
    return taking.derived()


def _take_batches(taking: Taking) -> None:
    """G, P and the two factors of K."""
    taking.keep_count("group_size", ("group_size",))
    taking.keep_count("epochs_per_refresh", ("epochs_per_rollout_batch",))
    rollout = taking.count(("rollout_batch_size", "num_rollouts"))
    train = taking.count(("train_batch_size", "training_batch_size"))
    batches = taking.count(("num_train_batches",))
    if rollout is not None and train is not None and not rollout[1] % train[1]:
        count = rollout[1] // train[1]
        line = f"{rollout[0]} {rollout[1]} / {train[0]} {train[1]} = {count}"
        taking.keep("minibatches_per_refresh", count, line)
    elif batches is not None:
        line = f"minibatches_per_refresh {batches[1]} ({batches[0]})"
        taking.keep("minibatches_per_refresh", batches[1], line)
        if rollout is not None and train is None:
            train = (
                f"{rollout[0]} {rollout[1]} / {batches[0]} {batches[1]} =",
                rollout[1] // batches[1],
            )
    size = taking.facts.get("group_size")
    if train is not None and size is not None:
        prompts = share(train[1], size)
        line = f"{train[0]} {train[1]} completions / group_size {size} = {prompts:g}"
        taking.keep("prompts_per_step", prompts, line)


def _take_planned_steps(taking: Taking) -> None:
    refreshes = taking.count(("n_grpo_steps", "num_rollout_steps"))
    minibatches = taking.facts.get("minibatches_per_refresh")
    epochs = taking.facts.get("epochs_per_refresh")
    if refreshes is None or minibatches is None or epochs is None:
        return
    steps = refreshes[1] * minibatches * epochs
    line = f"{refreshes[0]} {refreshes[1]} x {minibatches} mini-batches x {epochs} epochs = {steps}"
    taking.keep("planned_steps", steps, line)


def _take_loss(taking: Taking) -> None:
    """Importance ratio, its bounds, what advantages are divided by, and the KL term."""
    key, loss = _word(taking, ("importance_reweighting_method", "loss_type"))
    why = f"({key} {loss})"
    if loss in CORRECTED:
        taking.keep("importance_ratio", True, f"importance_ratio true {why}")
        if CORRECTED[loss]:
            taking.keep_amount("clip_low", ("cliprange_low", "cliprange", "clip_range"))
            taking.keep_amount("clip_high", ("cliprange_high", "cliprange", "clip_range"))
        else:
            taking.assumptions.append(f"the importance ratio is not clipped {why}")
    elif loss in UNCORRECTED:
        taking.keep("importance_ratio", False, f"importance_ratio false {why}")
    switch = taking.switch(("use_std_normalization", "normalize_by_std"))
    divisor = _word(taking, ("advantage_normalizer",))[1]
    if loss == "no_baseline":
        taking.keep("advantage_scaling", "none", f"advantage_scaling none {why}")
        taking.assumptions.append(f"rewards are not centred within groups {why}: not quite GRPO")
    elif switch is not None:
        scaling = "group" if switch.value else "none"
        line = f"advantage_scaling {scaling} ({switch.key} {switch.value})"
        taking.keep("advantage_scaling", scaling, line)
    elif divisor in SCALINGS:
        line = f"advantage_scaling {SCALINGS[divisor]} (advantage_normalizer {divisor})"
        taking.keep("advantage_scaling", SCALINGS[divisor], line)
    taking.keep_amount("kl_coefficient", ("kl_coef", "kl_coefficient", "kl_beta"))


def _word(taking: Taking, names: tuple[str, ...]) -> tuple[str, str]:
    """First of some names that holds a word; ``none`` is one here."""
    words = ((name, taking.settings.get(name)) for name in names)
    return next(((name, word) for name, word in words if isinstance(word, str)), ("", ""))


def _take_task(taking: Taking) -> None:
    """Name of the dataset, or of the folder that holds it."""
    found = taking.text(("dataset_name", "dataset", "train_path", "data_path", "train_data"))
    if found is None:
        return
    path = PurePosixPath(str(found.value).replace("\\", "/"))
    if not path.suffix and not path.is_absolute():
        taking.keep("task", str(found.value), f"task {found.value} ({found.key})")
        return
    names = [path.stem, *(parent.name for parent in path.parents)]
    task = next((name for name in names if name.lower() not in NOT_A_TASK), None)
    if task is not None:
        taking.keep("task", task, f"task {task} ({found.key} {found.value})")
