"""OpenRLHF's arguments, flat up to 0.10.1 and dotted since, in the package's names.

``openrlhf/trainer/ppo_trainer.py`` trains ``max_epochs`` times over each batch of rollouts, in
optimizer steps of ``train_batch_size`` samples; ``rollout_batch_size`` counts prompts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from advisor.trainers.derived import Derived
from advisor.trainers.openrlhf.namespace import parse_namespace
from advisor.trainers.settings_extractor import Taking, share

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
    """Settings of a run.

    Parameters
    ----------
    settings : mapping of str to object
        Arguments by name. W&B keeps those of newer versions as text, ``namespace(...)`` each.

    Returns
    -------
    derived : Derived
    """
    taking = Taking(_opened(settings))
    taking.keep_count("group_size", GROUP_SIZE)
    _take_batches(taking)
    _take_lag(taking)
    _take_optimizer(taking)
    _take_schedule(taking)
    _take_loss(taking)
    _take_adapter(taking)
    taking.keep_count("max_completion_length", ("rollout.max_new_tokens", "max_new_tokens"))
    if "max_completion_length" not in taking.facts:
        taking.keep_count("max_completion_length", ("generate_max_len",))
    taking.keep_text("model", ("actor.model_name_or_path", "pretrain"))
    taking.keep_text("task", ("data.prompt_dataset", "prompt_data"))
    taking.keep_count("seed", ("train.seed", "seed"), 0)
    filtered = taking.switch(FILTERED)
    if filtered is not None and filtered.value:
        taking.assumptions.append(
            f"{filtered.key}: the logged reward is the mean over prompts that were kept, and a "
            "batch of rollouts is filled up until it is whole"
        )
    return taking.derived()


def _opened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with printed namespaces taken apart."""
    opened: dict[str, Any] = {}
    for key, value in settings.items():
        inner = parse_namespace(value) if isinstance(value, str) else {}
        opened |= {f"{key}.{name}": each for name, each in inner.items()} or {key: value}
    return opened


def _defaulted(taking: Taking, names: tuple[str, str], default: int) -> tuple[str, int]:
    """A whole number, or OpenRLHF's default of it, with how to show it."""
    found = taking.count(names)
    if found is not None:
        return f"{found[0]} {found[1]}", found[1]
    said = f"{names[1]} {default} (OpenRLHF's default)"
    taking.assumptions.append(said)
    return said, default


def _take_batches(taking: Taking) -> None:
    group = taking.count(GROUP_SIZE)
    if group is None or (taking.count(TRAINED) is None and taking.count(ROLLED_OUT) is None):
        return
    trained_line, trained = _defaulted(taking, TRAINED, 128)
    prompts = share(trained, group[1])
    samples = f"{group[0]} {group[1]}"
    line = f"{trained_line} / {samples} = {prompts:g}"
    taking.keep("prompts_per_step", prompts, line)
    rolled_line, rolled = _defaulted(taking, ROLLED_OUT, 1024)
    minibatches, left = divmod(rolled * group[1], trained)
    line = f"{rolled_line} x {samples} / {trained_line}"
    if not minibatches:
        taking.assumptions.append(
            f"{line} is less than one optimizer step per batch of rollouts; the refresh interval "
            "is left open"
        )
        return
    if left:
        taking.assumptions.append(
            f"{line} leaves {left} samples over, which are dropped or join the next step"
        )
    taking.keep("minibatches_per_refresh", minibatches, f"{line} = {minibatches}")
    epochs_line, epochs = _defaulted(taking, EPOCHS, 1)
    taking.keep("epochs_per_refresh", epochs, f"epochs_per_refresh {epochs_line}")


def _take_lag(taking: Taking) -> None:
    """Each batch is rolled out while those before it, as many as the queue holds, are trained on.

    A place in the queue is taken as generation begins and given back as training begins
    (``ppo_trainer_async.py``), so the weights are that many global steps old.
    """
    switch = taking.switch(ASYNC)
    if switch is None:
        return
    if not switch.value:
        taking.keep("lag", 0.0, f"lag 0 ({switch.key} {switch.value})")
        return
    minibatches = taking.facts.get("minibatches_per_refresh")
    epochs = taking.facts.get("epochs_per_refresh")
    queue_line, queue = _defaulted(taking, QUEUE, 1)
    if minibatches is None or epochs is None:
        taking.assumptions.append(
            f"{switch.key}: rollouts lag {queue} batches behind, and how many optimizer steps "
            "that is cannot be told"
        )
        return
    lag = queue * minibatches * epochs
    line = f"{queue_line} x {minibatches} minibatches x {epochs} epochs = {lag}"
    taking.keep("lag", float(lag), line)
    taking.assumptions.append(f"lag {lag}: generation is taken to keep the queue full")
    partial = taking.switch(PARTIAL)
    if partial is not None and partial.value:
        taking.assumptions.append(
            f"{partial.key}: tokens at the end of a completion are younger than the lag says"
        )


def _take_optimizer(taking: Taking) -> None:
    optimizer = taking.text(OPTIMIZER)
    if optimizer is not None and optimizer.value != "adam":
        taking.assumptions.append(
            f"{optimizer.key} {optimizer.value} is not one that the theory knows; its learning "
            "rate was left out"
        )
        return
    taking.keep_amount("learning_rate", ("actor.adam.lr", "actor_learning_rate"))
    if "learning_rate" not in taking.facts:
        return
    taking.keep("optimizer", "adamw", "optimizer adamw (DeepSpeed's, the only one but for muon)")
    betas = _pair(taking, BETAS)
    if betas is not None and betas[1]:
        taking.keep("momentum", betas[1][0], f"momentum {betas[1][0]:g} (first of {betas[0]})")


def _take_schedule(taking: Taking) -> None:
    schedule = taking.text(SCHEDULE)
    kind = SCHEDULES.get(str(schedule.value)) if schedule is not None else None
    if schedule is not None and kind is not None:
        taking.keep("schedule", kind, f"schedule {kind} ({schedule.key} {schedule.value})")
        if "min_lr" in str(schedule.value):
            ratio = taking.amount(("actor.min_lr_ratio",))
            low = f"{ratio[1]:g}" if ratio is not None else "0.1 (OpenRLHF's default)"
            taking.assumptions.append(
                f"the cosine is taken to end at 0; it ends at {low} of the peak"
            )
    planned = _planned_steps(taking)
    ratio = taking.amount(WARMUP)
    if schedule is not None and schedule.value == "constant":
        taking.keep("warmup_steps", 0, "warmup_steps 0 (a constant schedule has none)")
    elif planned is not None and ratio is not None and 0 <= ratio[1] <= 1:
        warmup = math.ceil(planned * ratio[1])
        line = f"ceil({planned} planned steps x {ratio[0]} {ratio[1]:g}) = {warmup}"
        taking.keep("warmup_steps", warmup, line)


def _planned_steps(taking: Taking) -> int | None:
    """Length of the schedule, where the bars told how many batches an episode has."""
    batches, episodes = taking.count(BATCHES), taking.count(EPISODES)
    minibatches = taking.facts.get("minibatches_per_refresh")
    epochs = taking.facts.get("epochs_per_refresh")
    if batches is None or episodes is None or minibatches is None or epochs is None:
        return None
    planned = int(batches[1] * episodes[1] * minibatches * epochs)
    line = (
        f"{batches[1]} batches of rollouts x {episodes[0]} {episodes[1]} x {minibatches} "
        f"minibatches x {epochs} epochs = {planned}"
    )
    taking.keep("planned_steps", planned, line)
    return planned


def _take_loss(taking: Taking) -> None:
    taking.keep_amount("kl_coefficient", KL)
    target = taking.amount(KL_TARGET)
    if "kl_coefficient" in taking.facts and target is not None:
        taking.assumptions.append(
            f"{target[0]} {target[1]:g} moves the KL coefficient; its first value is taken"
        )
    _take_trust_region(taking)
    loss = taking.text(("actor.policy_loss_type", "policy_loss_type"))
    if loss is not None and loss.value in ("ppo", "gspo"):
        taking.keep("importance_ratio", True, f"importance_ratio true ({loss.key} {loss.value})")
    estimator = taking.text(ESTIMATOR)
    if estimator is None:
        return
    name, scaling = str(estimator.value), SCALINGS.get(str(estimator.value))
    if name == "rloo":
        scaling = "none" if estimator.key == ESTIMATOR[0] else None
        if scaling is None:
            taking.assumptions.append(
                "advantage_estimator rloo divides by the spread of the batch up to 0.8.4 and by "
                "nothing later; which one is left open"
            )
    undivided = taking.switch(NO_STD)
    if scaling == "batch" and undivided is not None and undivided.value:
        taking.keep("advantage_scaling", "none", f"advantage_scaling none ({undivided.key})")
    elif scaling is not None:
        line = f"advantage_scaling {scaling} ({estimator.key} {name})"
        taking.keep("advantage_scaling", scaling, line)


def _take_trust_region(taking: Taking) -> None:
    both = taking.amount(CLIP)
    pair = _pair(taking, CLIP_PAIR)
    low, high = pair[1] if pair is not None and len(pair[1]) == 2 else (None, None)
    for ours, own, place in (("clip_low", low, "first"), ("clip_high", high, "second")):
        if own is not None and pair is not None:
            taking.keep(ours, own, f"{ours} {own:g} ({place} of {pair[0]})")
        elif both is not None and pair is None:
            taking.keep(ours, both[1], f"{ours} {both[1]:g} ({both[0]})")


def _take_adapter(taking: Taking) -> None:
    rank = taking.count(RANK, least=0)
    if rank is None:
        return
    kind = "lora" if rank[1] else "full"
    taking.keep("adapter", kind, f"adapter {kind} ({rank[0]} {rank[1]})")
    if rank[1]:
        taking.keep("adapter_rank", rank[1], f"adapter_rank {rank[1]} ({rank[0]})")


def _pair(taking: Taking, names: tuple[str, ...]) -> tuple[str, list[float]] | None:
    """Numbers of an argument that takes two: as text, or each under a name of its own."""
    for name in names:
        parts = [taking.settings.get(f"{name}.{place}") for place in (0, 1)]
        written = taking.settings.get(name)
        if parts[0] is not None:
            written = f"{parts[0]} {parts[1]}"
        if written is None or isinstance(written, bool) or written == "None":
            continue
        return name, [float(each) for each in NUMBERS.findall(str(written))]
    return None
