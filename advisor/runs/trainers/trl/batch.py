"""Prompts per optimizer step and the refresh interval, from a trainer's batch sizes."""

from __future__ import annotations

from advisor.runs.trainers.common_keys import are_passes
from advisor.runs.trainers.derived import SettingsExtractor

PER_DEVICE = "per_device_train_batch_size"


def set_prompts(extractor: SettingsExtractor) -> None:
    """Derive prompts per optimizer step."""
    # ``per_device_train_batch_size`` counts completions since TRL 0.15; in 0.14 it counted prompts.
    # Unsloth raises it to ``num_generations`` where a group would not fit: before 2025-11 the batch
    # of a device, since then the batch of a step. No setting tells the version.
    group, counted = extractor.count("num_generations"), _completions(extractor)
    if group is None or counted is None:
        return
    completions, how = counted
    prompts = completions / group.value
    per_device = extractor.count(PER_DEVICE)
    # A batch of rollouts whose size is stated need not end with an optimizer step.
    is_stated = extractor.count("steps_per_generation", "generation_batch_size") is not None
    if per_device is None or is_stated:
        extractor.put("prompts_per_step", prompts, f"{how} / {group} = {prompts:.12g}")
        return
    raised = completions / per_device.value  # with one group per device and pass
    if prompts == int(prompts):
        other = f"in TRL 0.14 it counts prompts, which would make {completions:g} prompts"
        if per_device.value % group.value and "total_train_batch_size" not in extractor.settings:
            other += f"; Unsloth before 2025-11 raises it to {group}: {raised:g} prompts"
        extractor.assume(
            f"{PER_DEVICE} was taken to count completions, as in TRL 0.15 and later ({other})"
        )
        extractor.put("prompts_per_step", prompts, f"{how} / {group} = {prompts:.12g}")
        return
    why = f"{how} = {completions:g} is no multiple of {group}, so {PER_DEVICE}"
    if raised == completions:
        extractor.assume(
            f"{why} counts prompts (TRL 0.14) or was raised to num_generations (Unsloth)"
        )
        extractor.put(
            "prompts_per_step", completions, f"{how}, counted in prompts = {completions:g}"
        )
        return
    extractor.assume(
        f"prompts_per_step was left out: {why} either counts prompts (TRL 0.14, "
        f"{completions:g} prompts) or was raised to num_generations (Unsloth, {raised:g} prompts)"
    )


def set_refresh(extractor: SettingsExtractor) -> None:
    """Derive mini-batches and epochs per batch of rollouts, and the age of the samples."""
    passes = extractor.count("num_iterations")
    if passes is not None and not are_passes(passes.name, passes.value, extractor.settings):
        extractor.assume(
            f"{passes} is taken for the length of the run, not for passes over its rollouts"
        )
        passes = None
    times = 1 if passes is None else int(passes.value)
    if passes is not None:
        extractor.take("epochs_per_refresh", passes)
    counted = _minibatches(extractor)
    if counted is not None:
        ratio, how = counted
        if ratio >= 1 and ratio == int(ratio):
            extractor.put("minibatches_per_refresh", int(ratio), how)
        elif times == 1 and ratio < 1 and (1 / ratio).is_integer():
            how += f": an optimizer step takes {1 / ratio:g} batches of rollouts"
            extractor.put("minibatches_per_refresh", 1, how)
        else:
            extractor.drop("epochs_per_refresh")
            extractor.assume(
                f"the refresh interval was left out: {how} mini-batches, passed over {times} "
                "times, do not fill whole optimizer steps"
            )
    _set_lag(extractor)


def _completions(extractor: SettingsExtractor) -> tuple[float, str] | None:
    """Completions per optimizer step, and the arithmetic."""
    total = extractor.count("total_train_batch_size")
    if total is not None:
        return total.value, str(total)
    per_device = extractor.count(PER_DEVICE)
    if per_device is None:
        # Megatron's batch of all devices; each one is an optimizer step.
        whole = extractor.count("global_batch_size")
        return None if whole is None else (whole.value, str(whole))
    accumulated = extractor.defaulted("gradient_accumulation_steps", "transformers'")
    devices = _devices(extractor)
    plural = "device" if devices == 1 else "devices"
    how = f"{per_device} x {accumulated} x {devices:g} {plural}"
    return per_device.value * accumulated.value * devices, how


def _devices(extractor: SettingsExtractor) -> float:
    found = extractor.count("devices")
    if found is not None:
        return found.value
    in_process = extractor.count("_n_gpu")  # of one process: above 1 they share its batch
    if in_process is not None and in_process.value > 1:
        return in_process.value
    extractor.assume("trained on 1 device (the settings do not say on how many)")
    return 1.0


def _minibatches(extractor: SettingsExtractor) -> tuple[float, str] | None:
    """Optimizer steps per pass over a batch of rollouts, where the settings state its size."""
    rounds, whole = (
        extractor.count("steps_per_generation"),
        extractor.count("generation_batch_size"),
    )
    if (
        rounds is not None
        and PER_DEVICE not in extractor.settings
        and "global_batch_size" in extractor.settings
    ):
        return rounds.value, str(rounds)
    if rounds is not None:
        accumulated = extractor.defaulted("gradient_accumulation_steps", "transformers'")
        ratio = rounds.value / accumulated.value
        return ratio, f"{rounds} / {accumulated} = {ratio:.12g}"
    counted = None if whole is None else _completions(extractor)
    if whole is None or counted is None:
        return None
    ratio = whole.value / counted[0]
    return ratio, f"{whole} / ({counted[1]}) = {ratio:.12g}"


def _set_lag(extractor: SettingsExtractor) -> None:
    staleness = extractor.amount("max_staleness")
    if staleness is not None and staleness.value >= 0:
        every = extractor.defaulted("weight_sync_steps")
        lag = staleness.value * every.value
        extractor.put("lag", lag, f"{staleness} x {every} = {lag:.12g}")
        extractor.assume(
            f"lag {lag:.12g} is the oldest sample that max_staleness lets through; most are newer"
        )
    elif extractor.is_on("async_generate"):
        for ours, theirs in (
            ("minibatches_per_refresh", "steps_per_generation"),
            ("epochs_per_refresh", "num_iterations"),
        ):
            if ours not in extractor.facts:
                extractor.assume(f"{theirs} at its default: {ours} 1")
        minibatches, epochs = (
            int(extractor.facts.get(f"{name}_per_refresh", 1)) for name in ("minibatches", "epochs")
        )
        lag = float(minibatches * epochs)
        extractor.put(
            "lag",
            lag,
            "async_generate trains on rollouts of the round before: "
            f"{minibatches} mini-batches x {epochs} passes = {lag:g}",
        )
