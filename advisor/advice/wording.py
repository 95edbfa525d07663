"""The wording of an answer: its numbers, prices and settings, and every sentence that has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from advisor.advice.answer_fields import Alternative, AnswerFields, NextPilot, PriorCheck
from advisor.advice.candidates import place_of
from advisor.advice.cost import Cost
from advisor.advice.support import is_supported
from advisor.common import counted
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


SAID = 3
"""Assumptions that are written out beside an answer."""

WEIGHTY = (
    r"passed over, for it cannot be read",
    r"the chains agree only loosely",
    r"adapter = .* assumed|prior preset .*(runs disagree|no adapter is stated)",
    r"reward ceiling .* assumed",
    r"planned steps = ",
    r"known to do best",
    r"learning rates stop at |as in the first pilot",
    r"(minibatches|epochs)_per_refresh = .* assumed",
    r"group_size = .* assumed|prompts_per_step = .* assumed",
    r"parameters = .* assumed",
    r"reward floor .* assumed",
    r"price of a step",
    r"prior preset ",
    r"target = ",
)
"""What an assumption that matters begins with, the weightiest first: a log that is left out, what
the forecast is of (adapter, range of the reward, length), what a step is, what pilots resemble."""


def weightiest(assumptions: Sequence[str], most: int = SAID) -> tuple[list[str], int]:
    """Assumptions that matter most, and how many others there are."""

    def rank(line: str) -> int:
        found = (place for place, begins in enumerate(WEIGHTY) if re.match(begins, line))
        return next(found, len(WEIGHTY))

    return sorted(assumptions, key=rank)[:most], max(0, len(assumptions) - most)


TOO_FEW = "the pilots, too few to tell what other settings do"
"""What limits an answer that keeps to what was piloted for want of pilots."""

SHOWN = 2
"""Cautions in the answer itself, less one where it names a pilot; the others are details."""

NEARLY_ALL = 0.95
"""Share of the steps from which on 95 % of the gain says nothing of a shorter run."""

INFORMED = {
    "rate.learning_rate": "speed by learning rate",
    "rate.group_size": "speed by group size",
    "plateau_loss.learning_rate": "plateau loss by learning rate",
    "hazard.learning_rate": "collapse by learning rate",
    "curvature_exponent": "speed by model size",
}
"""Terms on which a decision turns, whose share of data is stated, and what they are called."""

LIMITED = {"recommendation": "What limits it", "next_pilot": "Bound", "infeasible": "What binds"}
"""What stands before the constraint that an answer meets."""


def summary_text(advice: AnswerFields) -> str:
    """Write the answer: what to run, how sure that is, what binds, what to beware of."""
    pilot = _pilot_lines(advice)
    if advice.kind == "next_pilot":
        # Where the pilot is the answer it stands first.
        takes = "three or more at two settings or more, one of which lives and moves"
        first = f"The pilots tell too little for a recommendation, which takes {takes}"
        pilot[:2] = [f"{first}. {pilot[1]}"] if pilot else [f"{first}: the answer is a bound."]
        opening, pilot = [*pilot, "", *_lead(advice)], []
    else:
        opening = [*_lead(advice), in_trainer_names(advice.settings, advice.trainer), ""]
    beyond = ", ".join(advice.beyond_pilots)
    shown = SHOWN - bool(advice.next_pilot)
    outside = f"Outside what was piloted: {beyond}. There the numbers are extrapolated."
    lines = [*opening, *_body(advice), *([outside] if beyond else []), *pilot]
    few = [f"Caution: {line}" for line in advice.cautions[:shown]]
    return "\n".join([*lines, "", *few]).rstrip()


def explanation_text(advice: AnswerFields) -> str:
    """Write the answer without lines to paste: what it speaks of, and its numbers."""
    return "\n".join([*_lead(advice), *_body(advice), *_particulars(advice)])


def support_text(advice: AnswerFields) -> str:
    """Write what the numbers do not show: whether the pilots support them, and what to do."""
    going_on = [] if advice.promotion is None else [advice.promotion.text]
    return "\n".join([*_support(advice), *going_on])


def _lead(advice: AnswerFields) -> list[str]:
    """Which configuration the numbers are of, where it is not the one to run."""
    if advice.kind == "recommendation":
        return []
    if advice.kind == "infeasible":
        goal = "" if advice.objective.kind == "reward" else " and the goal"
        wanted = f"P(stable) = {level_text(advice.level)}{goal}"
        return [f"No configuration reaches {wanted}. The nearest one found:"]
    if advice.collapsed < advice.pilots:
        return ["What the pilots do say, at the best setting that was piloted:"]
    return ["What the model says of the gentlest setting piloted; every pilot collapsed:"]


def _pilot_lines(advice: AnswerFields) -> list[str]:
    """Next pilot, and why it is named even where the full run would lose more by its price."""
    pilot = advice.next_pilot
    if pilot is None:
        return []
    named = "" if pilot.is_worth_its_price else " It is named, for nothing fit to launch was found."
    return [
        "",
        f"Next pilot, {counted(pilot.steps, 'step')}:",
        f"  {in_trainer_names(pilot.settings, advice.trainer)}",
        f"  Why: {pilot_reason(pilot)}{named}",
    ]


def pilot_reason(pilot: NextPilot) -> str:
    """Why a pilot is named, how likely it lives, and its price, also in reward."""
    lost = 0.0 if pilot.loss is None else pilot.loss
    shorter = f" A run shorter by that price would lose {100 * lost:.1f} % of the range."
    return (
        f"{pilot.reason} It stays stable with probability "
        f"{percent(pilot.stability.probability)} and costs {price(pilot.cost)}."
    ) + (shorter if lost >= 0.0005 else "")  # what a tenth of a per cent shows


def details_text(advice: AnswerFields) -> str:
    """Write what stands behind the answer: its peak, its evidence, what else could be run."""
    others = _others(advice) if advice.kind == "recommendation" else []
    more = [f"Caution: {line}" for line in advice.cautions[SHOWN - bool(advice.next_pilot) :]]
    return "\n".join([*_particulars(advice), *more, evidence_text(advice), *others])


def evidence_text(advice: AnswerFields) -> str:
    """Write the peak of the reward, and how much of the answer is data."""
    peak = advice.peak
    shares = ", ".join(
        f"{INFORMED[name]} {100 * max(share, 0.0):.0f} %" for name, share in advice.informed.items()
    )
    lines = [
        f"Peak on the way: {peak.mean:.3f} [{peak.low:.3f}, {peak.high:.3f}]; runs wander "
        "round their curve, so the best checkpoint lies above the last.",
        f"How much is data, not prior: {shares}.",
    ]
    return "\n".join([*lines, *(_prior_check(advice, check) for check in advice.prior_checks)])


def _prior_check(advice: AnswerFields, check: PriorCheck) -> str:
    """What the answer would be with the priors less or more sure."""
    choice = "no configuration is stable enough"
    if check.best is not None:
        best = in_trainer_names(check.best, advice.trainer)
        other = f"the highest forecast of what is stable enough is that of {best}"
        is_same = place_of(check.best) == place_of(advice.settings)
        choice = "the choice stays" if is_same else other
    doubt = "" if check.pareto_k <= TRUSTED_K else " (a rough figure: its weights are uneven)"
    return (
        f"With the priors {'less' if check.power < 1 else 'more'} sure (power {check.power:g}): "
        f"reward {check.reward:.3f}, P(stable) {percent(check.stability)}; {choice}{doubt}."
    )


def stability_interval(stability: Stability) -> str:
    """Where P(stable) lies, between tables or repositories; empty where no line was learned."""
    if stability.low == stability.high:
        return "as the model says: no runs of known outcome recalibrate it"
    low, high = percent(stability.low), percent(stability.high)
    where = "in 80 % of sets of finished runs"
    return f"{low} {where} too" if low == high else f"{low} to {high} {where}"


def _body(advice: AnswerFields) -> list[str]:
    """What to run, what comes of it and how surely, whether the pilots support it, its price."""
    settings, steps = advice.settings, counted(advice.steps, "step")
    batches = counted(settings.minibatches_per_refresh, "mini-batch")
    reward, least = advice.reward, advice.stability.least
    kind, over = settings.schedule, settings.planned_steps or advice.steps
    decay = "" if kind == "constant" else f"; the learning rate decays over {over} steps ({kind})"
    # A forecast holds for stable runs: said where that is not to be expected.
    stable = f", if it stays stable ({percent(least, advice.level)})"
    return [
        f"For {advice.target.subject}, to {_aim(advice)}: learning rate "
        f"{settings.learning_rate:.3g}, group size {settings.group_size}, refresh interval "
        f"{settings.refresh_interval} ({batches} x {counted(settings.epochs_per_refresh, 'epoch')})"
        f", {prompts_text(settings)} per step, {steps}{_batches(advice)}{decay}.",
        f"{advice.measure.capitalize()} after {steps}{stable if least < advice.level else ''}: "
        f"{reward.mean:.3f}, 80 % interval [{reward.low:.3f}, {reward.high:.3f}] for one run. "
        f"P(stable to step {advice.steps}) = "
        f"{percent(advice.stability.probability, advice.level)}{_between(advice)} (wanted: "
        f"{level_text(advice.level)}).",
        *_support(advice),
        *([_limit(advice)] if _is_outdone(advice) else []),
        *([_price_line(advice)] if advice.kind == "recommendation" else []),
        *([] if advice.promotion is None else [advice.promotion.text]),
    ]


def _batches(advice: AnswerFields) -> str:
    """Steps in batches of rollouts, which some trainers count, and how many were asked for."""
    interval, asked = advice.settings.refresh_interval, advice.budget.steps
    if interval == 1 or advice.steps % interval:
        return ""
    batches = f"{counted(advice.steps // interval, 'batch')} of rollouts"
    is_cut = advice.objective.kind == "reward" and asked not in (None, advice.steps)
    return f" ({batches}; {asked} steps are no whole number)" if is_cut else f" ({batches})"


def _support(advice: AnswerFields) -> list[str]:
    """Whether these pilots support the answer and so long a run, and what to do where not."""
    pilots = f"{counted(advice.pilots, 'pilot')} of up to {advice.longest_pilot:.0f} steps"
    bound = [_limit(advice)] if _is_bound(advice) else []
    if is_supported(advice.steps, advice.longest_pilot):
        return bound or [f"Supported by {pilots}, {advice.collapsed or 'none'} of which collapsed."]
    enough, times = int(-(-advice.steps // SUPPORT)), advice.steps / advice.longest_pilot
    if times <= advice.reach:
        return [
            *bound,
            f"Extrapolated from {pilots}: the run is {times:.3g} times as long. On other runs 80 % "
            f"intervals held so far out; a pilot to step {enough} would support it.",
        ]
    return [
        *bound,
        f"NOT SUPPORTED by these pilots ({pilots}): the run is {times:.3g} times as long, further "
        f"than was measured elsewhere. Let one run to step {enough}, or plan "
        f"{SUPPORT * advice.longest_pilot:.0f} steps.",
    ]


def _is_bound(advice: AnswerFields) -> bool:
    """Whether what limits the answer is a part of it: no recommendation, or of too few pilots."""
    return advice.kind != "recommendation" or advice.binding.startswith(TOO_FEW)


def _is_outdone(advice: AnswerFields) -> bool:
    """Whether a pilot's settings are likelier worth more: then the answer says why not those."""
    chance = advice.best_piloted.p_beaten
    return chance is not None and chance < 0.5 and not _is_bound(advice)


def _particulars(advice: AnswerFields) -> list[str]:
    """What the numbers mean, what limits the answer and what it rests on."""
    stability = advice.stability
    by_model, stated = percent(stability.by_model), percent(stability.probability)
    again = "" if by_model == stated else f". Recalibrated on runs of known outcome: {stated}"
    calm = f", fluctuation small {percent(stability.fluctuation)}" * (stability.fluctuation < 1)
    none_failed = "" if advice.collapsed else " It is the preset's word: no pilot collapsed."
    return [
        "The interval is that of the mean of a run's last tenth, with its seed noise and slow "
        "wander. P(stable) has parts, by the model: rollouts refreshed often enough "
        f"{percent(stability.refresh)}, learning rate tolerated {percent(stability.tolerance)}"
        f"{calm}; in all {by_model}{again}.{none_failed}",
        *([] if advice.kind == "recommendation" else [_price_line(advice)]),
        *_silent_groups(advice.silent_groups),
        *([] if _is_bound(advice) or _is_outdone(advice) else [_limit(advice)]),
        *_evidence(advice),
    ]


def _silent_groups(shares: Mapping[int, float]) -> list[str]:
    """What group sizes waste where the pilots began, in one line."""
    if not shares:
        return []
    of_size = ", ".join(f"{percent(share)} at group size {size}" for size, share in shares.items())
    return [
        "Groups whose completions all score alike teach nothing. As the first rows of the pilots "
        f"tell, they are {of_size}."
    ]


def _limit(advice: AnswerFields) -> str:
    """The constraint that the answer meets."""
    return f"{LIMITED[advice.kind]}: {advice.binding}."


def _between(advice: AnswerFields) -> str:
    """Interval of P(stable), and what the model by itself says where that is less."""
    stability = advice.stability
    low, high = percent(stability.low), percent(stability.high)
    stated = percent(stability.probability, advice.level)
    found = "" if low == stated == high else f", 80 % interval [{low}, {high}]"
    by_model = percent(stability.by_model, advice.level)
    if by_model != stated and stability.by_model < stability.probability:
        found += f"; the model alone says {by_model}, and that decides"
    return found


def _price_line(advice: AnswerFields) -> str:
    one = "It" if advice.kind == "recommendation" else "A run at these settings"
    costs = f"{one} costs {price(advice.cost)}."
    by = round(advice.steps_to_95)  # of the step that is named, which readers count from
    if by > NEARLY_ALL * advice.steps:
        return costs
    after = (1 - by / advice.steps) * advice.cost.paid
    rest = many(after, "completions") if advice.cost.gpu_hours is None else gpu_time(after)
    return f"{costs} 95 % of its gain is made by step {by}; the steps after that cost {rest}."


def _aim(advice: AnswerFields) -> str:
    aim, risk = advice.objective, ""
    if aim.quantile is not None:
        risk = f", judged by the worst {100 * aim.quantile:.0f} % of outcomes"
    if aim.kind == "cheapest":
        chance = percent(aim.confidence)
        return f"reach a reward of {aim.goal:g} for the least, with probability {chance}{risk}"
    if aim.kind == "fastest":
        return f"make {100 * (aim.goal or 0.0):.0f} % of the gain soonest{risk}"
    return f"end with the highest reward{risk}"


def _row(other: Alternative, advised: Settings, *, timed: bool = False) -> str:
    settings, by = other.settings, other.steps_to_95
    time = "" if by is None or not timed else f", 95 % of the advised gain by step {by:.0f}"
    if time and by and (hours := other.cost.gpu_hours):
        time += f" ({gpu_time(by / other.cost.steps * hours)})"
    return (
        f"  {other.name}: {short_text(settings, advised)}: {other.reward:.3f}, P(stable) "
        f"{percent(other.stability.probability)}, {price(other.cost)}{time}"
    )


def short_text(settings: Settings, own: Settings) -> str:
    """Rate, group and refresh interval of some settings, and their prompts where they differ."""
    rate, group = settings.learning_rate, settings.group_size
    text = f"learning rate {rate:.3g}, group size {group}, K {settings.refresh_interval}"
    is_same = settings.prompts_per_step == own.prompts_per_step
    return text if is_same else f"{text}, {prompts_text(settings)} per step"


def _others(advice: AnswerFields) -> list[str]:
    own, piloted = advice.settings, advice.best_piloted
    instead = [
        _row(one, own, timed=True) for one in (*advice.alternatives, *advice.equal_completions)
    ]
    chance = ""
    if piloted.p_beaten is not None:
        is_known = any(line.startswith("known to do best") for line in advice.assumptions)
        away = " and distance from what is known to do best against a setting" if is_known else ""
        chance = f". Where a lost run counts as the reward's floor{away}, it is better with P "
        chance += percent(piloted.p_beaten)
    best = [
        "If both stay stable, the advice is expected to end "
        f"{advice.reward.mean - piloted.reward:+.3f} from the highest forecast of a pilot{chance}:",
        _row(piloted, own),
    ]
    if place_of(piloted.settings) == place_of(own):
        best = ["Of the piloted settings these have the highest forecast."]
    return [
        *(["Instead:", *instead] if instead else []),
        *best,
        "Common recipes under the same posterior:",
        *(_row(recipe, own) for recipe in advice.recipes),
    ]


def _evidence(advice: AnswerFields) -> list[str]:
    is_prior = advice.informed.get("hazard.learning_rate", 1.0) < 1 - NEARLY_ALL
    slope = "; how steeply the risk rises with it is the prior's word" if is_prior else ""
    failed = (
        f"{advice.collapsed} of them collapsed, which bounds the learning rate{slope}"
        if advice.collapsed
        else "none of them collapsed, so the bound on the learning rate is the prior's"
    )
    share = advice.pilots_cost / max(advice.cost.completions, 1.0)
    lines = [
        f"It rests on {counted(advice.pilots, 'pilot')} of up to "
        f"{advice.longest_pilot:.0f} steps, {many(advice.pilots_cost, 'completions')} "
        f"({share:.2g} times the run); {failed}."
    ]
    if advice.outside is not None:
        stop = " Learning rates stop at three times the largest that survived a pilot."
        some_lived = advice.collapsed < advice.pilots
        lines.append(f"Outside the evidence: {advice.outside}.{stop if some_lived else ''}")
    return lines
