"""How numbers, prices and settings of an answer are written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.advice.cost import Cost
from advisor.runs import Settings, paste_line

MOST_DIGITS = 6


"""Digits after the point of a per cent that tell it from a level that it misses."""


ROUNDING = 1e-9


"""Of per cents that are compared."""


def in_trainer_names(settings: Settings, trainer: str = "TRL") -> str:
    """One line to paste into a trainer's configuration; numbers as they are, not rounded."""
    return paste_line(settings, trainer or "TRL")


def percent(probability: float, level: float | None = None) -> str:
    """Format a probability without ever rounding to certainty, or up to a level that it misses."""
    if level is not None and probability < level:
        for digits in range(MOST_DIGITS):
            said = f"{100 * probability:.{digits}f} %"
            if float(said.removesuffix(" %")) < 100 * level - ROUNDING:
                break
        if digits:
            return said
    if probability >= 0.995:
        return "over 99 %"
    if probability <= 0.005:
        return "under 1 %"
    return f"{probability:.0%}".replace("%", " %")


def level_text(share: float) -> str:
    """Write a probability that somebody chose, unrounded: ``99.5 %``."""
    return f"{100 * share:.3g} %"


def other_prompts(settings: Settings, own: Settings) -> str:
    """Prompts per step, to be added to a list of settings where they differ from ``own``."""
    if settings.prompts_per_step == own.prompts_per_step:
        return ""
    return f", {prompts_text(settings)} per step"


def prompts_text(settings: Settings) -> str:
    """Prompts per step of some settings."""
    prompts = settings.prompts_per_step
    return f"{prompts:g} prompt" + ("" if prompts == 1 else "s")


def price(cost: Cost) -> str:
    """A price in what is known of it."""
    parts = [many(cost.completions, "completions")]
    if cost.tokens is not None:
        parts.append(many(cost.tokens, "tokens"))
    if cost.gpu_hours is not None:
        parts.append(gpu_time(cost.gpu_hours))
    return ", ".join(parts)


def gpu_time(hours: float) -> str:
    """Write GPU-hours in the unit that a person would use: ``13 GPU-seconds``."""
    unit, of_hours = gpu_unit(hours)
    number = hours * of_hours
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def gpu_unit(hours: float) -> tuple[str, float]:
    """Unit in which a number of GPU-hours is read best, and how many make an hour."""
    if hours < 0.1:
        return ("GPU-seconds", 3600.0) if hours < 1 / 60 else ("GPU-minutes", 60.0)
    return "GPU-hours", 1.0


def many(number: float, what: str) -> str:
    """A number with its noun, in millions or billions where it is so large."""
    for unit, size in (("billion", 1e9), ("million", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit} {what}"
    return f"{number:,.0f} {what if round(number) != 1 else what.removesuffix('s')}"


def count(number: int | None, noun: str, plural: str) -> str:
    """A number with its noun, singular or plural."""
    return f"{number} {noun}" + ("" if number == 1 else plural)


SAID = 3
"""Assumptions that are written out beside an answer."""

WEIGHTY = (
    r"the chains agree only loosely",
    r"adapter = .* assumed",
    r"reward ceiling .* assumed",
    r"planned steps = ",
    r"learning rates stop at ",
    r"(minibatches|epochs)_per_refresh = .* assumed",
    r"group_size = .* assumed|prompts_per_step = .* assumed",
    r"parameters = .* assumed",
    r"reward floor .* assumed",
    r"price of a step",
    r"prior preset ",
    r"target = ",
)
"""What an assumption that matters begins with, the weightiest first: what the forecast is of (full
weights or an adapter, the range of the reward, the length of the run), then what a step is, then
what the pilots are believed to be alike to."""


def weightiest(assumptions: Sequence[str], most: int = SAID) -> tuple[list[str], int]:
    """Assumptions that matter most, and how many others there are."""

    def rank(line: str) -> int:
        found = (place for place, begins in enumerate(WEIGHTY) if re.match(begins, line))
        return next(found, len(WEIGHTY))

    ordered = sorted(assumptions, key=rank)
    return ordered[:most], max(0, len(ordered) - most)
