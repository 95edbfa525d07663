"""Trainers of which tables are read with settings: Tinker, CS336's loops, NeMo-RL, prime-rl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from advisor.runs.logfiles.logged import Table
from advisor.runs.trainers.derived import Derived, SettingsExtractor, TrainerSetting, share
from advisor.runs.trainers.registry import read_trainer


def derive_tinker(settings: Mapping[str, Any]) -> Derived:
    """Settings of a cookbook run."""
    # One row of ``metrics.jsonl`` is one batch of rollouts, cut into ``num_substeps`` optimizer
    # steps, each sample used once (``tinker_cookbook/rl/train.py``, ``train_step``).
    doubled = {key.replace("X_", ""): value for key, value in settings.items() if "X_" in key}
    extractor = SettingsExtractor({**doubled, **settings}, "tinker")
    substeps = extractor.defaulted("substeps", "tinker-cookbook's")
    extractor.take("minibatches_per_refresh", substeps)
    extractor.note("epochs_per_refresh", 1, "tinker uses each sample once")
    if "adapter_rank" in extractor.facts:
        extractor.note("adapter", "lora", f"lora_rank {extractor.facts['adapter_rank']}")
    groups, planned = extractor.count("groups"), extractor.count("max_steps")
    times = int(substeps.value)
    if groups is not None:
        prompts = share(groups.value, times)
        extractor.put("prompts_per_step", prompts, f"{groups} / {substeps} = {prompts:g}")
    if planned is not None:
        steps = planned.value * times
        extractor.put("planned_steps", steps, f"{planned} x {substeps} = {steps}")
    most = extractor.count("staleness", least=0)
    if most is not None:
        lag = most.value * times
        extractor.put("lag", float(lag), f"{most} x {substeps} = {lag}")
        if lag:
            extractor.assume_as("lag", lag=lag)
    elif "async_config" in settings:
        extractor.note("lag", 0.0, "async_config is empty: synchronous")
    _tinker_loss(extractor)
    if any(mark in settings for mark in extractor.data["keys"]["setting_marks"]):
        extractor.note("optimizer", "adam", "tinker.AdamParams")
        extractor.note("momentum", 0.9, "beta1 in tinker_cookbook/rl/train.py")
        extractor.note("advantage_scaling", "none", "rewards are centred")
        extractor.assume_as("constants")
    if extractor.is_on("remove_constant_reward_groups"):
        extractor.assume_as("filtered")
    return extractor.derived()


def _tinker_loss(extractor: SettingsExtractor) -> None:
    loss = extractor.text("importance_ratio")
    if loss is not None and loss.value == "ppo":
        low, high = (
            found and replace(found, name=found.name.removeprefix("loss_fn_config."))
            for found in (extractor.amount("ratio_low"), extractor.amount("ratio_high"))
        )
        extractor.take_ratio_bounds(low, high)


TINKER = read_trainer("tinker", derive=derive_tinker)


def derive_cs336(settings: Mapping[str, Any]) -> Derived:
    """Settings of one loop from its config."""
    # One optimizer step is taken per ``train_batch_size``.
    extractor = SettingsExtractor(
        {**{key.rpartition(".")[2]: settings[key] for key in settings}, **settings}, "cs336"
    )
    _cs336_batches(extractor)
    # Counts of updates that some loops have in place of epochs, each in its own sense.
    others = ("n_train_steps_per_rollout_batch", "off_policy_updates", "num_epochs")
    is_stated = not extractor.settings.keys().isdisjoint(("epochs_per_rollout_batch", *others))
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
    _cs336_loss(extractor)
    _cs336_task(extractor)
    return extractor.derived()


def observe_cs336(table: Table) -> Derived:
    """Settings of one loop from its rows, where one value stands in all that have any."""
    constants = {key: table.constant(key) for key in CS336.keys[0].observed}
    settings = {key: value for key, value in constants.items() if value is not None}
    extractor = SettingsExtractor(settings, "cs336")
    _cs336_batches(extractor)
    _cs336_loss(extractor)
    if "reference_kl" in table.keys and not table.has("reference_kl").any():
        why = "kl_coefficient 0: reference_kl is null in every row, no reference was scored"
        extractor.put("kl_coefficient", 0.0, why)
    return extractor.derived()


def _cs336_batches(extractor: SettingsExtractor) -> None:
    """G, P and the two factors of K."""
    rollout, train = extractor.count("rollout"), extractor.count("train")
    batches = extractor.count("num_train_batches")
    if rollout is not None and train is not None and not rollout.value % train.value:
        count = rollout.value // train.value
        line = f"{rollout} / {train} = {count}"
        extractor.put("minibatches_per_refresh", count, line)
    elif batches is not None:
        extractor.take("minibatches_per_refresh", batches)
        if rollout is not None and train is None:
            train = TrainerSetting(f"{rollout} / {batches} =", rollout.value // batches.value)
    size = extractor.facts.get("group_size")
    if train is not None and size is not None:
        prompts = share(train.value, size)
        line = f"{train} completions / group_size {size} = {prompts:g}"
        extractor.put("prompts_per_step", prompts, line)


def _cs336_loss(extractor: SettingsExtractor) -> None:
    """Importance ratio, its bounds, what advantages are divided by, and the KL term."""
    # Not by ``text``: ``none`` is a method here.
    found = ((name, extractor.settings.get(name)) for name in extractor.names["loss"])
    key, loss = next((one for one in found if isinstance(one[1], str)), ("", ""))
    why, is_clipped = f"{key} {loss}", extractor.data["corrected"].get(loss)
    if is_clipped is not None:
        extractor.note("importance_ratio", True, why)
        if is_clipped:
            extractor.take_over("clip_low", "clip_high")
        else:
            extractor.assume(f"the importance ratio is not clipped ({why})")
    elif loss in ("no_baseline", "reinforce_with_baseline", "none"):
        extractor.note("importance_ratio", False, why)
    divided = extractor.switch("divided")
    divisor = str(extractor.settings.get("advantage_normalizer"))
    if loss == "no_baseline":
        extractor.note("advantage_scaling", "none", why)
        extractor.assume(f"rewards are not centred within groups ({why}): not quite GRPO")
    elif divided is not None:
        extractor.note("advantage_scaling", "group" if divided.value else "none", str(divided))
    elif (scaling := extractor.data["scalings"].get(divisor)) is not None:
        extractor.note("advantage_scaling", scaling, f"advantage_normalizer {divisor}")


def _cs336_task(extractor: SettingsExtractor) -> None:
    """Name of the dataset, or of the folder that holds it."""
    found = extractor.text("task")
    if found is None:
        return
    path = PurePosixPath(str(found.value).replace("\\", "/"))
    if not path.suffix and not path.is_absolute():
        extractor.take("task", found)
        return
    names, dull = [path.stem, *(one.name for one in path.parents)], extractor.data["not_a_task"]
    task = next((name for name in names if name.lower() not in dull), None)
    if task is not None:
        extractor.note("task", task, str(found))


CS336 = read_trainer("cs336", derive=derive_cs336, observe=observe_cs336)


def derive_nemo_rl(settings: Mapping[str, Any]) -> Derived:
    """Settings of NeMo-RL's GRPO."""
    extractor = SettingsExtractor(settings, "nemo_rl")
    prompts, trained = extractor.count("prompts"), extractor.count("trained")
    size, planned = extractor.count("group_size"), extractor.count("planned_steps")
    if (divided := extractor.switch("divided")) is not None:
        extractor.note("advantage_scaling", "group" if divided.value else "none", str(divided))
    if prompts is None or trained is None or size is None:
        return extractor.derived()
    # Each completion is trained on once.
    times = max(1, prompts.value * size.value // trained.value)
    line = f"{prompts} x {size} / {trained} = {times}"
    extractor.put("minibatches_per_refresh", times, line)
    extractor.note("epochs_per_refresh", 1, "NeMo-RL uses each sample once")
    own = share(prompts.value, times)
    extractor.put("prompts_per_step", own, f"{prompts} / {times} = {own:g}")
    if planned is not None:
        steps = planned.value * times
        extractor.put("planned_steps", steps, f"{planned} x {times} = {steps}")
    return extractor.derived()


AGES = ("async_level", "avg_sampled_policy_age")
"""Ends of keys of how old samples are: prime-rl's asynchronous level, torchforge's policies."""


def observe_age(table: Table) -> Derived:
    """Lag that a trainer logs, whose batches of rollouts have one optimizer step each."""
    found = Derived()
    for key in table.keys:
        ages = table.column(key) if key.lower().replace(" ", "_").endswith(AGES) else np.zeros(0)
        if (known := ages[np.isfinite(ages)]).size:
            found.put("lag", float(known.mean()), f"{key} {known.mean():.3g}, in optimizer steps")
    return found


TRAINERS = (
    *(TINKER, CS336, read_trainer("nemo_rl", derive=derive_nemo_rl)),
    *(read_trainer(name, observe=observe_age) for name in ("prime_rl", "torchforge")),
)
