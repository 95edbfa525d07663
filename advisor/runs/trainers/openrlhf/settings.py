"""OpenRLHF's arguments, flat up to 0.10.1 and dotted since, in the package's names.

``openrlhf/trainer/ppo_trainer.py`` trains ``max_epochs`` times over each batch of rollouts, in
optimizer steps of ``train_batch_size`` samples; ``rollout_batch_size`` counts prompts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.openrlhf.namespace import parse_namespace
from advisor.runs.trainers.settings_extractor import SettingsExtractor, share

GROUP_SIZE = ("rollout.n_samples_per_prompt", "n_samples_per_prompt")
TRAINED = ("train.batch_size", "train_batch_size")
ROLLED_OUT = ("rollout.batch_size", "rollout_batch_size")
EPOCHS = ("train.max_epochs", "max_epochs")
EPISODES = ("train.num_episodes", "num_episodes")
BATCHES = ("num_rollouts_per_episodes",)
"""Length of an episode's bar, as the console reader hands it over."""

ASYNC = ("train.async_enable", "async_train")
QUEUE = ("train.async_queue_size", "async_queue_size")
PARTIAL = ("train.partial_rollout_enable", "partial_rollout")
BETAS = ("actor.adam.betas", "adam_betas")
OPTIMIZER = ("actor.optim",)
SCHEDULE = ("actor.lr_scheduler", "lr_scheduler")
WARMUP = ("actor.lr_warmup_ratio", "lr_warmup_ratio")
KL = ("algo.kl.init_coef", "init_kl_coef")
KL_TARGET = ("algo.kl.target", "kl_target")
CLIP = ("actor.eps_clip", "eps_clip")
CLIP_PAIR = ("actor.eps_clip_low_high", "eps_clip_low_high")
ESTIMATOR = ("algo.advantage.estimator", "advantage_estimator")
NO_STD = ("algo.advantage.no_std_norm", "no_advantage_std_norm")
RANK = ("ds.lora.rank", "lora_rank")
FILTERED = ("algo.dynamic_filtering_enable", "dynamic_filtering")

SCHEDULES = {
    "constant": "constant",
    "constant_with_warmup": "constant",
    "linear": "linear",
    "cosine": "cosine",
    "cosine_with_min_lr": "cosine",
    "cosine_warmup_with_min_lr": "cosine",
}
SCALINGS = {
    "group_norm": "group",
    "dr_grpo": "none",
    "reinforce_baseline": "batch",
    "reinforce": "batch",
    "gae": "batch",
}
"""What advantages are divided by. That of ``rloo`` changed under its flat name."""

AVERAGING = {"token-mean": "token", "seq-mean-token-mean": "sequence"}

MARKS = (
    "init_kl_coef",
    "actor_learning_rate",
    "micro_rollout_batch_size",
    "critic_learning_rate",
    "no_advantage_std_norm",
    "actor.adam.lr",
    "algo.kl.init_coef",
    "algo.advantage.estimator",
    "rollout.n_samples_per_prompt",
    "rollout.micro_batch_size",
    "train.async_enable",
)
"""Arguments that only OpenRLHF has; slime shares ``n_samples_per_prompt``."""

NUMBERS = re.compile(r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?")


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run."""
    extractor = SettingsExtractor(_opened(settings))
    extractor.take("group_size", extractor.count(*GROUP_SIZE))
    _derive_batches(extractor)
    _derive_lag(extractor)
    _derive_optimizer(extractor)
    _derive_schedule(extractor)
    _derive_loss(extractor)
    _derive_adapter(extractor)
    extractor.take(
        "max_completion_length", extractor.count("rollout.max_new_tokens", "max_new_tokens")
    )
    if "max_completion_length" not in extractor.facts:
        extractor.take("max_completion_length", extractor.count("generate_max_len"))
    _derive_carried(extractor)
    extractor.take("model", extractor.text("actor.model_name_or_path", "pretrain"))
    extractor.take("task", extractor.text("data.prompt_dataset", "prompt_data"))
    extractor.take("seed", extractor.count("train.seed", "seed", least=0))
    filtered = extractor.switch(*FILTERED)
    if filtered is not None and filtered.value:
        extractor.assume(
            f"{filtered.name}: the logged reward is the mean over prompts that were kept, and a "
            "batch of rollouts is filled up until it is whole"
        )
    return extractor.derived()


def _opened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with printed namespaces taken apart."""
    opened: dict[str, Any] = {}
    for key, value in settings.items():
        inner = parse_namespace(value) if isinstance(value, str) else {}
        opened |= {f"{key}.{name}": each for name, each in inner.items()} or {key: value}
    return opened


def _defaulted(
    extractor: SettingsExtractor, names: tuple[str, str], default: int
) -> tuple[str, int]:
    """A whole number, or OpenRLHF's default of it, with how to show it."""
    found = extractor.count(*names)
    if found is not None:
        return str(found), found.value
    assumption = f"{names[1]} {default} (OpenRLHF's default)"
    extractor.assume(assumption)
    return assumption, default


def _derive_batches(extractor: SettingsExtractor) -> None:
    group = extractor.count(*GROUP_SIZE)
    if group is None or (
        extractor.count(*TRAINED) is None and extractor.count(*ROLLED_OUT) is None
    ):
        return
    trained_line, trained = _defaulted(extractor, TRAINED, 128)
    prompts = share(trained, group.value)
    samples = str(group)
    line = f"{trained_line} / {samples} = {prompts:g}"
    extractor.put("prompts_per_step", prompts, line)
    rolled_line, rolled = _defaulted(extractor, ROLLED_OUT, 1024)
    minibatches, left = divmod(rolled * group.value, trained)
    line = f"{rolled_line} x {samples} / {trained_line}"
    if not minibatches:
        extractor.assume(
            f"{line} is less than one optimizer step per batch of rollouts; the refresh interval "
            "is left open"
        )
        return
    if left:
        extractor.assume(
            f"{line} leaves {left} samples over, which are dropped or join the next step"
        )
    extractor.put("minibatches_per_refresh", minibatches, f"{line} = {minibatches}")
    epochs_line, epochs = _defaulted(extractor, EPOCHS, 1)
    extractor.put("epochs_per_refresh", epochs, f"epochs_per_refresh {epochs_line}")


def _derive_lag(extractor: SettingsExtractor) -> None:
    """Each batch is rolled out while those before it, as many as the queue holds, are trained on.

    A place in the queue is taken as generation begins and given back as training begins
    (``ppo_trainer_async.py``), so the weights are that many global steps old.
    """
    switch = extractor.switch(*ASYNC)
    if switch is None:
        return
    if not switch.value:
        extractor.put("lag", 0.0, f"lag 0 ({switch.name} {switch.value})")
        return
    minibatches = extractor.facts.get("minibatches_per_refresh")
    epochs = extractor.facts.get("epochs_per_refresh")
    queue_line, queue = _defaulted(extractor, QUEUE, 1)
    if minibatches is None or epochs is None:
        extractor.assume(
            f"{switch.name}: rollouts lag {queue} batches behind, and how many optimizer steps "
            "that is cannot be told"
        )
        return
    lag = queue * minibatches * epochs
    line = f"{queue_line} x {minibatches} minibatches x {epochs} epochs = {lag}"
    extractor.put("lag", float(lag), line)
    extractor.assume(f"lag {lag}: generation is taken to keep the queue full")
    partial = extractor.switch(*PARTIAL)
    if partial is not None and partial.value:
        extractor.assume(
            f"{partial.name}: tokens at the end of a completion are younger than the lag says"
        )


def _derive_optimizer(extractor: SettingsExtractor) -> None:
    optimizer = extractor.text(*OPTIMIZER)
    if optimizer is not None and optimizer.value != "adam":
        extractor.assume(
            f"{optimizer.name} {optimizer.value} is not one that the theory knows; its learning "
            "rate was left out"
        )
        return
    extractor.take("learning_rate", extractor.amount("actor.adam.lr", "actor_learning_rate"))
    if "learning_rate" not in extractor.facts:
        return
    extractor.put("optimizer", "adamw", "optimizer adamw (DeepSpeed's, the only one but for muon)")
    betas = _pair(extractor, BETAS)
    if betas is not None and betas[1]:
        extractor.put("momentum", betas[1][0], f"momentum {betas[1][0]:g} (first of {betas[0]})")


def _derive_schedule(extractor: SettingsExtractor) -> None:
    schedule = extractor.text(*SCHEDULE)
    kind = SCHEDULES.get(str(schedule.value)) if schedule is not None else None
    if schedule is not None and kind is not None:
        extractor.put("schedule", kind, f"schedule {kind} ({schedule.name} {schedule.value})")
        if "min_lr" in str(schedule.value):
            ratio = extractor.amount("actor.min_lr_ratio")
            low = f"{ratio.value:g}" if ratio is not None else "0.1 (OpenRLHF's default)"
            extractor.assume(f"the cosine is taken to end at 0; it ends at {low} of the peak")
    planned = _planned_steps(extractor)
    ratio = extractor.amount(*WARMUP)
    if schedule is not None and schedule.value == "constant":
        extractor.put("warmup_steps", 0, "warmup_steps 0 (a constant schedule has none)")
    elif planned is not None and ratio is not None and 0 <= ratio.value <= 1:
        warmup = math.ceil(planned * ratio.value)
        line = f"ceil({planned} planned steps x {ratio.name} {ratio.value:g}) = {warmup}"
        extractor.put("warmup_steps", warmup, line)


def _planned_steps(extractor: SettingsExtractor) -> int | None:
    """Length of the schedule, where the bars told how many batches an episode has."""
    batches, episodes = extractor.count(*BATCHES), extractor.count(*EPISODES)
    minibatches = extractor.facts.get("minibatches_per_refresh")
    epochs = extractor.facts.get("epochs_per_refresh")
    if batches is None or episodes is None or minibatches is None or epochs is None:
        return None
    planned = int(batches.value * episodes.value * minibatches * epochs)
    line = (
        f"{batches.value} batches of rollouts x {episodes} x {minibatches} "
        f"minibatches x {epochs} epochs = {planned}"
    )
    extractor.put("planned_steps", planned, line)
    return planned


def _derive_loss(extractor: SettingsExtractor) -> None:
    extractor.take("kl_coefficient", extractor.amount(*KL))
    target = extractor.amount(*KL_TARGET)
    if "kl_coefficient" in extractor.facts and target is not None:
        extractor.assume(
            f"{target.name} {target.value:g} moves the KL coefficient; its first value is taken"
        )
    _derive_trust_region(extractor)
    loss = extractor.text("actor.policy_loss_type", "policy_loss_type")
    if loss is not None and loss.value in ("ppo", "gspo"):
        extractor.put("importance_ratio", True, f"importance_ratio true ({loss.name} {loss.value})")
    estimator = extractor.text(*ESTIMATOR)
    if estimator is None:
        return
    name, scaling = str(estimator.value), SCALINGS.get(str(estimator.value))
    if name == "rloo":
        scaling = "none" if estimator.name == ESTIMATOR[0] else None
        if scaling is None:
            extractor.assume(
                "advantage_estimator rloo divides by the spread of the batch up to 0.8.4 and by "
                "nothing later; which one is left open"
            )
    undivided = extractor.switch(*NO_STD)
    if scaling == "batch" and undivided is not None and undivided.value:
        extractor.put("advantage_scaling", "none", f"advantage_scaling none ({undivided.name})")
    elif scaling is not None:
        line = f"advantage_scaling {scaling} ({estimator.name} {name})"
        extractor.put("advantage_scaling", scaling, line)


def _derive_trust_region(extractor: SettingsExtractor) -> None:
    both = extractor.amount(*CLIP)
    pair = _pair(extractor, CLIP_PAIR)
    low, high = pair[1] if pair is not None and len(pair[1]) == 2 else (None, None)
    for ours, own, place in (("clip_low", low, "first"), ("clip_high", high, "second")):
        if own is not None and pair is not None:
            extractor.put(ours, own, f"{ours} {own:g} ({place} of {pair[0]})")
        elif both is not None and pair is None:
            extractor.take(ours, both)


def _derive_adapter(extractor: SettingsExtractor) -> None:
    rank = extractor.count(*RANK, least=0)
    if rank is None:
        return
    kind = "lora" if rank.value else "full"
    extractor.put("adapter", kind, f"adapter {kind} ({rank})")
    if rank.value:
        extractor.take("adapter_rank", rank)
        extractor.take("adapter_alpha", extractor.count("ds.lora.alpha", "lora_alpha"))
        extractor.take_targets("ds.lora.target_modules", "target_modules")


def _derive_carried(extractor: SettingsExtractor) -> None:
    """Settings that an export repeats."""
    extractor.take("max_prompt_length", extractor.count("prompt_max_len"))
    whole, completion = extractor.count("data.max_len"), extractor.count("rollout.max_new_tokens")
    if whole is not None and completion is not None and whole.value > completion.value:
        prompt = whole.value - completion.value
        extractor.put("max_prompt_length", prompt, f"{whole} - {completion} = {prompt}")
    mode = extractor.text("actor.loss_agg_mode")
    if mode is not None and mode.value in AVERAGING:
        kind = AVERAGING[mode.value]
        extractor.put("loss_averaging", kind, f"loss_averaging {kind} ({mode})")
    numbers = extractor.text("ds.param_dtype")
    if numbers is not None and numbers.value in ("bf16", "fp16"):
        extractor.take("precision", numbers)
    elif extractor.is_on("bf16"):
        extractor.put("precision", "bf16", "precision bf16 (bf16 is on)")


def _pair(extractor: SettingsExtractor, names: tuple[str, ...]) -> tuple[str, list[float]] | None:
    """Numbers of an argument that takes two: as text, or each under a name of its own."""
    for name in names:
        parts = [extractor.settings.get(f"{name}.{place}") for place in (0, 1)]
        written = extractor.settings.get(name)
        if parts[0] is not None:
            written = f"{parts[0]} {parts[1]}"
        if written is None or isinstance(written, bool) or written == "None":
            continue
        return name, [float(each) for each in NUMBERS.findall(str(written))]
    return None
