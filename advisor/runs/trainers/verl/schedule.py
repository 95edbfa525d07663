"""Batches, lag, warm-up and planned steps of verl, whose step counts batches of rollouts."""

from __future__ import annotations

import math
from typing import NamedTuple

from advisor.runs.trainers.verl.derivation import ACTOR, OPTIM, SettingsDerivation

MINI, BATCH, EPOCHS = f"{ACTOR}ppo_mini_batch_size", "data.train_batch_size", f"{ACTOR}ppo_epochs"
ASYNC = "async_training."


class UpdateCalls(NamedTuple):
    """Calls of verl's update, at each of which the learning-rate schedule advances by one.

    Attributes
    ----------
    steps_per_call : int
        Optimizer steps of one call: those of a whole batch of rollouts in a synchronous trainer.
    total : int or None
        Calls in the whole run, where they are known.
    how : str
        Where ``total`` comes from.
    """

    steps_per_call: int
    total: int | None
    how: str


def put_batches(derivation: SettingsDerivation) -> None:
    """Derive prompts per optimizer step and optimizer steps per batch of rollouts."""
    is_async = derivation.has_any(ASYNC)
    if all(derivation.number(name) is None for name in ((MINI,) if is_async else (MINI, BATCH))):
        return
    # The mini-batch counts prompts; verl multiplies it by the completions per prompt itself.
    mini, mini_read = derivation.factor(MINI)
    if mini < 1:
        return
    if is_async:
        rounds, rounds_read = derivation.factor(f"{ASYNC}trigger_parameter_sync_step")
        required, required_read = derivation.factor(f"{ASYNC}require_batches")
        count, prompts = int(rounds) * int(required), mini
        how = f"{rounds_read} x {required_read} = {count}, between two synchronisations"
        prompts_how = f"{mini_read}, in prompts"
    else:
        batch, batch_read = derivation.factor(BATCH)
        count = math.ceil(batch / mini)
        prompts = batch / max(count, 1)
        if mini > batch:
            how = f"{batch_read} is below {mini_read}, so a batch of rollouts is one mini-batch"
            prompts_how = f"{batch_read}, all of it in one mini-batch ({mini_read})"
        elif count * mini == batch:
            how = f"{batch_read} / {mini_read} = {count}"
            prompts_how = f"{mini_read}, in prompts"
        else:
            how = f"{batch_read} / {mini_read} = {count}, rounded up"
            prompts_how = f"{batch_read} / {count} mini-batches = {prompts:g}"
    if count < 1:
        return
    derivation.put("prompts_per_step", prompts, prompts_how)
    derivation.put("minibatches_per_refresh", count, how)
    epochs, read = derivation.factor(EPOCHS)
    if epochs == int(epochs) >= 1:
        derivation.put(
            "epochs_per_refresh", int(epochs), f"epochs_per_refresh {int(epochs)} ({read})"
        )


def put_lag(derivation: SettingsDerivation) -> None:
    """Derive the age of the freshest rollouts, in optimizer steps."""
    interval = derivation.interval
    mode = (
        None
        if derivation.is_on("trainer.use_v1") is False
        else derivation.word("trainer.v1.trainer_mode")
    )
    own_rollout = derivation.has_any("rollout.nnodes", "rollout.n_gpus_per_node")
    if derivation.has_any(ASYNC):
        share, read = derivation.factor(f"{ASYNC}staleness_threshold")
        if interval is not None and share >= 0:
            lag = share * interval
            derivation.put("lag", lag, f"{read} x {interval} steps per synchronisation = {lag:g}")
            derivation.assume(
                "lag: staleness_threshold is the largest share of rollouts that may be one "
                "synchronisation old; it was taken as reached"
            )
    elif mode in ("colocate_async", "separate_async"):
        ahead, read = derivation.factor(f"trainer.v1.{mode}.num_warmup_batches")
        if interval is not None and ahead >= 0:
            lag = ahead * interval
            derivation.put("lag", lag, f"{read} x {interval} steps per batch of rollouts = {lag:g}")
            derivation.assume(f"lag: {mode} was taken to use every batch {ahead:g} batches late")
    elif own_rollout or derivation.is_on("actor_rollout_ref.hybrid_engine") is False:
        if interval is not None:
            derivation.put(
                "lag", float(interval), f"one batch of rollouts, {interval} optimizer steps"
            )
            derivation.assume(
                "lag: trainer and rollout have GPUs of their own and nothing sets async_training, "
                "as in verl's one_step_off recipe"
            )
    elif derivation.is_whole:
        derivation.put("lag", 0.0, "lag 0: no setting of an asynchronous trainer")


def put_schedule(derivation: SettingsDerivation) -> None:
    """Derive the learning-rate schedule, its warm-up and the planned optimizer steps."""
    for name in ("warmup_style", "lr_scheduler_type", "lr_decay_style"):
        kind = derivation.word(f"{OPTIM}{name}")
        if kind in ("constant", "linear", "cosine"):
            derivation.take_over("schedule", kind, f"{OPTIM}{name}")
            break
    floor = derivation.number(f"{OPTIM}min_lr_ratio")
    if floor and derivation.facts.get("schedule") == "cosine":
        derivation.assume(f"schedule: a cosine to 0, though min_lr_ratio is {floor:g}")
    calls = _update_calls(derivation)
    if calls is not None and calls.total is not None:
        planned = calls.total * calls.steps_per_call
        if planned >= 1:
            derivation.put(
                "planned_steps", planned, _times(calls.how, calls.steps_per_call, planned)
            )
    _put_warmup(derivation, calls)


def _update_calls(derivation: SettingsDerivation) -> UpdateCalls | None:
    interval = derivation.interval
    if interval is None:
        return None
    minibatches, epochs = (derivation.facts[f"{n}_per_refresh"] for n in ("minibatches", "epochs"))
    if derivation.has_any(ASYNC):
        required = derivation.whole(f"{ASYNC}require_batches") or 1
        samples = derivation.whole("rollout.total_rollout_steps")
        if samples is None:
            return UpdateCalls(required * epochs, None, "")
        size = derivation.facts["prompts_per_step"] * minibatches
        rounds = int(samples / size)
        how = f"total_rollout_steps {samples} / {size:g} prompts per synchronisation = {rounds}"
        per_round = minibatches // required
        how += f" x {per_round} local updates"
        return UpdateCalls(required * epochs, rounds * per_round, how)
    is_split = derivation.word("trainer.v1.trainer_mode") == "separate_async"
    total = derivation.whole("trainer.total_training_steps")
    how = f"{derivation.call('trainer.total_training_steps')} {total}"
    if total is not None and is_split:
        total, how = total * minibatches, f"{how} x {minibatches} local updates"
    if total is None:
        # verl fills this one in as it starts, so the configuration in W&B has it.
        total = derivation.whole(f"{OPTIM}total_training_steps")
        how = f"{derivation.call(f'{OPTIM}total_training_steps')} {total}"
    return UpdateCalls(epochs if is_split else interval, total, how)


def _times(how: str, steps_per_call: int, steps: int) -> str:
    if steps_per_call == 1:
        return f"{how}, one optimizer step each"
    return f"{how} x {steps_per_call} optimizer steps each = {steps}"


def _put_warmup(derivation: SettingsDerivation, calls: UpdateCalls | None) -> None:
    steps_name, ratio_name = f"{OPTIM}lr_warmup_steps", f"{OPTIM}lr_warmup_steps_ratio"
    steps = derivation.number(steps_name)
    if steps is None and derivation.number(ratio_name) is None:
        return
    if steps is not None and steps > 0:
        if calls is not None:
            warm = int(steps) * calls.steps_per_call
            how = f"{derivation.call(steps_name)} {int(steps)}"
            derivation.put("warmup_steps", warm, _times(how, calls.steps_per_call, warm))
        return
    share, read = derivation.factor(ratio_name)
    if share == 0:
        derivation.put("warmup_steps", 0, f"warmup_steps 0 ({read})")
    elif calls is not None and calls.total is not None and 0 < share <= 1:
        count = int(share * calls.total)
        warm = count * calls.steps_per_call
        how = f"{read} x {calls.total} ({calls.how}) = {count}"
        derivation.put("warmup_steps", warm, _times(how, calls.steps_per_call, warm))
