"""Settings of one run in whole numbers, checked before a configuration is written."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from advisor.errors import InputError
from advisor.runs.settings import Settings

TRANSFORMERS_SCHEDULES = {
    "constant": "constant_with_warmup",
    "linear": "linear",
    "cosine": "cosine",
}
"""What transformers, and trainers built on it, call the schedules; its ``constant`` has no
warm-up."""

LEFT_OUT = (
    "Not among the settings that the advisor knows, so left at the trainer's defaults: weight",
    "decay, Adam's second moment, gradient clipping, temperature.",
    "Set them as your pilots had them.",
)
"""Comment lines for the end of every file's head."""

OF_ADAPTERS = ("adapter_rank", "adapter_alpha", "adapter_targets")


class Carried(NamedTuple):
    """A setting that nothing is computed from, as a trainer calls it, and the trainer's default."""

    setting: str
    name: str
    default: str


@dataclass(frozen=True)
class Launch:
    """One run in whole numbers.

    Attributes
    ----------
    settings : Settings
    learning_rate : float
        Peak, per optimizer step.
    group_size : int
        Completions per prompt, G.
    prompts : int
        Prompts per optimizer step, P.
    minibatches, epochs : int
        The two factors of the refresh interval.
    steps : int
        Optimizer steps of the whole run.
    devices : int
        Devices that share one optimizer step, each with all of the model (or a shard of it).
    """

    settings: Settings
    learning_rate: float
    group_size: int
    prompts: int
    minibatches: int
    epochs: int
    steps: int
    devices: int

    @property
    def interval(self) -> int:
        """K, optimizer steps per batch of rollouts."""
        return self.minibatches * self.epochs

    @property
    def completions(self) -> int:
        """Completions per optimizer step, P x G."""
        return self.prompts * self.group_size

    @property
    def rollout_prompts(self) -> int:
        """Prompts per batch of rollouts."""
        return self.prompts * self.minibatches

    def asks(
        self, carried: Iterable[Carried], words: Mapping[str, Container[Any]], trainer: str
    ) -> list[str]:
        """Lines, to be commented out, that ask for what the file does not hold.

        ``words`` are the values, by setting, that the trainer has a word for; of others all.
        """
        asked = []
        for setting, name, default in carried:
            if setting in OF_ADAPTERS and self.settings.adapter != "lora":
                continue
            told = getattr(self.settings, setting)
            if told is not None and told in words.get(setting, (told,)):
                continue
            why = f"; {trainer} has no word for the pilots' {told}" if told is not None else ""
            asked.append(f"{name}   (default: {default}{why})")
        if not asked:
            return []
        return [
            f"Not told by the pilots in words that {trainer} has: set it as they had it",
            *asked,
        ]

    def refreshes(self, trainer: str) -> int:
        """Batches of rollouts of the whole run, for a trainer that counts those."""
        return self.in_refreshes(
            self.steps,
            f"{self.steps} optimizer steps are",
            f" and are what {trainer} counts",
            key="steps",
            advice=f"Plan {_neighbours(self.steps, self.interval)} steps",
        )

    def warmup_refreshes(self, trainer: str) -> int:
        """Batches of rollouts of the warm-up, for a trainer that moves its rate once per batch."""
        steps = self.settings.warmup_steps
        return self.in_refreshes(
            steps,
            f"{steps} steps of warm-up are",
            f"; {trainer} moves its learning rate between them",
            key="warmup_steps",
            advice=f"Warm up for {_neighbours(steps, self.interval)} steps",
        )

    def in_refreshes(self, steps: float, what: str, why: str, *, key: str, advice: str) -> int:
        """Optimizer steps as a whole number of batches of rollouts."""
        if steps % self.interval:
            raise InputError(
                f"{what} no whole number of batches of rollouts, which last {self.interval} "
                f"each{why}",
                key=key,
                advice=advice,
            )
        return int(steps) // self.interval

    def refresh_comments(self, minibatches: str, epochs: str) -> list[str]:
        """Comment lines with the trainer's arithmetic of the refresh interval."""
        return [
            f"Refresh interval K = {self.interval} optimizer steps = "
            f"{self.minibatches} mini-batches x {self.epochs} epochs:",
            f"  mini-batches {self.minibatches} = {minibatches}",
            f"  epochs {self.epochs} = {epochs}",
        ]

    @property
    def dataset_comments(self) -> list[str]:
        """Comment lines that end the head of a file: the least data, and what was left out."""
        return [
            f"The dataset needs at least {self.rollout_prompts} prompts, those of one batch of "
            "rollouts.",
            *LEFT_OUT,
        ]

    def check_synchronous(self, trainer: str) -> None:
        """Refuse stale rollouts where the configuration would be a synchronous one."""
        if self.settings.lag:
            raise InputError(
                f"the freshest rollouts are to be {self.settings.lag:g} steps old, and the "
                f"exported configuration of {trainer} is a synchronous one",
                key="lag",
                advice="Ask for advice with lag = 0, or set up the asynchronous trainer by hand",
            )

    def check_corrected(self, trainer: str) -> None:
        """Refuse stale samples without an importance ratio where that cannot be switched off."""
        is_stale = self.interval > 1 or self.settings.lag > 0
        if self.settings.importance_ratio is False and is_stale:
            raise InputError(
                f"samples are to be used without an importance ratio for K = {self.interval} "
                f"steps, and {trainer} has no switch for that",
                key="importance_ratio",
                advice="Export to verl, whose loss_mode gpg has no ratio, or set K = 1",
            )


def make_launch(settings: Settings, steps: int, devices: int) -> Launch:
    """Check settings that are to be exported."""
    if settings.adapter == "lora" and settings.adapter_rank is None:
        raise InputError(
            "the rank of the LoRA adapter is not known",
            key="adapter_rank",
            advice="Give it in pilots.toml, or among the settings of a plan",
        )
    _check_counts(settings, steps, devices)
    launch = Launch(
        settings=settings,
        learning_rate=settings.learning_rate,
        group_size=settings.group_size,
        prompts=int(settings.prompts_per_step),
        minibatches=settings.minibatches_per_refresh,
        epochs=settings.epochs_per_refresh,
        steps=steps,
        devices=devices,
    )
    if launch.completions % devices:
        raise InputError(
            f"{launch.prompts} prompts x {launch.group_size} completions = {launch.completions} "
            f"per optimizer step cannot be shared equally by {devices} devices",
            key="devices",
            advice=f"Use a number of devices that divides {launch.completions}, such as "
            f"{_largest_divisor(launch.completions, devices)}",
        )
    return launch


def per_device(launch: Launch) -> tuple[int, int]:
    """Completions per micro-step (at most one group) and micro-steps per optimizer step."""
    share = launch.completions // launch.devices
    batch = _largest_divisor(share, launch.group_size)
    return batch, share // batch


def _check_counts(settings: Settings, steps: int, devices: int) -> None:
    prompts, group = settings.prompts_per_step, settings.group_size
    if prompts != int(prompts):
        raise InputError(
            f"{prompts:g} prompts per step is no whole number",
            key="prompts_per_step",
            advice="Give whole prompts per optimizer step in pilots.toml",
        )
    if group < 2:
        raise InputError(
            f"a group of {group} completion has no advantage: it is compared with itself",
            key="group_size",
            advice="Use at least 2",
        )
    for name, count in (("steps", steps), ("devices", devices)):
        if count < 1:
            raise InputError(f"{count} {name}", key=name, advice="Give at least 1")
    planned = settings.planned_steps
    if settings.schedule in ("linear", "cosine") and planned not in (None, steps):
        raise InputError(
            f"the {settings.schedule} schedule is planned over {planned} steps and the run over "
            f"{steps}; a trainer's schedule ends with its run",
            key="planned_steps",
            advice=f"Plan the schedule over {steps} steps, or choose a constant one",
        )


def _neighbours(count: int, factor: int) -> str:
    below = count // factor * factor
    above = below + factor
    return f"{below} or {above}" if below else str(above)


def _largest_divisor(number: int, most: int) -> int:
    return next(d for d in range(min(number, most), 0, -1) if number % d == 0)
