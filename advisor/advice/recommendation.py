"""The answer: what to run, how sure that is, and what it rests on, in numbers and in words."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from advisor.advice.answer_fields import Alternative, AnswerFields, NextPilot, PriorCheck
from advisor.advice.candidates import AXES
from advisor.advice.wording import (
    count,
    gpu_time,
    in_trainer_names,
    level_text,
    many,
    other_prompts,
    percent,
    price,
    prompts_text,
)
from advisor.forecast import SUPPORT, Stability
from advisor.model import TRUSTED_K
from advisor.runs import Settings

if TYPE_CHECKING:
    import pandas as pd

TITLES = {
    "recommendation": "Recommended configuration",
    "next_pilot": "Run one more pilot first",
    "infeasible": "No feasible configuration",
}
"""What an answer is headed by."""


class Recommendation(AnswerFields):
    """What the advisor says, as numbers, table and text; its fields are those of `AnswerFields`."""

    @property
    def table(self) -> pd.DataFrame:
        """The advised configuration beside trade-offs and recipes."""
        import pandas as pd

        own = {"recommendation": "advised", "next_pilot": "piloted", "infeasible": "nearest"}
        rows = [
            (own[self.kind], self.settings, self.reward.mean, self.stability, self.cost),
            *(
                (other.name, other.settings, other.reward, other.stability, other.cost)
                for other in (
                    *self.alternatives,
                    *self.equal_completions,
                    self.best_piloted,
                    *self.recipes,
                )
            ),
        ]
        return pd.DataFrame(
            {
                "learning rate": [s.learning_rate for _, s, _, _, _ in rows],
                "group size": [s.group_size for _, s, _, _, _ in rows],
                "prompts per step": [s.prompts_per_step for _, s, _, _, _ in rows],
                "mini-batches": [s.minibatches_per_refresh for _, s, _, _, _ in rows],
                "epochs": [s.epochs_per_refresh for _, s, _, _, _ in rows],
                "steps": [cost.steps for *_, cost in rows],
                "reward at the last step": [reward for _, _, reward, _, _ in rows],
                "P(stable)": [stability.probability for _, _, _, stability, _ in rows],
                "completions": [cost.completions for *_, cost in rows],
                "GPU-hours": [
                    math.nan if cost.gpu_hours is None else cost.gpu_hours for *_, cost in rows
                ],
            },
            index=pd.Index([name for name, *_ in rows], name="configuration"),
        )

    @property
    def summary(self) -> str:
        """The answer as a person would write it; its first line can be pasted into a config."""
        return summary_text(self)

    @property
    def text(self) -> str:
        """The answer, and what stands behind it."""
        return f"{self.summary}\n\n{details_text(self)}"

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2)

    def __repr__(self) -> str:
        """Kind of answer, target, reward and P(stable), and a line to paste."""
        return (
            f"Recommendation({self.kind} for {self.target.model} on {self.target.task}, "
            f"{self.steps} steps: {self.measure} {self.reward.mean:.3f}, P(stable) "
            f"{percent(self.stability.probability)})\n"
            f"{in_trainer_names(self.settings, self.trainer)}"
        )

    def __str__(self) -> str:
        """The answer in full."""
        return self.text

    def _repr_html_(self) -> str:
        """Answer and table, as notebooks show them."""
        from advisor.common import heading, paragraph, table, whole

        frame = self.table
        rows = []
        for name, values in zip(frame.index, frame.itertuples(index=False), strict=True):
            told = dict(zip(frame.columns, values, strict=True))
            # A probability never rounds to certainty.
            rows.append([name, *(told | {"P(stable)": percent(told["P(stable)"])}).values()])
        first, _, rest = self.summary.partition("\n")
        return whole(
            heading(TITLES[self.kind]),
            heading(first),
            paragraph(rest.strip()),
            table([str(frame.index.name), *map(str, frame.columns)], rows),
        )


NEARLY_ALL = 0.95


"""Share of the steps from which on 95 % of the gain says nothing of a shorter run."""


TOLD = 0.0005


"""Share of the range that a tenth of a per cent shows."""


INFORMED = {
    "rate.learning_rate": "speed by learning rate",
    "rate.group_size": "speed by group size",
    "plateau_loss.learning_rate": "plateau loss by learning rate",
    "hazard.learning_rate": "collapse by learning rate",
    "curvature_exponent": "speed by model size",
}


"""What the terms whose share of data is stated are called."""


def summary_text(advice: AnswerFields) -> str:
    """Write the answer: what to run, how sure that is, what binds, what to beware of."""
    opening = {"recommendation": _advised, "next_pilot": _bound, "infeasible": _infeasible}
    lines = opening[advice.kind](advice)
    pilot = advice.next_pilot
    # Where the pilot is the answer it stands first.
    if pilot is not None and advice.kind != "next_pilot":
        lines += ["", *_pilot_lines(pilot, advice.trainer)]
    lines += ["", *(f"Caution: {line}" for line in advice.cautions)]
    return "\n".join(lines).rstrip()


def _pilot_lines(pilot: NextPilot, trainer: str) -> list[str]:
    return [
        f"Next pilot, {count(pilot.steps, 'step', 's')}:",
        f"  {in_trainer_names(pilot.settings, trainer)}",
        f"  Why: {pilot_reason(pilot)}",
    ]


def pilot_reason(pilot: NextPilot) -> str:
    """Why a pilot is named, how likely it lives, and its price, also in reward."""
    stands_against = (
        ""
        if pilot.loss is None or pilot.loss < TOLD
        else f" A run shorter by that price would lose {100 * pilot.loss:.1f} % of the range."
    )
    return (
        f"{pilot.reason} It stays stable with probability "
        f"{percent(pilot.stability.probability)} and costs {price(pilot.cost)}.{stands_against}"
    )


def details_text(advice: AnswerFields) -> str:
    """Write what stands behind the answer: its peak, its evidence, what else could be run."""
    others = _others(advice) if advice.kind == "recommendation" else []
    return "\n".join([evidence_text(advice), *others])


def evidence_text(advice: AnswerFields) -> str:
    """Write the peak of the reward, and how much of the answer is data."""
    peak = advice.peak
    told = ", ".join(
        f"{INFORMED[name]} {100 * max(share, 0.0):.0f} %" for name, share in advice.informed.items()
    )
    return "\n".join(
        [
            f"Peak on the way: {peak.mean:.3f} [{peak.low:.3f}, {peak.high:.3f}]; runs wander "
            "round their curve, so the best checkpoint lies above the last.",
            f"How much is data, not prior: {told}.",
            *(_prior_check(advice, check) for check in advice.prior_checks),
        ]
    )


def _prior_check(advice: AnswerFields, check: PriorCheck) -> str:
    """What the answer would be with the priors less or more sure."""
    sure = "less" if check.power < 1 else "more"
    if check.best is None:
        choice = "no configuration is stable enough"
    elif _choice(check.best) == _choice(advice.settings):
        choice = "the choice stays"
    else:
        choice = f"the choice becomes {in_trainer_names(check.best, advice.trainer)}"
    doubt = "" if check.pareto_k <= TRUSTED_K else " (a rough figure: its weights are uneven)"
    return (
        f"With the priors {sure} sure (power {check.power:g}): reward {check.reward:.3f}, "
        f"P(stable) {percent(check.stability)}; {choice}{doubt}."
    )


def _numbers(advice: AnswerFields) -> list[str]:
    reward, stability = advice.reward, advice.stability
    return [
        f"{advice.measure.capitalize()} after {count(advice.steps, 'step', 's')}"
        f"{_if_stable(advice)}: {reward.mean:.3f}, 80 % "
        f"interval [{reward.low:.3f}, {reward.high:.3f}] for one run: the mean of its last "
        "tenth, with its seed noise and slow wander.",
        f"P(stable to step {advice.steps}) = {percent(stability.probability, advice.level)}"
        f"{_between(advice)}{_whose_word(advice)} (wanted: {level_text(advice.level)}). "
        "Its parts, by the model: rollouts refreshed often enough "
        f"{percent(stability.refresh)}, learning rate tolerated {percent(stability.tolerance)}, "
        f"fluctuation small {percent(stability.fluctuation)}." + _unsupported(advice),
        *_price(advice),
    ]


def stability_interval(stability: Stability) -> str:
    """Where P(stable) lies, between tables or repositories; empty where no line was learned."""
    if stability.low == stability.high:
        return "as the model says: no line was learned for it"
    low, high = percent(stability.low), percent(stability.high)
    if low == high:
        return f"{low} in 80 % of tables too"
    return f"80 % of tables: {low} to {high}"


def _whose_word(advice: AnswerFields) -> str:
    return "" if advice.collapsed else ", the preset's word: no pilot failed"


def _if_stable(advice: AnswerFields) -> str:
    """Condition of a forecast that holds for stable runs, where that is not to be expected."""
    least = advice.stability.least
    if least >= advice.level:
        return ""
    return f", if it stays stable ({percent(least, advice.level)})"


def _between(advice: AnswerFields) -> str:
    """Interval of P(stable), and what the model by itself says where that is less."""
    stability = advice.stability
    low, high = percent(stability.low), percent(stability.high)
    said = percent(stability.probability, advice.level)
    found = "" if low == said == high else f" [{low}, {high}]"
    by_model = percent(stability.by_model, advice.level)
    if by_model != said and stability.by_model < stability.probability:
        found += f"; the model alone says {by_model}, and that decides"
    return found


def _unsupported(advice: AnswerFields) -> str:
    if advice.steps <= SUPPORT * advice.longest_pilot:
        return ""
    return (
        f" NOT SUPPORTED by these pilots: the run is more than {SUPPORT:g} times as long as the "
        f"longest ({advice.longest_pilot:.0f} steps)."
    )


def _price(advice: AnswerFields) -> list[str]:
    share = advice.steps_to_95 / max(advice.steps, 1)
    if share > NEARLY_ALL:
        return [f"It costs {price(advice.cost)}."]
    after = (1 - share) * advice.cost.paid
    rest = many(after, "completions") if advice.cost.gpu_hours is None else gpu_time(after)
    return [
        f"It costs {price(advice.cost)}. 95 % of its gain is made by step "
        f"{advice.steps_to_95:.0f}; the steps after that cost {rest}."
    ]


def _context(advice: AnswerFields) -> str:
    settings = advice.settings
    minibatches = count(settings.minibatches_per_refresh, "mini-batch", "es")
    epochs = count(settings.epochs_per_refresh, "epoch", "s")
    return (
        f"For {advice.target.subject}, to {_aim(advice)}: learning rate "
        f"{settings.learning_rate:.3g}, group size {settings.group_size}, refresh interval "
        f"{settings.refresh_interval} ({minibatches} x {epochs}), "
        f"{prompts_text(settings)} per step, {count(advice.steps, 'step', 's')}."
    )


def _aim(advice: AnswerFields) -> str:
    aim = advice.objective
    risk = (
        ""
        if aim.quantile is None
        else f", judged by the worst {100 * aim.quantile:.0f} % of outcomes"
    )
    if aim.kind == "cheapest":
        chance = percent(aim.confidence)
        return f"reach a reward of {aim.goal:g} for the least, with probability {chance}{risk}"
    if aim.kind == "fastest":
        return f"make {100 * (aim.goal or 0.0):.0f} % of the gain soonest{risk}"
    return f"end with the highest reward{risk}"


def _row(other: Alternative, advised: Settings, *, timed: bool = False) -> str:
    settings = other.settings
    by = other.steps_to_95
    time = "" if by is None or not timed else f", 95 % of the advised gain by step {by:.0f}"
    return (
        f"  {other.name}: learning rate {settings.learning_rate:.3g}, group size "
        f"{settings.group_size}, K {settings.refresh_interval}{other_prompts(settings, advised)}: "
        f"{other.reward:.3f}, P(stable) "
        f"{percent(other.stability.probability)}, {price(other.cost)}{time}"
    )


def _others(advice: AnswerFields) -> list[str]:
    lines = []
    others = (*advice.alternatives, *advice.equal_completions)
    if others:
        lines += ["Instead:", *(_row(other, advice.settings, timed=True) for other in others)]
    piloted = advice.best_piloted
    more = advice.reward.mean - piloted.reward
    if _choice(piloted.settings) == _choice(advice.settings):
        lines.append("The best pilot has these very settings.")
    else:
        lines.append(f"The advice is expected to end {more:+.3f} from the best pilot's settings:")
        lines.append(_row(piloted, advice.settings))
    lines.append("Common recipes under the same posterior:")
    lines += [_row(recipe, advice.settings) for recipe in advice.recipes]
    return lines


def _choice(settings: Settings) -> dict[str, object]:
    return settings.model_dump(include=set(AXES))


def _evidence(advice: AnswerFields) -> list[str]:
    failed = (
        f"{advice.collapsed} of them collapsed, which is what bounds the learning rate"
        if advice.collapsed
        else "none of them collapsed, so the bound on the learning rate is the prior's"
    )
    share = advice.pilots_cost / max(advice.cost.completions, 1.0)
    lines = [
        f"It rests on {count(advice.pilots, 'pilot', 's')} of up to "
        f"{advice.longest_pilot:.0f} steps, {many(advice.pilots_cost, 'completions')} "
        f"({share:.2g} times the run); {failed}.",
    ]
    if advice.outside is not None:
        lines.append(
            f"Outside the evidence: {advice.outside}."
            + (
                " Learning rates stop at three times the largest that survived a pilot."
                if advice.collapsed < advice.pilots
                else ""
            )
        )
    return lines


LIMITED = {
    "recommendation": "What limits it",
    "next_pilot": "Bound",
    "infeasible": "What binds",
}


"""What stands before the constraint that an answer meets."""


def explanation_text(advice: AnswerFields) -> str:
    """Write the answer without lines to paste: what it speaks of, its numbers and cautions."""
    lead = _lead(advice)
    lines = [*([lead] if lead else []), *_body(advice)]
    lines += ["", *(f"Caution: {line}" for line in advice.cautions)]
    return "\n".join(lines).rstrip()


def _lead(advice: AnswerFields) -> str:
    """Which configuration the numbers are of, where it is not the one to run."""
    if advice.kind == "infeasible":
        goal = "" if advice.objective.kind == "reward" else " and the goal"
        return (
            f"No configuration reaches P(stable) = {level_text(advice.level)}{goal}. "
            "The nearest one found:"
        )
    if advice.kind == "next_pilot":
        if advice.collapsed == advice.pilots:
            return (
                "What the model says of the gentlest setting that was piloted; every pilot "
                "collapsed:"
            )
        return "What the pilots do say, at the best setting that was piloted:"
    return ""


def _body(advice: AnswerFields) -> list[str]:
    return [
        _context(advice),
        *_numbers(advice),
        f"{LIMITED[advice.kind]}: {advice.binding}.",
        *_evidence(advice),
    ]


def _beyond(advice: AnswerFields) -> list[str]:
    """Settings of which no pilot speaks; the page has them beside its sliders."""
    if not advice.beyond_pilots:
        return []
    return [
        f"Outside what was piloted: {', '.join(advice.beyond_pilots)}. There the numbers are "
        "extrapolated."
    ]


def _advised(advice: AnswerFields) -> list[str]:
    named = in_trainer_names(advice.settings, advice.trainer)
    return [named, "", *_body(advice), *_beyond(advice)]


def _bound(advice: AnswerFields) -> list[str]:
    pilot = advice.next_pilot
    return [
        "The pilots tell too little for a recommendation: the answer is "
        + ("a bound." if pilot is None else "the next pilot, and a bound."),
        *([] if pilot is None else ["", *_pilot_lines(pilot, advice.trainer)]),
        "",
        _lead(advice),
        *_body(advice),
        *_beyond(advice),
    ]


def _infeasible(advice: AnswerFields) -> list[str]:
    return [
        _lead(advice),
        in_trainer_names(advice.settings, advice.trainer),
        "",
        *_body(advice),
        *_beyond(advice),
    ]
