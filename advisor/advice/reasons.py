"""Why an answer is what it is: the constraint that it meets, and the pilot that leads."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel

from advisor.advice.candidates import place_of
from advisor.diagnosis import Level
from advisor.forecast import Forecaster, ended_lower, pilots_of
from advisor.model import RunSummary, peaked
from advisor.runs import Settings
from advisor.text import read_toml

CLEARLY = 4.0
"""Standard errors by which a reward must lie below the highest of its earlier levels to count as
fallen: that one is the highest of some ten, so it lies two above their mean by chance (ours)."""


Reached = Literal["none", "stability", "edge_of_rates", "budget", "goal", "reward"]
Limit = Reached | Literal["too_few_pilots", "known", "stated"]
"""Kinds of constraints that an answer meets."""


_limits = partial(read_toml, __file__, "limits.toml")  # Kind and sentence of every case


class Binding(BaseModel, frozen=True):
    """The constraint that keeps an answer from a better value."""

    kind: Limit
    axis: str | None = None  # Setting that would have to move
    value: float | None = None  # To what, in its units; for "reward" the best end, in reward units
    gain: float | None = None  # Reward that freeing it would give, in reward units
    freed_by: str | None = None  # A flag, or what to run
    case: str  # Which sentence words it, and what that is filled with
    values: dict[str, Any] = {}

    def __str__(self) -> str:
        """Sentence of its case."""
        own = {"value": self.value, "gain": self.gain}
        return str(_limits()[self.case]["text"]).format(**own | self.values)


def binding(
    case: str,
    *,
    axis: str | None = None,
    value: float | None = None,
    gain: float | None = None,
    freed_by: str | None = None,
    **values: Any,
) -> Binding:
    """Constraint of a case of ``limits.toml``, with the values of its sentence by name."""
    kind: Any = _limits()[case]["kind"]
    own = {"axis": axis, "value": value, "gain": gain, "freed_by": freed_by}
    return Binding(kind=kind, case=case, values=values, **own)


def level_flag(least: float) -> str:
    """Option that accepts settings of such a P(stable)."""
    return f"--level {max(0.01, math.floor(100 * least) / 100):g}"


class Leader(BaseModel, frozen=True):
    """The pilot with the highest reward: what it shows, and what became of such runs."""

    pilot: str
    settings: Settings
    reward: float  # mean of its last tenth, in reward units
    steps: float  # optimizer steps that it ran
    is_followed: bool  # whether the answer has its settings
    # Highest mean of a tenth of its rows and the step where that ends, where the reward fell since.
    peak: float | None = None
    fell_from: float | None = None
    # Public runs that rose or had fallen like it at this share of their length; how many of them
    # ended lower than they stood.
    public_runs: int = 0
    public_lower: int = 0


class Ending(NamedTuple):
    """End of a pilot's log: mean of its last tenth, and whether and where it fell before."""

    reward: float
    peak: float | None
    fell_from: float | None


def ending(run: RunSummary) -> Ending:
    """How a pilot ends, from the rewards that the posterior remembers, in reward units."""
    steps, rewards = np.array(run.logged_steps), np.array(run.logged_rewards)
    width = max(3, rewards.size // 10)
    if rewards.size < 3 * width:
        return Ending(run.last_reward, None, None)
    levels = np.convolve(rewards, np.full(width, 1 / width), mode="valid")
    top, last = int(levels.argmax()), float(levels[-1])
    error = Level.row_noise(rewards) * math.sqrt(2 / width / run.thinned)
    if levels[top] - last <= CLEARLY * error:
        return Ending(last, None, None)
    return Ending(last, float(levels[top]), float(steps[top + width - 1]))


def leading(runs: list[RunSummary]) -> RunSummary:
    """Living pilot with the highest reward at its end; the gentlest where none lives."""
    alive = [run for run in runs if run.collapse_step is None]
    if not alive:
        return min(runs, key=lambda run: run.settings.learning_rate)
    return max(peaked(alive), key=lambda run: ending(run).reward)


def leader_of(forecaster: Forecaster, advised: Settings, steps: int) -> Leader:
    """Pilot of the target that leads, beside a run of so many steps at the advised settings."""
    run = leading(pilots_of(forecaster.posterior, forecaster.target))
    end, known = ending(run), (0, 0)
    if forecaster.next_run is not None:
        share = min(1.0, run.steps / steps)
        has_fallen = end.fell_from is not None
        known = ended_lower(forecaster.next_run.corpus, share, has_fallen=has_fallen)
    return Leader(
        pilot=run.id,
        settings=run.settings,
        reward=end.reward,
        steps=run.steps,
        is_followed=place_of(run.settings) == place_of(advised),
        peak=end.peak,
        fell_from=end.fell_from,
        public_runs=known[0],
        public_lower=known[1],
    )
