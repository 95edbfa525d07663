"""Batches, lag, warm-up and planned steps of verl, whose step counts batches of rollouts."""

from __future__ import annotations

import math
from typing import NamedTuple

from advisor.runs.trainers.derived import SettingsExtractor

ASYNC = "async_training."


class UpdateCalls(NamedTuple):
    """Calls of verl's update, at each of which the learning-rate schedule advances by one."""

    # Those of a whole batch of rollouts in a synchronous trainer.
    steps_per_call: int
    # In the whole run, where they are known, and where that comes from.
    total: int | None
    how: str


def put_batches(extractor: SettingsExtractor) -> None:
    """Derive prompts per optimizer step and optimizer steps per batch of rollouts."""
    is_async = _has_any(extractor, ASYNC)
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


def put_lag(extractor: SettingsExtractor, is_whole: bool) -> None:
    """Derive the age of the freshest rollouts, in optimizer steps."""
    interval = extractor.interval
    mode = extractor.text("trainer.v1.trainer_mode")
    if extractor.is_on("trainer.use_v1") is False:
        mode = None
    own_rollout = _has_any(extractor, "rollout.nnodes", "rollout.n_gpus_per_node")
    if _has_any(extractor, ASYNC):
        share = extractor.defaulted("staleness")
        if interval is not None and share.value >= 0:
            lag = share.value * interval
            extractor.put("lag", lag, f"{share} x {interval} steps per synchronisation = {lag:g}")
            extractor.assume(
                "lag: staleness_threshold is the largest share of rollouts that may be one "
                "synchronisation old; it was taken as reached"
            )
    elif mode is not None and mode.value in ("colocate_async", "separate_async"):
        ahead = extractor.defaulted(f"trainer.v1.{mode.value}.num_warmup_batches")
        if interval is not None and ahead.value >= 0:
            lag = ahead.value * interval
            extractor.put("lag", lag, f"{ahead} x {interval} steps per batch of rollouts = {lag:g}")
            extractor.assume(
                f"lag: {mode.value} was taken to use every batch {ahead.value:g} batches late"
            )
    elif own_rollout or extractor.is_on("actor_rollout_ref.hybrid_engine") is False:
        if interval is not None:
            extractor.put(
                "lag", float(interval), f"one batch of rollouts, {interval} optimizer steps"
            )
            extractor.assume(
                "lag: trainer and rollout have GPUs of their own and nothing sets async_training, "
                "as in verl's one_step_off recipe"
            )
    elif is_whole:
        extractor.note("lag", 0.0, "no setting of an asynchronous trainer")


def put_schedule(extractor: SettingsExtractor) -> None:
    """Derive the learning-rate schedule, its warm-up and the planned optimizer steps."""
    kind, floor = extractor.choose("schedule"), extractor.amount("floor")
    if floor is not None and floor.value and kind == "cosine":
        extractor.assume(f"schedule: a cosine to 0, though {floor}")
    calls = _update_calls(extractor)
    if calls is not None and calls.total is not None:
        planned = calls.total * calls.steps_per_call
        if planned >= 1:
            extractor.put(
                "planned_steps", planned, _times(calls.how, calls.steps_per_call, planned)
            )
    _put_warmup(extractor, calls)


def _has_any(extractor: SettingsExtractor, *prefixes: str) -> bool:
    return any(name.startswith(prefixes) for name in extractor.settings)


def _update_calls(extractor: SettingsExtractor) -> UpdateCalls | None:
    interval = extractor.interval
    if interval is None:
        return None
    minibatches, epochs = (extractor.facts[f"{n}_per_refresh"] for n in ("minibatches", "epochs"))
    if _has_any(extractor, ASYNC):
        stated = extractor.count("required")
        samples = extractor.count("rollout.total_rollout_steps")
        required = 1 if stated is None else stated.value
        if samples is None:
            return UpdateCalls(required * epochs, None, "")
        size = extractor.facts["prompts_per_step"] * minibatches
        rounds, per_round = int(samples.value / size), minibatches // required
        how = f"{samples} / {size:g} prompts per synchronisation = {rounds}"
        how += f" x {per_round} local updates"
        return UpdateCalls(required * epochs, rounds * per_round, how)
    mode = extractor.text("trainer.v1.trainer_mode")
    is_split = mode is not None and mode.value == "separate_async"
    steps_per_call = epochs if is_split else interval
    total = extractor.count("total")
    if total is not None and is_split:
        how = f"{total} x {minibatches} local updates"
        return UpdateCalls(steps_per_call, total.value * minibatches, how)
    total = total or extractor.count("resolved_total")
    return UpdateCalls(steps_per_call, None if total is None else total.value, str(total))


def _times(how: str, steps_per_call: int, steps: int) -> str:
    if steps_per_call == 1:
        return f"{how}, one optimizer step each"
    return f"{how} x {steps_per_call} optimizer steps each = {steps}"


def _put_warmup(extractor: SettingsExtractor, calls: UpdateCalls | None) -> None:
    steps = extractor.amount("warmup_steps")
    if steps is None and extractor.amount("warmup_share") is None:
        return
    if steps is not None and steps.value > 0:
        if calls is not None:
            warm = int(steps.value) * calls.steps_per_call
            extractor.put("warmup_steps", warm, _times(str(steps), calls.steps_per_call, warm))
        return
    share = extractor.defaulted("warmup_share")
    if share.value == 0:
        extractor.note("warmup_steps", 0, str(share))
    elif calls is not None and calls.total is not None and 0 < share.value <= 1:
        count = int(share.value * calls.total)
        warm = count * calls.steps_per_call
        how = f"{share} x {calls.total} ({calls.how}) = {count}"
        extractor.put("warmup_steps", warm, _times(how, calls.steps_per_call, warm))
