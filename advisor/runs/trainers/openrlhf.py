"""OpenRLHF and its forks: settings from arguments and rows, and export."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from advisor.runs.logfiles.config_files import Scalar, literal
from advisor.runs.logfiles.logged import Table
from advisor.runs.pilot_run import NOT_GRPO
from advisor.runs.trainers.derived import PPO, Derived, SettingsExtractor, number, share
from advisor.runs.trainers.export import Launch, fill_template, from_environment, refuse
from advisor.runs.trainers.registry import read_trainer


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run."""
    opened: dict[str, Any] = {}
    for key, value in settings.items():
        inner = parse_namespace(value) if isinstance(value, str) else {}
        opened |= {f"{key}.{name}": each for name, each in inner.items()} or {key: value}
    extractor = SettingsExtractor(opened, "openrlhf")
    _derive_batches(extractor)
    _derive_lag(extractor)
    _derive_optimizer(extractor)
    _derive_schedule(extractor)
    _derive_loss(extractor)
    extractor.take_adapter()
    whole, completion = extractor.count("data.max_len"), extractor.count("rollout.max_new_tokens")
    if whole is not None and completion is not None and whole.value > completion.value:
        prompt = whole.value - completion.value
        extractor.put("max_prompt_length", prompt, f"{whole} - {completion} = {prompt}")
    if extractor.choose("precision") is None and extractor.is_on("bf16"):
        extractor.note("precision", "bf16", "bf16 is on")
    filtered = extractor.switch("filtered")
    if filtered is not None and filtered.value:
        extractor.assume_as("filtered", name=filtered.name)
    return extractor.derived()


def observe(table: Table) -> Derived:
    """KL coefficient, where the rows show that there is no reference policy."""
    # Without a reference OpenRLHF logs a KL of exactly 0 (``make_experience`` and
    # ``training_step``); with one, rounding alone makes it differ from 0.
    derived = Derived()
    for key in ("kl", "train/kl"):
        values = table.column(key)
        values = values[np.isfinite(values)]
        # In so many rows a KL of exactly 0 is none that happens to be small.
        if values.size >= 5 and not values.any():
            line = f"kl_coefficient 0: '{key}' is exactly 0 in all {values.size} rows"
            derived.put("kl_coefficient", 0.0, line)
            break
    return derived


def _derive_batches(extractor: SettingsExtractor) -> None:
    group = extractor.count("group_size")
    if group is None or extractor.count("trained", "rolled_out") is None:
        return
    trained, rolled = extractor.defaulted("trained"), extractor.defaulted("rolled_out")
    prompts = share(trained.value, group.value)
    extractor.put("prompts_per_step", prompts, f"{trained} / {group} = {prompts:g}")
    minibatches, left = divmod(int(rolled.value) * group.value, int(trained.value))
    line = f"{rolled} x {group} / {trained}"
    if not minibatches:
        extractor.assume_as("too_small", line=line)
        return
    if left:
        extractor.assume_as("left_over", line=line, left=left)
    extractor.put("minibatches_per_refresh", minibatches, f"{line} = {minibatches}")
    epochs = extractor.defaulted("epochs")
    extractor.take("epochs_per_refresh", epochs)


def _derive_lag(extractor: SettingsExtractor) -> None:
    """Age of the weights that sample a batch: as many batches as the queue holds."""
    # A place in the queue is taken as generation begins and given back as training begins
    # (``ppo_trainer_async.py``).
    switch = extractor.switch("asynchronous")
    if switch is None:
        return
    if not switch.value:
        extractor.note("lag", 0.0, str(switch))
        return
    queue, interval = extractor.defaulted("queue"), extractor.interval
    if interval is None:
        extractor.assume_as("unknown_lag", name=switch.name, queue=queue.value)
        return
    lag = int(queue.value) * interval
    extractor.put("lag", float(lag), f"{queue} x {interval} steps per batch = {lag}")
    extractor.assume_as("lag", lag=lag)
    partial = extractor.switch("partial")
    if partial is not None and partial.value:
        extractor.assume_as("partial", name=partial.name)


def _derive_optimizer(extractor: SettingsExtractor) -> None:
    if extractor.word("optimizer") not in ("", "adam"):
        extractor.assume_as("optimizer", optimizer=extractor.text("optimizer"))
        return
    extractor.take_over("learning_rate")
    if "learning_rate" not in extractor.facts:
        return
    extractor.note("optimizer", "adamw", "DeepSpeed's, the only one but for muon")
    betas = _pair(extractor, "betas")
    if betas is not None and betas[1]:
        extractor.note("momentum", betas[1][0], f"first of {betas[0]}")


def _derive_schedule(extractor: SettingsExtractor) -> None:
    extractor.choose("schedule")
    if "min_lr" in extractor.word("schedule"):
        ratio = extractor.amount("actor.min_lr_ratio")
        low = f"{ratio.value:g}" if ratio is not None else "0.1 (OpenRLHF's default)"
        extractor.assume_as("cosine", low=low)
    if extractor.word("schedule") == "constant":
        extractor.note("warmup_steps", 0, "a constant schedule has none")


def _derive_loss(extractor: SettingsExtractor) -> None:
    """Importance ratio, its bounds, what advantages are divided by, and the KL term's target."""
    target = extractor.amount("kl_target")
    if "kl_coefficient" in extractor.facts and target is not None:
        extractor.assume_as("kl_target", target=target)
    both, pair = extractor.amount("clip"), _pair(extractor, "clip_pair")
    if pair is not None and len(pair[1]) == 2:
        extractor.note("clip_low", pair[1][0], f"first of {pair[0]}")
        extractor.note("clip_high", pair[1][1], f"second of {pair[0]}")
    elif pair is None:
        extractor.take("clip_low", both)
        extractor.take("clip_high", both)
    extractor.choose("importance_ratio")
    scaling, estimator = extractor.choose("advantage_scaling"), extractor.text("advantage_scaling")
    undivided = extractor.switch("undivided")
    if estimator is not None and estimator.value == "gae":
        extractor.warn(f"{estimator}: {NOT_GRPO}")
        extractor.mark(PPO)
    if estimator is not None and estimator.value == "rloo":
        if estimator.name == "advantage_estimator":
            extractor.assume_as("rloo")
        else:
            extractor.note("advantage_scaling", "none", str(estimator))
    if scaling == "batch" and undivided is not None and undivided.value:
        extractor.note("advantage_scaling", "none", undivided.name)


def _pair(extractor: SettingsExtractor, ours: str) -> tuple[str, list[float]] | None:
    """Numbers of an argument that takes two."""
    for name in extractor.names[ours]:
        found = [number(each) for each in extractor.listed(name)]
        numbers = [each for each in found if each is not None]
        if numbers:
            return name, numbers
    return None


def parse_namespace(text: str) -> dict[str, Scalar]:
    """Arguments of a namespace that was written as text, by dotted names."""
    if not text.startswith(("namespace(", "Namespace(")):
        return {}
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return dict(_arguments(tree.body, "")) if isinstance(tree.body, ast.Call) else {}


def _arguments(call: ast.Call, prefix: str) -> Iterator[tuple[str, Scalar]]:
    for argument in call.keywords:
        name, value = f"{prefix}{argument.arg}", argument.value
        if isinstance(value, ast.Call):
            yield from _arguments(value, f"{name}.")
        elif isinstance(value, ast.Tuple | ast.List):
            yield name, ", ".join(map(ast.unparse, value.elts))
        else:
            yield name, literal(ast.unparse(value))


def render(launch: Launch, model: str | None) -> str:
    """Write the flags as a script."""
    launch.check_corrected("OpenRLHF")
    settings = launch.settings
    if settings.optimizer == "sgd":
        refuse("sgd", "openrlhf")
    limit, prompt = settings.max_completion_length, settings.max_prompt_length
    is_lora, has_kl = settings.adapter == "lora", bool(settings.kl_coefficient)
    refreshes, lag = launch.in_refreshes("steps", launch.steps, "OpenRLHF"), settings.lag
    queue = launch.in_refreshes("queue", lag, "OpenRLHF") if lag else None
    return fill_template(
        "openrlhf",
        launch,
        # The flag of the prompt's limit is of both limits together.
        unknown=("max_prompt_length",) if limit is None else (),
        model=from_environment(model),
        samples=launch.rollout_prompts * refreshes,
        both_lengths=None if limit is None or prompt is None else prompt + limit,
        warmup_ratio=warmup_ratio(launch.steps, settings.warmup_steps),
        # AdamW without decay is Adam.
        weight_decay=0.0 if settings.optimizer == "adam" else None,
        use_loss="use_loss" if has_kl else None,
        kl_estimator="k3" if has_kl else None,
        targets=(settings.adapter_targets or "").replace(",", " ") or None if is_lora else None,
        # Engines share the trainer's devices, or run ahead on devices of their own.
        engine_sleep=None if queue else "enable_sleep",
        shared_memory=None if queue else 0.6,
        async_enable="async_enable" if queue else None,
        own_devices=launch.devices if queue else None,
        steps_ahead=f"{settings.lag:g}" if queue else None,
        queue=queue,
    )


def warmup_ratio(steps: int, warmup_steps: int) -> float:
    """Share of the run that OpenRLHF turns back into a number of warm-up steps."""
    # The plain quotient misses it where ceil(steps * ratio) is a rounding error too large.
    ratio = warmup_steps / steps
    return ratio if math.ceil(steps * ratio) == warmup_steps else math.nextafter(ratio, 0.0)


TRAINER = read_trainer("openrlhf", export=render, derive=derive, observe=observe)
