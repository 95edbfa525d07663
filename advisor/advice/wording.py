"""The wording of an answer: its numbers, prices and settings, and which paragraphs it has.

The sentences stand in ``answer.txt.j2`` and ``pilots.txt.j2``, a macro for each paragraph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from advisor.advice.answer_fields import AnswerFields, NextPilot, PriorCheck
from advisor.advice.candidates import place_of
from advisor.advice.cost import Cost
from advisor.advice.reasons import level_flag
from advisor.common import Kind, Words, counted, kinds
from advisor.forecast import SUPPORT, Stability
from advisor.model import TRUSTED_K
from advisor.runs import Settings, Trainer


def in_trainer_names(settings: Settings, trainer: str = "TRL") -> str:
    """One line to paste into a trainer's configuration; numbers as they are, not rounded."""
    return Trainer.named(trainer or "TRL").paste_line(settings)


def percent(probability: float, level: float | None = None) -> str:
    """Format a probability without ever rounding to certainty, or up to a level that it misses."""
    if level is not None and probability < level:
        for digits in range(6):  # as many as tell it from a level that it misses
            text = f"{100 * probability:.{digits}f} %"
            if float(text.removesuffix(" %")) < 100 * level - 1e-9:
                break
        if digits:
            return text
    if probability >= 0.995:
        return "over 99 %"
    if probability <= 0.005:
        return "under 1 %"
    return f"{probability:.0%}".replace("%", " %")


def level_text(share: float) -> str:
    """Write a probability that somebody chose, unrounded: ``99.5 %``."""
    return f"{100 * share:.3g} %"


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
    unit, of_hours = "GPU-hours", 1.0
    if hours < 1:
        unit, of_hours = ("GPU-minutes", 60.0) if hours >= 1 / 60 else ("GPU-seconds", 3600.0)
    number = hours * of_hours
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def many(number: float, what: str) -> str:
    """A number with its noun, in millions or billions where it is so large."""
    for unit, size in (("billion", 1e9), ("million", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit} {what}"
    return f"{number:,.0f} {what if round(number) != 1 else what.removesuffix('s')}"


def short_text(settings: Settings, own: Settings) -> str:
    """Rate, group and refresh interval of some settings, and their prompts where they differ."""
    rate, group = settings.learning_rate, settings.group_size
    text = f"learning rate {rate:.3g}, group size {group}, K {settings.refresh_interval}"
    is_same = settings.prompts_per_step == own.prompts_per_step
    return text if is_same else f"{text}, {prompts_text(settings)} per step"


def digits(low: float, high: float) -> int:
    """Decimals that the width of an interval makes worth reading."""
    return min(4, max(0, 1 - math.floor(math.log10(max(high - low, 1e-12)))))


def number(advice: AnswerFields, reward: float) -> str:
    """A reward, rounded as the width of the answer's interval makes worth reading."""
    return f"{reward:z.{digits(advice.reward.low, advice.reward.high)}f}"


def stability_interval(stability: Stability) -> str:
    """80 % interval of P(stable), between tables or repositories."""
    if stability.low == stability.high:
        return "by the model: no runs of known outcome recalibrate it"
    low, high = percent(stability.low), percent(stability.high)
    return f"80 % interval: {low} to {high}"


# Paragraphs ---------------------------------------------------------------------------------------


NEARLY_ALL = 0.95  # Share of the steps from which on 95 % of the gain says nothing of a shorter run

INFORMED = {
    "rate.learning_rate": "speed by learning rate",
    "rate.group_size": "speed by group size",
    "plateau_loss.learning_rate": "plateau loss by learning rate",
    "hazard.learning_rate": "collapse by learning rate",
    "curvature_exponent": "speed by model size",
}
"""Terms on which a decision turns, whose share of data is stated, and what they are called."""

URGENT = (Kind.LOST_REWARDS, Kind.ADAPTER_DOUBTED, Kind.KL_DOUBTED, Kind.CEILING_DOUBTED)
"""Assumptions that are named before a launch: a log may show that they are wrong."""

GRAVEST = (
    *(Kind.TOO_LONG, Kind.BELOW_ITS_BEST, Kind.FELL_BELOW_OTHERS, Kind.KNOWN_RATE_DECIDES),
    Kind.LONG_BY_PUBLIC_RUNS,
)
"""Cautions that are named first."""


def brief(name: str, most: int = 40) -> str:
    """Name of a run, without its middle where it is long."""
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-most // 2 :]}"


def difference(one: Settings, other: Settings) -> str:
    """In what settings differ from others; the learning rate always."""
    parts = [f"learning rate {one.learning_rate:.3g}"]
    if one.group_size != other.group_size:
        parts.append(f"group size {one.group_size}")
    if one.refresh_interval != other.refresh_interval:
        parts.append(f"K {one.refresh_interval}")
    return ", ".join(parts)


def flags(advice: AnswerFields) -> str:
    """Options under which the leading pilot's settings would be advised; empty where none can."""
    own, least = advice.best_piloted.settings, advice.best_piloted.stability.probability
    if own.refresh_interval != advice.settings.refresh_interval:
        return ""
    named = [f"--learning-rates {own.learning_rate:g}"]
    if own.group_size != advice.settings.group_size:
        named.append(f"--group-sizes {own.group_size}")
    return " ".join([*named, *([level_flag(least)] if least < advice.terms.level else [])])


def _choice(advice: AnswerFields, check: PriorCheck) -> str:
    """What would be chosen with the priors less or more sure."""
    if check.best is None:
        return "no configuration is stable enough"
    if place_of(check.best) == place_of(advice.settings):
        return "the choice stays"
    best = in_trainer_names(check.best, advice.trainer)
    return f"the highest forecast of what is stable enough is that of {best}"


# The answer ---------------------------------------------------------------------------------------


def headlines(advice: AnswerFields) -> list[str]:
    """What is wrong with the whole answer: a first look, another preset, a looser check."""
    texts, implied = (str(n) for n in advice.notes if n.audience == "headline"), _implied(advice)
    return [one for one in texts if one not in implied]


def _implied(advice: AnswerFields) -> list[str]:
    """A loose check of a first look, which says so itself."""
    is_first_look = Kind.FIRST_LOOK in kinds(advice.notes)
    return [str(one) for one in advice.notes if is_first_look and one.kind is Kind.CHAINS_LOOSE]


def leader_text(advice: AnswerFields, *, is_brief: bool = False) -> str:
    """Why the pilot with the highest reward is not followed; empty where it is."""
    has_other = advice.leader is not None and not advice.leader.is_followed
    return say_of_answer("leader", advice, is_brief) if has_other else ""


def launch_notes(advice: AnswerFields) -> list[str]:
    """What to know before a launch, the most important first."""
    urgent = [one for one in advice.notes if one.audience == "caution" or one.kind in URGENT]
    # A forecast that no test supports comes before what it leaves open.
    urgent.sort(key=lambda one: [*GRAVEST, one.kind].index(one.kind))
    grave = sum(one.kind in GRAVEST for one in urgent)
    first = [] if advice.promotion is None else [advice.promotion.text]
    bound = [advice.binding] if advice.kind == "next_pilot" else []
    return [*map(str, [*urgent[:grave], *first, *urgent[grave:], *bound]), *_implied(advice)]


def pilot_lines(advice: AnswerFields) -> list[str]:
    """Pilots to run next, ready to paste, and why; empty where there is none."""
    pilot = advice.next_pilot
    if pilot is None:
        return []
    every = [pilot.settings, *advice.further_pilots]
    each = " each" if advice.further_pilots else ""
    pasted = [in_trainer_names(one, advice.trainer) for one in every]
    return [*pasted, f"{counted(pilot.steps, 'step')}{each}. {pilot_reason(pilot, each)}"]


def pilot_reason(pilot: NextPilot, each: str = "") -> str:
    """Why a pilot is named, how likely it lives, and its price."""
    return say_of_answer("pilot", pilot, each)


_said: tuple[Callable[..., Any], ...] = (brief, counted, difference, flags, gpu_time, kinds, many)
_said += (in_trainer_names, level_text, number, percent, price, prompts_text, short_text)
_known: dict[str, Any] = {one.__name__: one for one in _said}
_known |= {"choice": _choice, "place_of": place_of, "support": SUPPORT}
_known |= {"informed": INFORMED, "nearly_all": NEARLY_ALL, "trusted_k": TRUSTED_K}
say_of_answer = Words("advisor.advice", "answer.txt.j2", **_known)
say_of_pilots = Words("advisor.advice", "pilots.txt.j2", **_known)
