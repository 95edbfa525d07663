"""Settings of TRL, Unsloth and ms-swift: as a console prints them, and in the package's names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import (
    Derived,
    SettingsExtractor,
    TrainerSetting,
    number,
    patterns,
    read_data,
    setting_names,
)
from advisor.runs.trainers.key_table import passes

PATTERNS = patterns("trl")
CONSOLE = read_data("trl")["console"]

NAMES = {*read_data("trl")["printed"], *sum(setting_names("trl").values(), ())}
"""Settings that are looked at in logs in which much else stands too."""

PLANNED = "total_optimization_steps"
"""Length of a run as a trainer prints it, also where ``max_steps`` is -1: so many epochs."""


class PrintedSettings:
    """Collects settings from the lines of a console log."""

    def __init__(self) -> None:
        # Under the names of ``TrainingArguments``.
        self.settings: dict[str, Any] = {}
        # Of the run announced last, and the step from which it continues.
        self.planned_steps: int | None = None
        self.resumed_at = 0
        # Headers seen; each one announces a run.
        self.announced = 0
        self._dump = 0
        self._has_model = False

    def feed(self, text: str) -> None:
        """Take one line, which holds no logged row."""
        if len(text) > 65536:
            return
        # Most lines say none of this, and a word is found quicker than a pattern.
        if any(word in text for word in CONSOLE["header_words"]):
            for label, value in PATTERNS["header"].findall(text):
                self._header(label.lower(), int(value.replace(",", "")))
        if "Continuing training" in text and (resumed := PATTERNS["resumed"].search(text)):
            self.resumed_at = int(resumed[1])
        if "rainable param" in text and (trained := PATTERNS["trained"].search(text)):
            own, whole = (int(count.replace(",", "") or 0) for count in trained.groups()[:2])
            self.settings["trained_percent"] = trained[3]
            # What an adapter has is counted too, but for sizes that are read off a name.
            is_apart = own < whole / 2 and whole % 1_000_000
            self.settings["base_parameters"] = whole - own if is_apart else whole
        is_sought = "odel" in text and not self._has_model
        model = PATTERNS["model"].search(text) if is_sought else None
        if model is not None and model[1].partition("/")[0].lower() not in CONSOLE["folders"]:
            self.settings["model_name_or_path"] = model[1]
            self._has_model = True
        self._dumped(text)

    def take(self, cells: Mapping[str, str]) -> None:
        """Take a printed dict that is no logged row: perhaps the configuration."""
        if "num_generations" in cells or "per_device_train_batch_size" in cells:
            self._set(cells)

    def began(self) -> None:
        """Note that the run announced has logged its first row."""
        self._has_model = False
        self._dump = 0

    def _header(self, label: str, value: int) -> None:
        name = next(n for start, n in CONSOLE["headers"].items() if label.startswith(start))
        self.settings[name] = value
        if name == PLANNED:
            self.planned_steps = value or None
            self.resumed_at = 0
            self.announced += 1

    def _dumped(self, text: str) -> None:
        is_begun = not self._dump and PATTERNS["dump"].search(text) is not None
        if self._dump and text.lstrip().startswith(")"):
            self._dump = 0
        elif self._dump or is_begun:
            self._set({name: a or b or c for name, a, b, c in PATTERNS["pair"].findall(text)})
            self._dump -= 1
            if is_begun:
                # One setting per line follows where the bracket stays open.
                self._dump = 0 if text.rstrip().endswith(")") else 1000
        elif "--num_generations" in text or text.lstrip().startswith("--"):
            flags = PATTERNS["flag"].findall(text)
            self._set({name.replace("-", "_"): a or b or c for name, a, b, c in flags})

    def _set(self, found: Mapping[str, str]) -> None:
        self.settings.update({name: value for name, value in found.items() if name in NAMES})


PER_DEVICE = "per_device_train_batch_size"


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run in the package's names."""
    if not settings:
        return Derived()
    extractor = SettingsExtractor(_without_sections(settings), "trl")
    _set_kl(extractor)
    _set_logging_steps(extractor)
    _set_optimizer(extractor)
    _set_schedule(extractor)
    _set_trust_region(extractor)
    _set_adapter(extractor)
    _set_precision(extractor)
    _set_prompts(extractor)
    _set_refresh(extractor)
    _set_lag(extractor)
    return extractor.derived()


def _without_sections(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of ``TrainingArguments``, whatever section they stand in."""
    values: dict[str, Any] = {}
    # A setting that stands less deep is the run's own, not that of a nested configuration.
    for key in sorted(settings, key=lambda key: key.count(".")):
        # Not "none", which scale_rewards may be.
        if settings[key] is None or str(settings[key]).strip() in ("", "None", "null"):
            continue
        above, _, name = key.rpartition(".")
        section = above.rpartition(".")[2]
        if name == "0" and f"{above}.1" not in settings:
            name = section  # a list of one
        elif name.isdecimal() and section in setting_names("trl")["adapter_targets"]:
            name = f"{section}.{name}"
        if name in ("r", "rank") and ("peft" in key or "lora" in key):
            name = "lora_r"
        if name in ("name", "path") and section == "model":
            name = "model_name_or_path"
        values.setdefault(name.replace("-", "_"), settings[key])
    return values


def _set_kl(extractor: SettingsExtractor) -> None:
    weight = extractor.amount("kl_coefficient")
    if weight is not None and weight.value >= 0:
        extractor.take("kl_coefficient", weight)
    if extractor.is_on("kl_in_reward") and extractor.facts.get("kl_coefficient", 1) > 0:
        extractor.assume_as("kl_in_reward")


def _set_logging_steps(extractor: SettingsExtractor) -> None:
    every = extractor.amount("logging_steps")
    if every is None or extractor.word("logging_strategy") not in ("", "steps"):
        return
    if every.value >= 1:
        extractor.note("logging_steps", int(every.value), every.name)
    elif every.value > 0:
        _put_share(extractor, "logging_steps", every)


def _put_share(extractor: SettingsExtractor, ours: str, share: TrainerSetting[float]) -> None:
    """Put a setting that is stated as a share of the run."""
    planned = extractor.count("planned_steps")
    if planned is not None:
        steps = math.ceil(share.value * planned.value)
        extractor.put(ours, steps, f"{share} x {planned}, rounded up = {steps}")


def _set_optimizer(extractor: SettingsExtractor) -> None:
    optim, name = extractor.text("optim"), extractor.word("optim")
    # schedule_free_sgd averages weights where SGD has momentum.
    kind = "adamw" if "adamw" in name else "sgd" if name == "sgd" else None
    if kind is not None:
        extractor.note("optimizer", kind, str(optim))
    elif "sgd" in name:
        extractor.assume_as("optimizer", name=name)
    decay, arguments = extractor.amount("adam_beta1"), extractor.text("optim_args")
    if decay is not None and 0 <= decay.value < 1 and (optim is None or kind == "adamw"):
        extractor.take("momentum", decay)
    given = "" if arguments is None else arguments.value.replace(" ", "")
    stated = PATTERNS["momentum"].search(given)
    momentum = None if stated is None else number(stated.group(1))
    if kind != "sgd" or momentum is None:
        return
    extractor.note("momentum", momentum, "optim_args")
    extractor.assume_as("momentum", momentum=momentum)


def _set_schedule(extractor: SettingsExtractor) -> None:
    extractor.choose("schedule")
    if extractor.word("schedule") == "constant":
        extractor.put("warmup_steps", 0, "lr_scheduler_type constant has no warm-up = 0")
        return
    steps, share = extractor.amount("warmup_steps"), extractor.amount("warmup_ratio")
    if steps is not None and steps.value >= 1:
        extractor.note("warmup_steps", int(steps.value), steps.name)
        return
    # Since transformers 5 a share of the run may stand under the name of the count.
    if steps is not None and (steps.value > 0 or share is None):
        share = steps
    if share is None or not 0 <= share.value <= 1:
        return
    if share.value == 0:
        extractor.put("warmup_steps", 0, f"{share} = 0")
    else:
        _put_share(extractor, "warmup_steps", share)


def _set_trust_region(extractor: SettingsExtractor) -> None:
    """Clipping of the importance ratio, and what advantages are divided by."""
    # Loss types that weigh large importance ratios down without a trust region.
    if extractor.word("loss_averaging") not in ("sapo", "vespo", "real"):
        extractor.take_positive("clip_low", "clip_high")
        low = extractor.facts.get("clip_low")
        if low is not None and "clip_high" not in extractor.facts:
            extractor.note("clip_high", low, "epsilon, as epsilon_high is not set")
    # One bare word, also where it is a switch, or none at all.
    scaling = str(extractor.settings.get("scale_rewards", "")).strip().strip("\"'").lower()
    kind = extractor.data["choices"]["advantage_scaling"].get(scaling)
    if kind is not None:
        extractor.note("advantage_scaling", kind, f"scale_rewards {scaling}")


def _set_precision(extractor: SettingsExtractor) -> None:
    """Trainers switch on one of two; that both are off is stated, not taken for granted."""
    is_on = {name: extractor.is_on(name) for name in ("bf16", "fp16")}
    chosen = next((name for name, value in is_on.items() if value), None)
    if chosen is not None:
        extractor.note("precision", chosen, f"{chosen} is on")
    elif None not in is_on.values():
        extractor.note("precision", "fp32", "bf16 and fp16 are off")


def _set_adapter(extractor: SettingsExtractor) -> None:
    kind, rank = extractor.text("adapter_kind"), extractor.count("adapter_rank")
    # Configurations print LoRA's default rank also where no adapter is trained.
    if extractor.is_on("use_peft") is False:
        extractor.note("adapter", "full", "use_peft is off")
    elif extractor.is_on("full_finetuning"):
        extractor.note("adapter", "full", "full_finetuning is on")
    elif kind is not None and "lora" not in kind.value.lower():
        if kind.value.lower() == "full":
            extractor.note("adapter", "full", kind.name)
    elif rank is not None:
        extractor.note("adapter", "lora", str(rank))
        extractor.take("adapter_rank", rank)
    elif kind is not None or extractor.is_on("use_peft"):
        extractor.note("adapter", "lora", kind.name if kind else "use_peft is on")
    else:
        extractor.take_trained()
    if extractor.facts.get("adapter") == "lora":
        extractor.take_over("adapter_alpha")
        extractor.take_targets()


def _set_prompts(extractor: SettingsExtractor) -> None:
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
    is_sure = per_device is None or is_stated
    if is_sure or prompts == int(prompts):
        extractor.put("prompts_per_step", prompts, f"{how} / {group} = {prompts:.12g}")
    if per_device is None or is_stated:
        return
    raised = completions / per_device.value  # with one group per device and pass
    facts = {"completions": completions, "group": group, "raised": raised}
    if prompts == int(prompts):
        is_raised = per_device.value % group.value
        if is_raised and "total_train_batch_size" not in extractor.settings:
            facts["raised"] = extractor.data["assumptions"]["raised"].format(**facts)
        else:
            facts["raised"] = ""
        extractor.assume_as("completions", **facts)
        return
    why = f"{how} = {completions:g} is no multiple of {group}, so {PER_DEVICE}"
    if raised == completions:
        extractor.assume_as("prompts", why=why)
        counted_so = f"{how}, counted in prompts = {completions:g}"
        extractor.put("prompts_per_step", completions, counted_so)
        return
    extractor.assume_as("no_prompts", why=why, **facts)


def _set_refresh(extractor: SettingsExtractor) -> None:
    """Derive mini-batches and epochs per batch of rollouts."""
    found = passes(extractor, "num_iterations", extractor.settings)
    times = 1 if found is None else int(found.value)
    extractor.take("epochs_per_refresh", found)
    counted = _minibatches(extractor)
    if counted is None:
        return
    ratio, how = counted
    if ratio >= 1 and ratio == int(ratio):
        extractor.put("minibatches_per_refresh", int(ratio), how)
    elif times == 1 and ratio < 1 and (1 / ratio).is_integer():
        how += f": an optimizer step takes {1 / ratio:g} batches of rollouts"
        extractor.put("minibatches_per_refresh", 1, how)
    else:
        extractor.drop("epochs_per_refresh")
        extractor.assume_as("no_interval", how=how, times=times)


def _completions(extractor: SettingsExtractor) -> tuple[float, str] | None:
    """Completions per optimizer step, and the arithmetic."""
    total, per_device = extractor.count("total_train_batch_size"), extractor.count(PER_DEVICE)
    if total is None and per_device is None:
        # Megatron's batch of all devices; each one is an optimizer step.
        total = extractor.count("global_batch_size")
    if total is not None or per_device is None:
        return None if total is None else (total.value, str(total))
    accumulated = extractor.defaulted("gradient_accumulation_steps", "transformers'")
    devices = _devices(extractor)
    plural = "device" if devices == 1 else "devices"
    how = f"{per_device} x {accumulated} x {devices:g} {plural}"
    return per_device.value * accumulated.value * devices, how


def _devices(extractor: SettingsExtractor) -> float:
    found = extractor.count("devices")
    if found is not None:
        extractor.take("gpus", found)
        return found.value
    in_process = extractor.count("_n_gpu")  # of one process: above 1 they share its batch
    if in_process is not None and in_process.value > 1:
        return in_process.value
    extractor.assume_as("one_device")
    return 1.0


def _minibatches(extractor: SettingsExtractor) -> tuple[float, str] | None:
    """Optimizer steps per pass over a batch of rollouts, where the settings state its size."""
    rounds, whole = map(extractor.count, ("steps_per_generation", "generation_batch_size"))
    if rounds is not None:
        settings = extractor.settings
        if PER_DEVICE not in settings and "global_batch_size" in settings:
            return rounds.value, str(rounds)
        accumulated = extractor.defaulted("gradient_accumulation_steps", "transformers'")
        ratio = rounds.value / accumulated.value
        return ratio, f"{rounds} / {accumulated} = {ratio:.12g}"
    counted = None if whole is None else _completions(extractor)
    if whole is None or counted is None:
        return None
    ratio = whole.value / counted[0]
    return ratio, f"{whole} / ({counted[1]}) = {ratio:.12g}"


def _set_lag(extractor: SettingsExtractor) -> None:
    """Derive the age of the samples."""
    staleness = extractor.amount("max_staleness")
    if staleness is not None and staleness.value >= 0:
        every = extractor.defaulted("weight_sync_steps")
        lag = staleness.value * every.value
        extractor.put("lag", lag, f"{staleness} x {every} = {lag:.12g}")
        extractor.assume_as("lag", lag=lag)
    elif extractor.is_on("async_generate"):
        counts = []
        for ours, theirs in (
            ("minibatches_per_refresh", "steps_per_generation"),
            ("epochs_per_refresh", "num_iterations"),
        ):
            if ours not in extractor.facts:
                extractor.assume_as("default", theirs=theirs, ours=ours)
            counts.append(int(extractor.facts.get(ours, 1)))
        lag = float(counts[0] * counts[1])
        extractor.put(
            "lag",
            lag,
            "async_generate trains on rollouts of the round before: "
            f"{counts[0]} mini-batches x {counts[1]} passes = {lag:g}",
        )
