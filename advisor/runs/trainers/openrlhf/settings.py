"""OpenRLHF's arguments: as a console shows them, in the package's names, and in its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from advisor.runs.logfiles.config_files import Scalar, literal
from advisor.runs.logfiles.table import Table
from advisor.runs.trainers.derived import Derived, SettingsExtractor, patterns, read_data, share

PATTERNS = patterns("openrlhf")
MARK = "n_samples_per_prompt"
"""An argument of every version, which no other printed namespace has."""

LONGEST = 1 << 16


def derive(settings: Mapping[str, Any]) -> Derived:
    """Settings of a run."""
    opened: dict[str, Any] = {}
    for key, value in settings.items():
        inner = parse_namespace(value) if isinstance(value, str) else {}
        opened |= {f"{key}.{name}": each for name, each in inner.items()} or {key: value}
    extractor = SettingsExtractor(opened, "openrlhf")
    extractor.take_over("group_size", "max_prompt_length", "max_completion_length", "model")
    extractor.take_over("task", "seed", "kl_coefficient")
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
    extractor.choose("loss_averaging")
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
    # The bars show how many batches an episode has.
    batches, episodes = extractor.count("batches"), extractor.count("episodes")
    interval, ratio = extractor.interval, extractor.amount("warmup")
    planned = None
    if batches is not None and episodes is not None and interval is not None:
        planned = batches.value * episodes.value * interval
        line = (
            f"{batches.value} batches of rollouts x {episodes} x {interval} steps per batch "
            f"= {planned}"
        )
        extractor.put("planned_steps", planned, line)
    if extractor.word("schedule") == "constant":
        extractor.note("warmup_steps", 0, "a constant schedule has none")
    elif planned is not None and ratio is not None and 0 <= ratio.value <= 1:
        warmup = math.ceil(planned * ratio.value)
        line = f"ceil({planned} planned steps x {ratio}) = {warmup}"
        extractor.put("warmup_steps", warmup, line)


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
    if estimator is not None and estimator.value == "rloo":
        if estimator.name == "advantage_estimator":
            extractor.assume_as("rloo")
        else:
            extractor.note("advantage_scaling", "none", str(estimator))
    if scaling == "batch" and undivided is not None and undivided.value:
        extractor.note("advantage_scaling", "none", undivided.name)


def _pair(extractor: SettingsExtractor, ours: str) -> tuple[str, list[float]] | None:
    """Numbers of an argument that takes two: as text, or each under a name of its own."""
    for name in extractor.names[ours]:
        parts = [extractor.settings.get(f"{name}.{place}") for place in (0, 1)]
        written = extractor.settings.get(name)
        if parts[0] is not None:
            written = f"{parts[0]} {parts[1]}"
        if written is None or isinstance(written, bool) or written == "None":
            continue
        return name, [float(each) for each in PATTERNS["number"].findall(str(written))]
    return None


class PrintedArguments:
    """Collects arguments from the lines of a console."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self._command: list[str] = []

    def feed(self, text: str) -> None:
        """Take a line."""
        if self._command:
            self._command.append(text[:LONGEST])
        elif "openrlhf.cli.train_ppo" in text:
            program = PATTERNS["program"].search(text)
            self._command = [text[program.end() :][:LONGEST]] if program else []
        elif MARK in text:
            opening = PATTERNS["opening"].search(text)
            if opening is not None:
                self.settings |= parse_namespace(text[opening.start() :][:LONGEST])
        if self._command and (not text.rstrip().endswith("\\") or len(self._command) > 400):
            self.settings |= parse_command("\n".join(self._command))
            self._command = []


def parse_command(text: str) -> dict[str, Any]:
    """Arguments of a command line, from behind the program's name."""
    found: dict[str, Any] = {}
    name, values = "", []
    for word in (*PATTERNS["word"].findall(text.replace("\\\n", " ")), "|"):
        flag = PATTERNS["flag"].fullmatch(word)
        is_end = word in read_data("openrlhf")["console"]["ends"]
        if flag is None and not is_end:
            values.append(word.strip("\"'"))
            continue
        if name:
            found[name] = literal(" ".join(values)[:500]) if values else True
        if is_end or flag is None:
            break
        name = flag.group(1)
        values = [flag.group(2).strip("\"'")] if flag.group(2) is not None else []
    return found


def parse_namespace(text: str) -> dict[str, Scalar]:
    """Arguments of a printed namespace by dotted names, up to where it breaks off."""
    found: dict[str, Scalar] = {}
    opening = PATTERNS["opening"].match(text)
    if opening is None:
        return found
    outer, at = [""], opening.end()
    while outer:
        closing = PATTERNS["closing"].match(text, at)
        if closing is not None:
            outer.pop()
            at = closing.end()
            continue
        name = PATTERNS["name"].match(text, at)
        if name is None:
            break
        key, at = outer[-1] + name.group(1), name.end()
        inner = PATTERNS["opening"].match(text, at)
        if inner is not None:
            if len(outer) > 8:
                break
            outer.append(f"{key}.")
            at = inner.end()
            continue
        value = PATTERNS["value"].match(text, at)
        if value is None or value.end() == len(text):
            break  # what stands last on a cut line may have lost digits
        at = value.end()
        written = value.group()
        found[key] = written[1:-1] if written[0] in "([" else literal(written)
    return found
