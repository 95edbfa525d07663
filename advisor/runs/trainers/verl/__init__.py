"""verl and its forks: Logic-RL, verl-agent, rLLM, EasyR1."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from advisor.runs.logfiles.logged import Table
from advisor.runs.pilot_run import NOT_GRPO
from advisor.runs.trainers.derived import (
    PPO,
    Derived,
    SettingsExtractor,
    number,
    patterns,
    read_data,
)
from advisor.runs.trainers.export import Launch, fill_template, from_environment, refuse
from advisor.runs.trainers.registry import read_trainer
from advisor.runs.trainers.verl import console


def render(launch: Launch, model: str | None) -> str:
    """Write the overrides as a script."""
    launch.check_synchronous("verl")
    settings = launch.settings
    if settings.schedule not in ("constant", "cosine"):
        refuse("schedule", "verl", schedule=settings.schedule)
    moments = f"betas=[{settings.momentum!r},0.999]"  # verl's default; both are one setting
    if settings.optimizer == "sgd":
        moments = f"override_optimizer_config={{momentum:{settings.momentum!r}}}"
    is_lora, modules = settings.adapter == "lora", settings.adapter_targets
    named = modules if modules == "all-linear" else f"[{modules}]"
    targets = shlex.quote(f"actor_rollout_ref.model.target_modules={named}")
    return fill_template(
        "verl",
        launch,
        model=from_environment(model),
        # Training stops at these or at its epochs, and an epoch has at least one batch.
        refreshes=launch.in_refreshes("steps", launch.steps, "verl"),
        warmup=launch.in_refreshes("warmup", settings.warmup_steps, "verl"),
        moments=shlex.quote(OPTIM + moments),
        by_spread=settings.advantage_scaling == "group",
        has_kl=bool(settings.kl_coefficient),
        kl_of_loss=settings.kl_coefficient or None,
        loss_mode="gpg" if settings.importance_ratio is False else "vanilla",
        targets=targets if is_lora and modules is not None else None,
        # A base model under LoRA is never sent to vLLM, so that must load it itself.
        load_format="safetensors" if is_lora else None,
    )


OPTIM = "actor_rollout_ref.actor.optim."
ASYNC = "async_training."
UPDATE = ("actor/pg_loss", "actor/ppo_kl", "actor/pg_clipfrac", "actor/grad_norm")
"""Keys of every update; a log with all of them was not thinned out by an export."""

PATTERNS = patterns("verl")


class _Settings(SettingsExtractor):
    """Settings by verl's names, also where EasyR1 has others, and without interpolations."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        marks = ("worker.actor.", "worker.rollout.", "data.rollout_batch_size")
        self.is_easyr1 = any(key.startswith(marks) for key in settings)
        names = read_data("verl")["easyr1"] if self.is_easyr1 else {}
        self._called = {names.get(key, key): key for key in settings}
        # Nobody sets this one by hand, so only a resolved configuration has it.
        self.is_whole = f"{OPTIM}total_training_steps" in self._called
        # Not what refers to another setting, and no number that stands for infinity.
        usable = {
            key: value
            for key, value in settings.items()
            if "${" not in str(value) and value != "???" and abs(number(value) or 0) < 1e12
        }
        super().__init__({names.get(key, key): value for key, value in usable.items()}, "verl")

    def shown(self, name: str) -> str:
        """Name of a setting as the user wrote it, without its path."""
        return self._called.get(name, name).rpartition(".")[2]

    def has_any(self, *prefixes: str) -> bool:
        """Whether a setting begins with one of some prefixes."""
        return any(name.startswith(prefixes) for name in self.settings)


def derive(settings: Mapping[str, Any]) -> Derived:
    """Derive settings from a whole or partial verl configuration."""
    extractor = _Settings(settings)
    _put_batches(extractor)
    _put_lag(extractor)
    _put_schedule(extractor)
    _put_optimizer(extractor)
    _put_kl(extractor)
    _put_clip(extractor)
    _put_advantage(extractor)
    extractor.take_adapter()
    if extractor.has_any("actor_rollout_ref.model.path") and "lora" not in str(settings).lower():
        extractor.note("adapter", "full", "lora_rank 0 (verl's default)")
    _put_names(extractor)
    each, nodes = (extractor.count(f"trainer.{name}") for name in ("n_gpus_per_node", "nnodes"))
    is_known = nodes is not None or "trainer.nnodes" not in settings
    if each is not None and is_known and not extractor.has_any("rollout.n"):
        count = 1 if nodes is None else nodes.value
        extractor.put("gpus", each.value * count, f"{each} x nnodes {count} = {each.value * count}")
    return extractor.derived()


def observe(table: Table) -> Derived:
    """KL coefficient and lag, where the rows show them."""
    derived = Derived()
    data = read_data("verl")["keys"]
    *coefficients, staleness = data["observed"]
    kl_terms = data["series"]["kl"]
    # Rows of updates that were not thinned out by an export.
    is_whole = np.logical_and.reduce([~table.cut, *(table.has(key) for key in UPDATE)])
    values = {key: table.column(key) for key in coefficients if table.has(key).any()}
    # verl averages the coefficient over mini-batches: 0.0010000000000000005.
    constant = {
        key: float(f"{float(np.median(column)):.6g}")
        for key, every in values.items()
        if (column := every[np.isfinite(every)]).size
        and np.ptp(column) <= 1e-6 * float(np.abs(column).max())
    }
    if constant and len(constant) == len(values) and min(constant.values()) > 0:
        terms = " + ".join(f"{value:g} ({key})" for key, value in constant.items())
        derived.put(
            "kl_coefficient",
            float(f"{sum(constant.values()):.6g}"),
            f"kl_coefficient {terms}, the same in every row",
        )
    elif not values and is_whole.any() and not any(table.has(key).any() for key in kl_terms):
        derived.put(
            "kl_coefficient",
            0.0,
            f"kl_coefficient 0: rows with {UPDATE[0]} have no {kl_terms[0]} and no {kl_terms[1]}, "
            "which verl logs where a KL term is used",
        )
    stale = table.column(staleness)
    stale = stale[np.isfinite(stale)]
    if stale.size and not stale.any():
        derived.put("lag", 0.0, f"lag 0: {staleness} is 0 in every row")
    return derived


def _put_batches(extractor: _Settings) -> None:
    """Derive prompts per optimizer step and optimizer steps per batch of rollouts."""
    is_async = extractor.has_any(ASYNC)
    if extractor.amount(*(["mini_batch"] if is_async else ["mini_batch", "batch"])) is None:
        return
    # The mini-batch counts prompts; verl multiplies it by the completions per prompt itself.
    mini = extractor.defaulted("mini_batch")
    if mini.value < 1:
        return
    if is_async:
        rounds, required = extractor.defaulted("rounds"), extractor.defaulted("required")
        count, prompts = int(rounds.value) * int(required.value), mini.value
        how = f"{rounds} x {required} = {count}, between two synchronisations"
        prompts_how = f"{mini}, in prompts"
    else:
        batch = extractor.defaulted("batch")
        count = math.ceil(batch.value / mini.value)
        prompts = batch.value / max(count, 1)
        how = f"{batch} / {mini} = {count}"
        prompts_how = f"{mini}, in prompts"
        if mini.value > batch.value:
            how = f"{batch} is below {mini}, so a batch of rollouts is one mini-batch"
            prompts_how = f"{batch}, all of it in one mini-batch ({mini})"
        elif count * mini.value != batch.value:
            how += ", rounded up"
            prompts_how = f"{batch} / {count} mini-batches = {prompts:g}"
    if count < 1:
        return
    extractor.put("prompts_per_step", prompts, prompts_how)
    extractor.put("minibatches_per_refresh", count, how)
    epochs = extractor.defaulted("epochs")
    if epochs.value == int(epochs.value) >= 1:
        extractor.note("epochs_per_refresh", int(epochs.value), epochs.source)


def _put_lag(extractor: _Settings) -> None:
    """Derive the age of the freshest rollouts, in optimizer steps."""
    uses_v1 = extractor.is_on("trainer.use_v1") is not False
    mode = extractor.word("trainer.v1.trainer_mode") if uses_v1 else ""
    own_rollout = extractor.has_any("rollout.nnodes", "rollout.n_gpus_per_node")
    ahead, name = None, "lag_of_own_devices"
    if extractor.has_any(ASYNC):
        ahead, name, unit = extractor.defaulted("staleness"), "lag_of_staleness", "synchronisation"
    elif mode in ("colocate_async", "separate_async"):
        ahead = extractor.defaulted(f"trainer.v1.{mode}.num_warmup_batches")
        name, unit = "lag_of_mode", "batch of rollouts"
    elif not own_rollout and extractor.is_on("actor_rollout_ref.hybrid_engine") is not False:
        if extractor.is_whole:
            extractor.note("lag", 0.0, "no setting of an asynchronous trainer")
        return
    interval = extractor.interval
    if interval is None or (ahead is not None and ahead.value < 0):
        return
    lag, how = float(interval), f"one batch of rollouts, {interval} optimizer steps"
    if ahead is not None:
        lag = float(ahead.value * interval)
        how = f"{ahead} x {interval} steps per {unit} = {lag:g}"
    extractor.put("lag", lag, how)
    extractor.assume_as(name, mode=mode, ahead=ahead and ahead.value)


def _put_schedule(extractor: _Settings) -> None:
    """Derive the learning-rate schedule, its warm-up and the planned optimizer steps."""
    kind, floor = extractor.choose("schedule"), extractor.amount("floor")
    if floor is not None and floor.value and kind == "cosine":
        extractor.assume_as("cosine", floor=floor)
    each, calls, counted = _update_calls(extractor)

    def put(ours: str, count: int, how: str) -> None:
        product = f" x {each} optimizer steps each = {count * each}"
        how += ", one optimizer step each" if each == 1 else product
        extractor.put(ours, count * each, how)

    if each and calls:
        put("planned_steps", calls, counted)
    steps, share = extractor.amount("warmup_steps"), extractor.amount("warmup_share")
    if steps is not None and steps.value > 0:
        if each:
            put("warmup_steps", int(steps.value), str(steps))
    elif steps is not None or share is not None:
        share = extractor.defaulted("warmup_share")
        if share.value == 0:
            extractor.note("warmup_steps", 0, str(share))
        elif each and calls is not None and 0 < share.value <= 1:
            count = int(share.value * calls)
            put("warmup_steps", count, f"{share} x {calls} ({counted}) = {count}")


def _update_calls(extractor: _Settings) -> tuple[int, int | None, str]:
    """Optimizer steps of a call of verl's update, calls of the run, and where they come from.

    The schedule advances by one at each call.
    """
    interval = extractor.interval
    if interval is None:
        return 0, None, ""
    minibatches, epochs = (extractor.facts[f"{n}_per_refresh"] for n in ("minibatches", "epochs"))
    total = extractor.count("total")
    if extractor.has_any(ASYNC):
        stated = extractor.count("required")
        samples = extractor.count("rollout.total_rollout_steps")
        required = 1 if stated is None else stated.value
        if samples is None:
            return required * epochs, None, ""
        size = extractor.facts["prompts_per_step"] * minibatches
        rounds, per_round = int(samples.value / size), minibatches // required
        how = f"{samples} / {size:g} prompts per synchronisation = {rounds}"
        return required * epochs, rounds * per_round, f"{how} x {per_round} local updates"
    if extractor.word("trainer.v1.trainer_mode") == "separate_async":
        calls = None if total is None else total.value * minibatches
        return epochs, calls, f"{total} x {minibatches} local updates"
    total = total or extractor.count("resolved_total")
    return interval, None if total is None else total.value, str(total)


def _put_optimizer(extractor: _Settings) -> None:
    name = extractor.text("optimizer")
    if name is not None:
        bare = name.value.lower().lstrip("_")
        kind = next((kind for kind in ("adamw", "adam", "sgd") if bare.startswith(kind)), None)
        if kind is None:
            extractor.assume_as("optimizer", name=name)
        else:
            extractor.note("optimizer", kind, name.value)
        if kind == "sgd":
            # FSDP takes the name of a class in torch.optim; in lower case only Megatron has it.
            is_megatron = name.value == "sgd"
            momentum = extractor.amount("sgd_momentum" if is_megatron else "momentum_of_sgd")
            extractor.take("momentum", momentum)
            if momentum is None and is_megatron:
                read = "sgd_momentum 0.9 (Megatron's default)"
                extractor.assume(read)
                extractor.put("momentum", 0.9, read)
            return
    momenta = extractor.listed(f"{OPTIM}override_optimizer_config.betas")
    momenta = momenta or extractor.listed(f"{OPTIM}betas")
    decay = number(momenta[0]) if len(momenta) == 2 else None
    if decay is not None and 0 <= decay < 1:
        extractor.note("momentum", decay, "first of betas")


def _put_kl(extractor: _Settings) -> None:
    if extractor.is_easyr1:
        weight = extractor.amount("algorithm.kl_coef")
        if extractor.is_on("algorithm.disable_kl"):
            extractor.note("kl_coefficient", 0.0, "disable_kl True")
        elif weight is not None and weight.value >= 0:
            extractor.take("kl_coefficient", weight)
        return
    in_loss, in_reward = extractor.is_on("kl_in_loss"), extractor.is_on("kl_in_reward")
    if in_reward is None and not in_loss and extractor.is_whole:
        # Versions without this switch penalise the reward whenever the loss has no KL term.
        in_reward = True
    terms = [extractor.defaulted("kl_of_loss")] if in_loss else []
    if in_reward:
        terms.append(extractor.defaulted("kl_of_reward"))
        if extractor.word("algorithm.kl_ctrl.type") == "adaptive":
            extractor.assume_as("adaptive_kl")
    if terms:
        total = sum(term.value for term in terms)
        how = " + ".join(map(str, terms))
        if total >= 0:
            how = how if len(terms) == 1 else f"{how} = {total:g}"
            extractor.put("kl_coefficient", total, how)
        return
    stated = {"use_kl_loss": in_loss, "use_kl_in_reward": in_reward}
    names = " and ".join(name for name, value in stated.items() if value is not None)
    if not names:
        return
    for name, value in stated.items():
        if value is None:
            extractor.assume(f"{name} False (verl's default)")
    extractor.note("kl_coefficient", 0.0, f"{names} False")


def _put_clip(extractor: _Settings) -> None:
    both = extractor.amount("clip")
    sides = {side: extractor.amount(side) for side in ("clip_low", "clip_high")}
    has_sides = any(side is not None for side in sides.values())
    is_set = both is not None and both.value != 0.2  # verl's own
    if is_set and not has_sides and not extractor.is_whole:
        extractor.assume_as("clip", both=both)
        return
    for ours, own in sides.items():
        bound = own if own is not None or (has_sides and not extractor.is_whole) else both
        if bound is not None and bound.value > 0:
            extractor.take(ours, bound)


def _put_advantage(extractor: _Settings) -> None:
    estimator = extractor.word("estimator")
    scaling = extractor.data["choices"]["advantage_scaling"].get(estimator)
    if estimator in ("grpo", "grpo_vectorized", "grpo_passk"):
        by_spread = extractor.is_on("divided")
        read = f"norm_adv_by_std_in_grpo {by_spread}"
        if by_spread is None:
            read = "norm_adv_by_std_in_grpo True (verl's default)"
            extractor.assume(read)
        scaling = "none" if by_spread is False else "group"
        extractor.put("advantage_scaling", scaling, f"adv_estimator {estimator}, {read}")
    elif scaling is not None:
        extractor.note("advantage_scaling", scaling, f"adv_estimator {estimator}")
    if estimator == "gae":
        extractor.warn(f"adv_estimator gae: {NOT_GRPO}")
        extractor.mark(PPO)
    if extractor.word("loss"):
        is_weighted = extractor.word("loss") != "gpg"
        extractor.note("importance_ratio", is_weighted, str(extractor.text("loss")))


def _put_names(extractor: _Settings) -> None:
    path = extractor.text("model")
    if path is not None:
        extractor.note("model", bare_name(path.value), f"path {path.value[:200]}")
    files = extractor.listed("data.train_files")
    tasks = dict.fromkeys(bare_name(file) for file in files)
    if tasks:
        extractor.note("task", "+".join(tasks)[:200], f"train_files {', '.join(files)[:200]}")


def bare_name(path: str) -> str:
    """What a path calls its model or data set: ``gsm8k`` of ``~/data/gsm8k/train.parquet``."""
    file_end, dull = PATTERNS["file_end"], PATTERNS["dull_name"]
    cached = PATTERNS["hub_cache"].search(path)
    if cached is not None:
        return "/".join(cached.groups())
    if PATTERNS["hub_name"].fullmatch(path) and not file_end.search(path):
        return path.partition("@")[0]
    parts = [file_end.sub("", part) for part in PurePosixPath(path.replace("\\", "/")).parts]
    named = [part for part in parts if part.strip("/~.") and not dull.fullmatch(part)]
    return named[-1] if named else path


TRAINER = read_trainer(
    "verl", readers=(console.READER,), export=render, derive=derive, observe=observe
)
