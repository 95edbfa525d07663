"""What one count of verl's step is worth: mini-batches, epochs, lag, warm-up and plan."""

from __future__ import annotations

import math
from typing import NamedTuple

from advisor.trainers.verl.derivation import ACTOR, OPTIM, Book

MINI, BATCH, EPOCHS = f"{ACTOR}ppo_mini_batch_size", "data.train_batch_size", f"{ACTOR}ppo_epochs"
ASYNC = "async_training."


class Clock(NamedTuple):
    """The learning-rate schedule, which verl moves on once per call of its update.

    Attributes
    ----------
    tick : int
        Optimizer steps of one call: those of a whole batch of rollouts in a synchronous trainer.
    ticks : int or None
        Calls in the whole run, where they are known.
    how : str
        Where ``ticks`` comes from.
    """

    tick: int
    ticks: int | None
    how: str


def put_batches(book: Book) -> None:
    """Derive prompts per optimizer step and optimizer steps per batch of rollouts."""
    is_async = book.has_any(ASYNC)
    if all(book.number(name) is None for name in ((MINI,) if is_async else (MINI, BATCH))):
        return
    # The mini-batch counts prompts; verl multiplies it by the completions per prompt itself.
    mini, mini_read = book.factor(MINI)
    if mini < 1:
        return
    if is_async:
        rounds, rounds_read = book.factor(f"{ASYNC}trigger_parameter_sync_step")
        required, required_read = book.factor(f"{ASYNC}require_batches")
        count, prompts = int(rounds) * int(required), mini
        how = f"{rounds_read} x {required_read} = {count}, between two synchronisations"
        prompts_how = f"{mini_read}, in prompts"
    else:
        batch, batch_read = book.factor(BATCH)
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
    book.put("prompts_per_step", prompts, prompts_how)
    book.put("minibatches_per_refresh", count, how)
    epochs, read = book.factor(EPOCHS)
    if epochs == int(epochs) >= 1:
        book.put("epochs_per_refresh", int(epochs), f"epochs_per_refresh {int(epochs)} ({read})")


def put_lag(book: Book) -> None:
    """Derive the age of the freshest rollouts, in optimizer steps."""
    interval = book.interval
    mode = None if book.flag("trainer.use_v1") is False else book.text("trainer.v1.trainer_mode")
    own_rollout = book.has_any("rollout.nnodes", "rollout.n_gpus_per_node")
    if book.has_any(ASYNC):
        share, read = book.factor(f"{ASYNC}staleness_threshold")
        if interval is not None and share >= 0:
            lag = share * interval
            book.put("lag", lag, f"{read} x {interval} steps per synchronisation = {lag:g}")
            book.assume(
                "lag: staleness_threshold is the largest share of rollouts that may be one "
                "synchronisation old; it was taken as reached"
            )
    elif mode in ("colocate_async", "separate_async"):
        ahead, read = book.factor(f"trainer.v1.{mode}.num_warmup_batches")
        if interval is not None and ahead >= 0:
            lag = ahead * interval
            book.put("lag", lag, f"{read} x {interval} steps per batch of rollouts = {lag:g}")
            book.assume(f"lag: {mode} was taken to use every batch {ahead:g} batches late")
    elif own_rollout or book.flag("actor_rollout_ref.hybrid_engine") is False:
        if interval is not None:
            book.put("lag", float(interval), f"one batch of rollouts, {interval} optimizer steps")
            book.assume(
                "lag: trainer and rollout have GPUs of their own and nothing sets async_training, "
                "as in verl's one_step_off recipe"
            )
    elif book.is_whole:
        book.put("lag", 0.0, "lag 0: no setting of an asynchronous trainer")


def put_schedule(book: Book) -> None:
    """Derive the learning-rate schedule, its warm-up and the planned optimizer steps."""
    for name in ("warmup_style", "lr_scheduler_type", "lr_decay_style"):
        kind = book.text(f"{OPTIM}{name}")
        if kind in ("constant", "linear", "cosine"):
            book.take_over("schedule", kind, f"{OPTIM}{name}")
            break
    floor = book.number(f"{OPTIM}min_lr_ratio")
    if floor and book.facts.get("schedule") == "cosine":
        book.assume(f"schedule: a cosine to 0, though min_lr_ratio is {floor:g}")
    clock = _clock(book)
    if clock is not None and clock.ticks is not None:
        planned = clock.ticks * clock.tick
        if planned >= 1:
            book.put("planned_steps", planned, _times(clock.how, clock.tick, planned))
    _put_warmup(book, clock)


def _clock(book: Book) -> Clock | None:
    interval = book.interval
    if interval is None:
        return None
    minibatches, epochs = (book.facts[f"{n}_per_refresh"] for n in ("minibatches", "epochs"))
    if book.has_any(ASYNC):
        required = book.whole(f"{ASYNC}require_batches") or 1
        samples = book.whole("rollout.total_rollout_steps")
        if samples is None:
            return Clock(required * epochs, None, "")
        size = book.facts["prompts_per_step"] * minibatches
        rounds = int(samples / size)
        how = f"total_rollout_steps {samples} / {size:g} prompts per synchronisation = {rounds}"
        per_round = minibatches // required
        how += f" x {per_round} local updates"
        return Clock(required * epochs, rounds * per_round, how)
    is_split = book.text("trainer.v1.trainer_mode") == "separate_async"
    total = book.whole("trainer.total_training_steps")
    how = f"{book.call('trainer.total_training_steps')} {total}"
    if total is not None and is_split:
        total, how = total * minibatches, f"{how} x {minibatches} local updates"
    if total is None:
        # verl fills this one in as it starts, so the configuration in W&B has it.
        total = book.whole(f"{OPTIM}total_training_steps")
        how = f"{book.call(f'{OPTIM}total_training_steps')} {total}"
    return Clock(epochs if is_split else interval, total, how)


def _times(how: str, tick: int, steps: int) -> str:
    if tick == 1:
        return f"{how}, one optimizer step each"
    return f"{how} x {tick} optimizer steps each = {steps}"


def _put_warmup(book: Book, clock: Clock | None) -> None:
    steps_name, ratio_name = f"{OPTIM}lr_warmup_steps", f"{OPTIM}lr_warmup_steps_ratio"
    steps = book.number(steps_name)
    if steps is None and book.number(ratio_name) is None:
        return
    if steps is not None and steps > 0:
        if clock is not None:
            warm = int(steps) * clock.tick
            how = f"{book.call(steps_name)} {int(steps)}"
            book.put("warmup_steps", warm, _times(how, clock.tick, warm))
        return
    share, read = book.factor(ratio_name)
    if share == 0:
        book.put("warmup_steps", 0, f"warmup_steps 0 ({read})")
    elif clock is not None and clock.ticks is not None and 0 < share <= 1:
        count = int(share * clock.ticks)
        warm = count * clock.tick
        how = f"{read} x {clock.ticks} ({clock.how}) = {count}"
        book.put("warmup_steps", warm, _times(how, clock.tick, warm))
