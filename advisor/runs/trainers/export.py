"""A configuration from which a trainer starts: settings, checked, in the templates of `data`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, NoReturn

from advisor.errors import InputError
from advisor.runs.settings import Settings
from advisor.runs.trainers.derived import FOLDER, read_data
from advisor.text import counted, harmless

COMMENT = re.compile(r"^\s*#[^\n]*", re.MULTILINE)


@dataclass(frozen=True)
class Launch:
    """One run in whole numbers; ``devices`` share one optimizer step."""

    settings: Settings
    prompts: int
    steps: int
    devices: int

    @property
    def interval(self) -> int:
        """K, optimizer steps per batch of rollouts."""
        return self.settings.refresh_interval

    @property
    def completions(self) -> int:
        """Completions per optimizer step, P x G."""
        return self.prompts * self.settings.group_size

    @property
    def rollout_prompts(self) -> int:
        """Prompts per batch of rollouts."""
        return self.prompts * self.settings.minibatches_per_refresh

    @property
    def saved_every(self) -> int:
        """Steps between at most four checkpoints, the last at the run's end, at ends of batches."""
        batches = 1 if self.steps % self.interval else self.steps // self.interval
        return self.steps // _largest_divisor(batches, 4)

    def in_refreshes(self, what: str, steps: float, trainer: str) -> int:
        """Optimizer steps as a whole number of batches of rollouts."""
        if steps % self.interval:
            below = int(steps) // self.interval * self.interval
            above = below + self.interval
            near = f"{below} or {above}" if below else str(above)
            refuse(what, steps=steps, interval=self.interval, trainer=trainer, near=near)
        return int(steps) // self.interval

    def check_synchronous(self, trainer: str) -> None:
        """Refuse stale rollouts where the configuration would be a synchronous one."""
        if self.settings.lag:
            refuse("lag", lag=self.settings.lag, trainer=trainer)

    def check_corrected(self, trainer: str) -> None:
        """Refuse stale samples without an importance ratio where that cannot be switched off."""
        is_stale = self.interval > 1 or self.settings.lag > 0
        if self.settings.importance_ratio is False and is_stale:
            refuse("no_ratio", interval=self.interval, trainer=trainer)


def refuse(which: str, /, table: str = "export", **facts: Any) -> NoReturn:
    """Raise the error of something that cannot be exported."""
    words = read_data(table)["refused"][which]
    problem, advice = (words[part].format(**facts) for part in ("problem", "advice"))
    raise InputError(problem, key=words["key"], advice=advice)


@dataclass(frozen=True)
class Export:
    """How to write a configuration from which a trainer starts."""

    name: str  # As in ``advisor export --to``
    label: str  # Trainer and kind of file, as a report calls them
    file_name: str
    # Raises `InputError` where the trainer has no such setting.
    render: Callable[[Launch, str | None], str]
    checked: str = ""  # Version of the trainer against whose source the keys were checked
    # Whether it is written only for pilots of its own trainer, or where it is asked for.
    on_demand: bool = False

    def text(self, launch: Launch, model: str | None, note: str | None) -> str:
        """The configuration, with comments that hold no control characters."""
        text = COMMENT.sub(lambda line: harmless(line[0]), self.render(launch, model))
        if self.checked:
            note = f"Checked against {self.checked}." + (f"\n{note}" if note else "")
        if note is None:
            return text
        opening, _, rest = text.partition("\n")
        comment = "".join(f"# {harmless(line)}".rstrip() + "\n" for line in note.splitlines())
        return f"{opening}\n{comment}{rest}" if opening.startswith("#!") else comment + text


def make_launch(settings: Settings, steps: int, devices: int) -> Launch:
    """Check settings that are to be exported."""
    prompts, group = settings.prompts_per_step, settings.group_size
    if prompts != int(prompts):
        refuse("prompts", prompts=prompts)
    if group < 2:
        refuse("group", group=group)
    for name, count in (("steps", steps), ("devices", devices)):
        if count < 1:
            raise InputError(f"{count} {name}", key=name, advice="Give at least 1")
    planned = settings.planned_steps
    if settings.schedule in ("linear", "cosine") and planned not in (None, steps):
        refuse("schedule", schedule=settings.schedule, planned=planned, steps=steps)
    launch = Launch(settings, int(prompts), steps, devices)
    completions = launch.completions
    if completions % devices:
        counts: dict[str, Any] = {"prompts": int(prompts), "group": group}
        fitting = _largest_divisor(completions, devices)
        refuse("devices", devices=devices, fitting=fitting, completions=completions, **counts)
    return launch


def per_device(launch: Launch) -> tuple[int, int]:
    """Completions per micro-step (at most one group) and micro-steps per optimizer step."""
    share = launch.completions // launch.devices
    batch = _largest_divisor(share, launch.settings.group_size)
    return batch, share // batch


def fill_template(
    trainer: str, launch: Launch, *, unknown: Container[str] = (), **values: Any
) -> str:
    """Fill a trainer's template; a line without its value goes, ``unknown`` settings are asked."""
    data = read_data(trainer)
    filled: dict[str, Any] = {
        **vars(launch),
        **words_for(trainer, launch.settings),
        "interval": launch.interval,
        "interval_counted": counted(launch.interval, "optimizer step"),
        "minibatches_counted": counted(launch.settings.minibatches_per_refresh, "mini-batch"),
        "epochs_counted": counted(launch.settings.epochs_per_refresh, "epoch"),
        "prompts_counted": counted(launch.rollout_prompts, "prompt"),
        "completions": launch.completions,
        "rollout_prompts": launch.rollout_prompts,
        "saved_every": launch.saved_every // launch.interval,
        # Nodes mostly have eight devices.
        "nodes": (nodes := 1 if launch.devices % 8 else launch.devices // 8),
        "per_node": launch.devices // nodes,
        **values,
    }
    lines = []
    file = FOLDER / data.get("template", data["export"]["file_name"])
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.endswith("# {asked}"):
            lines += [line.format(asked=asked) for asked in _asked(data, launch, unknown)]
        elif all(filled[name] is not None for _, name, _, _ in Formatter().parse(line) if name):
            lines.append(line.format(**filled).replace(": 1 prompts x", ": 1 prompt x"))
    return "\n".join(lines) + "\n"


RANK = '"${LORA_RANK:?set LORA_RANK to the rank of the adapter, as your pilots had it}"'
"""In place of a rank that nobody stated: the script ends where the shell does not know it."""


def words_for(trainer: str, settings: Settings) -> dict[str, Any]:
    """Settings in the trainer's words; None where it has no word for one."""
    words = read_data(trainer)["words"]
    found = {
        name: words[name].get(value) if name in words else value
        for name, value in settings.model_dump().items()
    }
    if settings.adapter != "lora":
        found |= {"adapter_rank": 0, "adapter_alpha": None}
    elif settings.adapter_rank is None:
        found["adapter_rank"] = RANK
    return found


def from_environment(model: str | None) -> str:
    """Shell expression: MODEL of the caller's environment, else the given one or an error."""
    if model:
        shown = "".join(filter(str.isprintable, model))  # a log can name anything
        return f"${{MODEL:-{shlex.quote(shown)}}}"
    return '"${MODEL:?set MODEL to the name or folder of a model}"'


def _asked(data: Mapping[str, Any], launch: Launch, unknown: Container[str]) -> list[str]:
    """Lines that ask for what the file does not hold."""
    trainer, asked = data["name"], []
    for setting, (name, default) in data["asks"].items():
        if setting.startswith("adapter_") and launch.settings.adapter != "lora":
            continue
        value = getattr(launch.settings, setting)
        is_known = setting not in unknown and value in data["words"].get(setting, (value,))
        if value is not None and is_known:
            continue
        why = f"; {trainer} has no word for the pilots' {value}" if value is not None else ""
        asked.append(f"{name}   (default: {default}{why})")
    opening = f"Not told by the pilots in words that {trainer} has: set it as they had it"
    return [opening, *asked] if asked else []


def _largest_divisor(number: int, most: int) -> int:
    return next(d for d in range(min(number, most), 0, -1) if number % d == 0)
