"""The recommendation in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.runs.pilot_run import Hyperparameters

if TYPE_CHECKING:
    from advisor.advice.recommendation import Recommendation

SUPPORT = 3.0
"""Planned steps over the longest pilot beyond which survival is extrapolated, and said to be."""


def in_trainer_names(settings: Hyperparameters) -> str:
    """One line to paste, in TRL's names."""
    return (
        f"learning_rate={settings.learning_rate:.2g}, num_generations={settings.group_size}, "
        f"num_iterations={settings.epochs_per_refresh}, "
        f"steps_per_generation={settings.minibatches_per_refresh} x gradient_accumulation_steps"
    )


def percent(probability: float) -> str:
    """Format a probability without ever rounding to certainty."""
    if probability > 0.995:
        return "over 99 %"
    if probability < 0.005:
        return "under 1 %"
    return f"{probability:.0%}".replace("%", " %")


def _count(number: int | None, noun: str, plural: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else plural)


def recommendation_text(advice: Recommendation) -> str:
    """Write the answer, its numbers, its reasons and its limits."""
    opening = {"recommendation": _advised, "next_pilot": _bound, "infeasible": _infeasible}
    lines = opening[advice.kind](advice)
    if advice.next_pilot is not None:
        pilot = advice.next_pilot
        lines += [
            "",
            f"Next pilot ({pilot.steps} steps): {in_trainer_names(pilot.settings)}.",
            f"  Why: {pilot.reason} It stays stable with probability "
            f"{percent(pilot.stability.probability)}.",
        ]
    lines += ["", *(f"Caution: {line}" for line in advice.cautions)]
    return "\n".join(lines).rstrip()


def _numbers(advice: Recommendation) -> list[str]:
    reward, peak, stability = advice.reward, advice.peak, advice.stability
    return [
        f"{advice.measure.capitalize()} after {advice.steps} steps: {reward.mean:.3f}, 80 % "
        f"interval [{reward.lower:.3f}, {reward.upper:.3f}] for one run, seed noise included.",
        f"Its peak on the way: {peak.mean:.3f} [{peak.lower:.3f}, {peak.upper:.3f}]; runs wander "
        "round their curve, so the best checkpoint lies above the last.",
        f"95 % of that gain is reached by step {advice.steps_to_95:.0f}.",
        f"P(stable to step {advice.steps}) = {percent(stability.probability)} "
        f"(wanted: {percent(advice.level)}). Its parts: rollouts refreshed often enough "
        f"{percent(stability.refresh)}, learning rate tolerated {percent(stability.tolerance)}.",
    ]


def _context(advice: Recommendation) -> str:
    settings = advice.settings
    minibatches = _count(settings.minibatches_per_refresh, "mini-batch", "es")
    epochs = _count(settings.epochs_per_refresh, "epoch", "s")
    return (
        f"For {advice.target.model} on {advice.target.task}: learning rate "
        f"{settings.learning_rate:.2g}, group size {settings.group_size}, refresh interval "
        f"{settings.refresh_interval} ({minibatches} x {epochs}), "
        f"{settings.prompts_per_step:g} prompts per step."
    )


def _recipes(advice: Recommendation) -> list[str]:
    return [
        f"  {recipe.name}: reward {recipe.reward:.3f}, "
        f"P(stable) {percent(recipe.stability.probability)}"
        for recipe in advice.recipes
    ]


def _evidence(advice: Recommendation) -> str:
    failed = (
        f"{advice.collapsed} of them collapsed, which is what bounds the learning rate"
        if advice.collapsed
        else "none of them collapsed, so the bound on the learning rate is the prior's"
    )
    return (
        f"It rests on {_count(advice.pilots, 'pilot', 's')} of up to "
        f"{advice.longest_pilot:.0f} steps; {failed}."
    )


def _advised(advice: Recommendation) -> list[str]:
    return [
        in_trainer_names(advice.settings),
        "",
        _context(advice),
        *_numbers(advice),
        f"What limits it: {advice.binding}.",
        _evidence(advice),
        "Common recipes under the same posterior:",
        *_recipes(advice),
    ]


def _bound(advice: Recommendation) -> list[str]:
    return [
        "Not enough pilots for a recommendation: the answer is the next pilot, and a bound.",
        "",
        "What the pilots do say, at the best setting that was piloted:",
        _context(advice),
        *_numbers(advice),
        f"Bound: {advice.binding}.",
        _evidence(advice),
    ]


def _infeasible(advice: Recommendation) -> list[str]:
    return [
        f"No configuration reaches P(stable) = {percent(advice.level)}. The safest one found:",
        in_trainer_names(advice.settings),
        "",
        _context(advice),
        *_numbers(advice),
        f"What binds: {advice.binding}.",
        _evidence(advice),
    ]
