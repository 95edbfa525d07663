"""What a run costs: completions, tokens and GPU-hours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, Field

from advisor.forecast import Target
from advisor.model import Posterior, RunSummary
from advisor.runs import Settings

GENERATION_SHARE = 0.7
"""Share of a step's time that generation takes where the pilots cannot tell it from the update: a
third to a tenth of the time is left for training in published profiles of synchronous GRPO."""


class Cost(BaseModel, frozen=True):
    """Price of a run; epochs reuse completions."""

    steps: int
    completions: float
    tokens: float | None  # None where no pilot logged the length of completions
    gpu_hours: float | None  # None where neither the pilots nor the user gave the time of a step

    @property
    def paid(self) -> float:
        """GPU-hours where they are known, else completions: what is to be kept small."""
        return self.completions if self.gpu_hours is None else self.gpu_hours


class CostModel(BaseModel, frozen=True, extra="forbid"):
    """Time of an optimizer step, linear in what is generated and what is trained on."""

    # Seconds per optimizer step whatever its batch; None where times are unknown.
    fixed: float | None = Field(default=None, ge=0)
    generated: float = Field(default=0.0, ge=0)  # seconds per generated completion
    trained: float = Field(default=0.0, ge=0)  # seconds per completion in an optimizer step
    tokens: float | None = Field(default=None, gt=0)  # per completion
    gpus: int = Field(default=1, ge=1)  # that the times are of
    source: str  # where the times come from

    def seconds_per_step(self, settings: Settings) -> float | None:
        """Wall-clock seconds of one optimizer step of a configuration."""
        if self.fixed is None:
            return None
        trained = completions_trained(settings)
        fresh = fresh_completions(settings)
        return self.fixed + self.generated * fresh + self.trained * trained

    def of_step(self, settings: Settings) -> float:
        """What an optimizer step of a configuration pays."""
        return self(settings, 1).paid

    def __call__(self, settings: Settings, steps: int) -> Cost:
        """Price of so many optimizer steps of a configuration."""
        completions = steps * fresh_completions(settings)
        seconds = self.seconds_per_step(settings)
        return Cost(
            steps=steps,
            completions=completions,
            tokens=None if self.tokens is None else completions * self.tokens,
            gpu_hours=None if seconds is None else seconds * steps * self.gpus / 3600.0,
        )


def completions_trained(settings: Settings) -> float:
    """Completions in one optimizer step, P G."""
    return settings.prompts_per_step * settings.group_size


def fresh_completions(settings: Settings) -> float:
    """Completions that one optimizer step has to have generated: epochs reuse them."""
    return completions_trained(settings) / settings.epochs_per_refresh


def learn_cost(
    posterior: Posterior, target: Target, *, gpus: int = 1, seconds_per_step: float | None = None
) -> CostModel:
    """Learn the price of a step from the step times of the pilots."""
    runs = posterior.meta.runs
    lengths = [run.completion_tokens for run in runs if run.completion_tokens]
    tokens = float(np.mean(lengths)) if lengths else None
    own = [run for run in runs if run.model == target.model]
    if seconds_per_step is not None:
        # One number at the mean batch: only the assumed share splits it.
        typical = float(np.mean([_batch(run)[1] for run in runs]))
        return CostModel(
            fixed=0.0,
            generated=GENERATION_SHARE * seconds_per_step / typical,
            trained=(1 - GENERATION_SHARE) * seconds_per_step / typical,
            tokens=tokens,
            gpus=gpus,
            source=f"{seconds_per_step:g} s per step, as given",
        )
    timed = [run for run in own or runs if run.seconds_per_step]
    timed = timed or [run for run in runs if run.seconds_per_step]
    if not timed:
        return CostModel(tokens=tokens, gpus=gpus, source="no pilot logged its step times")
    seconds = [(run.seconds_per_step or 0.0) * target.parameters / run.parameters for run in timed]
    others = sorted({run.model for run in timed} - {target.model})
    source = f"step times of {len(timed)} pilot{'s' if len(timed) > 1 else ''}"
    if others:
        source += f" of {', '.join(others)}, scaled by the number of parameters"
    fixed, generated, trained = _fitted(timed, seconds)
    return CostModel(
        fixed=fixed, generated=generated, trained=trained, tokens=tokens, gpus=gpus, source=source
    )


def _batch(run: RunSummary) -> tuple[float, float]:
    """Completions generated for, and trained on in, one optimizer step of a pilot."""
    return fresh_completions(run.settings), completions_trained(run.settings)


def _fitted(runs: Sequence[RunSummary], seconds: Sequence[float]) -> tuple[float, float, float]:
    from scipy.optimize import nnls

    batches = np.array([_batch(run) for run in runs])
    time = np.array(seconds)
    typical, mean = batches.mean(axis=0), time.mean()
    # In units of the mean time, so that rows of slow and fast machines weigh alike.
    rows = np.column_stack([np.ones(time.size), batches / typical])
    # Towards no fixed time, and the assumed share of what is left: neither moves the total.
    # It weighs a tenth of one pilot's time.
    pull = 0.1 * np.array([[0.0, 1 - GENERATION_SHARE, -GENERATION_SHARE], [1.0, 0.0, 0.0]])
    found, _ = nnls(np.vstack([rows, pull]), np.concatenate([time / mean, np.zeros(len(pull))]))
    fixed, generated, trained = map(float, found * mean / [1.0, *typical])
    return fixed, generated, trained
