"""Settings of a GRPO run: what its log told, and the complete set that a forecast needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, ValidationError

from advisor.errors import InputError
from advisor.text import read_toml

TABLES = read_toml(__file__, "run.toml")
ASSUMED: dict[str, tuple[Any, str]] = {n: (v, why) for n, (v, why) in TABLES["assumed"].items()}
REQUIRED: dict[str, str] = TABLES["required"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]
GroupSize = Annotated[int, Field(ge=1, le=1_000_000)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Momentum = Annotated[float, Field(ge=0, lt=1)]
Optimizer = Literal["adamw", "adam", "sgd"]
Schedule = Literal["constant", "linear", "cosine"]
AdvantageScaling = Literal["group", "batch", "none"]
Adapter = Literal["full", "lora"]
LossAveraging = Literal["token", "local_token", "sequence", "sequence_sum", "fixed_length"]
Precision = Literal["bf16", "fp16", "fp32"]
ModuleNames = Annotated[str, Field(max_length=2000, pattern=r"^[\w.-]+(,[\w.-]+)*$")]


class PartialSettings(BaseModel, frozen=True, extra="forbid"):
    """The known settings of one GRPO run. ``None`` means unknown.

    Attributes
    ----------
    learning_rate : float
        Peak learning rate of the schedule, per optimizer step.
    group_size : int
        Completions per prompt, G.
    prompts_per_step : float
        Prompts that enter one optimizer step.
    minibatches_per_refresh : int
        New mini-batches cut from one batch of rollouts.
    epochs_per_refresh : int
        Passes over one batch of rollouts (TRL ``num_iterations``, verl ``ppo_epochs``).
    lag : float
        Age, in optimizer steps, of the freshest sample at a refresh; 0 when synchronous.
    optimizer : {"adamw", "adam", "sgd"}
        Rule by which a gradient moves the parameters.
    momentum : float
        AdamW's first-moment decay, or SGD's momentum.
    schedule : {"constant", "linear", "cosine"}
        Decay of the learning rate after its warm-up.
    warmup_steps : int
        Optimizer steps of linear warm-up.
    planned_steps : int
        Full length of the schedule, in optimizer steps.
    kl_coefficient : float
        Weight of the KL penalty to the reference policy.
    clip_low, clip_high : float
        Trust region of the importance ratio, ``[1 - clip_low, 1 + clip_high]``.
    advantage_scaling : {"group", "batch", "none"}
        What the advantages are divided by.
    importance_ratio : bool
        Whether stale samples are corrected by an importance ratio.
    adapter : {"full", "lora"}
        Full fine-tuning or LoRA.
    adapter_rank : int
        Rank of the LoRA adapter.
    adapter_alpha : int
        LoRA's alpha: what the adapter adds is multiplied by alpha / rank.
    adapter_targets : str
        Modules that have a LoRA adapter, with commas between their names; or ``all-linear``.
    loss_averaging : {"token", "local_token", "sequence", "sequence_sum", "fixed_length"}
        What the loss averages. All tokens of the step, or those of one micro-batch. Or
        completions: the mean of each, the sum of each, or the sum over a fixed length.
    precision : {"bf16", "fp16", "fp32"}
        Numbers in which the policy is trained; the optimizer may keep others.
    max_prompt_length : int
        Token limit of a prompt.
    max_completion_length : int
        Token limit of a completion.
    """

    CARRIED: ClassVar = (
        *("adapter_rank", "adapter_alpha", "adapter_targets", "loss_averaging", "precision"),
        *("max_prompt_length", "max_completion_length"),
    )
    """Settings that nothing is computed from; an exported configuration repeats the pilots'."""

    learning_rate: Positive | None = None
    group_size: GroupSize | None = None
    prompts_per_step: Positive | None = None
    minibatches_per_refresh: PositiveInt | None = None
    epochs_per_refresh: PositiveInt | None = None
    lag: NotNegative | None = None
    optimizer: Optimizer | None = None
    momentum: Momentum | None = None
    schedule: Schedule | None = None
    warmup_steps: Annotated[int, Field(ge=0)] | None = None
    planned_steps: PositiveInt | None = None
    kl_coefficient: NotNegative | None = None
    clip_low: Positive | None = None
    clip_high: Positive | None = None
    advantage_scaling: AdvantageScaling | None = None
    importance_ratio: bool | None = None
    adapter: Adapter | None = None
    adapter_rank: PositiveInt | None = None
    adapter_alpha: PositiveInt | None = None
    adapter_targets: ModuleNames | None = None
    loss_averaging: LossAveraging | None = None
    precision: Precision | None = None
    max_prompt_length: PositiveInt | None = None
    max_completion_length: PositiveInt | None = None

    @property
    def refresh_interval(self) -> int | None:
        """K, optimizer steps per batch of rollouts: mini-batches times epochs."""
        if self.minibatches_per_refresh is None or self.epochs_per_refresh is None:
            return None
        return self.minibatches_per_refresh * self.epochs_per_refresh

    def share_of_peak(self, steps: float) -> float:
        """Share of the peak learning rate that a run reaches: below 1 within its warm-up."""
        return min(1.0, steps / max(self.warmup_steps or 0, 1))

    @property
    def lacking(self) -> list[str]:
        """Names of the settings that no default settles and that are not known."""
        return [name for name in REQUIRED if getattr(self, name) is None]

    @property
    def assumed(self) -> dict[str, tuple[Any, str]]:
        """Settings that :meth:`completed` takes from a trainer's default: name -> (value, why)."""
        of_sgd = {"momentum": (0.0, "default of torch's SGD")} if self.optimizer == "sgd" else {}
        return {n: one for n, one in (ASSUMED | of_sgd).items() if getattr(self, n) is None}

    def assumptions(self) -> list[str]:
        """One line for each of :attr:`assumed`."""
        return [f"{name} = {value} assumed ({why})" for name, (value, why) in self.assumed.items()]

    def completed(self) -> Settings:
        """Fill what a trainer's default settles; :meth:`assumptions` lists it.

        Raises
        ------
        InputError
            Something is not known that no default settles.
        """
        for name in self.lacking:
            raise InputError(
                f"the settings are incomplete: {REQUIRED[name]}", key=name, advice=f"Give '{name}'"
            )
        filled = {name: value for name, (value, _) in self.assumed.items()}
        return Settings.model_validate({**self.model_dump(), **filled})

    @classmethod
    def checked(cls, stated: Mapping[str, Any], *, argument: str) -> PartialSettings:
        """Settings stated by name, checked; numbers may be text. Raises `InputError`."""
        try:
            return PartialSettings.model_validate(dict(stated))
        except ValidationError as error:
            first = error.errors()[0]
            why, known = first["msg"].replace("Input should", "it should"), None
            if first["type"] == "extra_forbidden":
                why = "no setting is called so"
                known = f"Known are {', '.join(PartialSettings.model_fields)}"
            raise InputError(
                f"{first['input']!r} is not allowed: {why}",
                argument=argument,
                key=".".join(str(part) for part in first["loc"]),
                advice=known,
            ) from error


class Settings(PartialSettings):
    """The complete settings of one GRPO run, as :meth:`PartialSettings.completed` gives them.

    ``None`` is left where nothing is computed from a setting (`CARRIED`), and for
    ``planned_steps``: the schedule is then as long as the run.
    """

    learning_rate: Positive
    group_size: GroupSize
    prompts_per_step: Positive
    minibatches_per_refresh: PositiveInt
    epochs_per_refresh: PositiveInt
    lag: NotNegative
    optimizer: Optimizer
    momentum: Momentum
    schedule: Schedule
    warmup_steps: Annotated[int, Field(ge=0)]
    kl_coefficient: NotNegative
    clip_low: Positive
    clip_high: Positive
    advantage_scaling: AdvantageScaling
    importance_ratio: bool
    adapter: Adapter

    @property
    def refresh_interval(self) -> int:
        """K, optimizer steps per batch of rollouts: mini-batches times epochs."""
        return self.minibatches_per_refresh * self.epochs_per_refresh

    @property
    def mean_age(self) -> float:
        """A = lag + (K - 1) / 2, the mean age of a sample when it is used, in optimizer steps."""
        return self.lag + (self.refresh_interval - 1) / 2

    def planned_over(self, steps: int) -> Settings:
        """Return these settings with a schedule over ``steps`` optimizer steps."""
        return self.model_copy(update={"planned_steps": steps})

    def or_planned_over(self, steps: int) -> Settings:
        """Return these settings; a schedule of unknown length gets so many optimizer steps."""
        return self if self.planned_steps is not None else self.planned_over(steps)
