"""Where an answer leans on the prior or leaves the pilots' ground, in words."""

from __future__ import annotations

from advisor.advice.candidates import RATE_REACH, Lattice, largest_surviving_rate
from advisor.advice.evaluate import Evaluation, Evaluator
from advisor.advice.wording import level_text, other_prompts, percent
from advisor.findings import misfit_caution
from advisor.forecast import SUPPORT, Forecaster
from advisor.model import FIRST_LOOK, Posterior
from advisor.runs import NONE_MOVED


def cautions(posterior: Posterior, forecaster: Forecaster, steps: int) -> list[str]:
    """Sentences that belong beside the answer about a run of so many steps."""
    meta = posterior.meta
    out = []
    if not any(run.collapse_step is not None for run in meta.runs):
        out.append(
            "No pilot failed, so the tolerated learning rate is bounded by the prior and by "
            f"{RATE_REACH:g} times the largest piloted rate."
        )
    if largest_surviving_rate(posterior) is None:
        out.append("Every pilot collapsed; nothing here is known to live.")
    rates = {run.settings.learning_rate for run in meta.runs}
    if len(rates) == 1:
        out.append(
            f"All pilots ran at learning rate {rates.pop():g}: what another learning rate does is "
            "the prior's word."
        )
    sizes = {run.settings.group_size for run in meta.runs}
    if len(sizes) == 1:
        out.append(
            f"Group size: keep {sizes.pop()} unless you name others; your pilots, which all ran at "
            "it, cannot tell what another does."
        )
    if not forecaster.is_piloted:
        out.append(
            f"No pilot ran {forecaster.target.model} on {forecaster.target.task}: its stiffness, "
            f"start and tolerance are extrapolated from {posterior.sizes} model size"
            f"{'s' if posterior.sizes > 1 else ''}."
        )
    told = meta.priors.extrapolation
    if steps > SUPPORT * meta.longest:
        beyond = (
            f"the curve is moved by how far runs of {told.groups} other worlds were ahead of theirs"
            if told.groups
            else "the interval of the reward is too narrow: of public runs, half lay in 80 %"
        )
        out.append(
            f"The run is {steps / meta.longest:.2g} times as long as the longest pilot. Beyond "
            f"{SUPPORT:g} times, {beyond}."
        )
    if FIRST_LOOK in meta.notes:
        out.insert(0, f"This is {FIRST_LOOK}.")
    if NONE_MOVED in meta.notes:
        out.insert(
            0,
            f"{NONE_MOVED[0].upper()}{NONE_MOVED[1:]}: they tell that their settings are slow, and "
            "how high and how fast another rises is the prior's word.",
        )
    misfit = misfit_caution(posterior)
    if misfit:
        out.append(misfit)
    if any(not run.settings.importance_ratio for run in meta.runs):
        out.append("Some pilots ran without an importance ratio; all of their staleness counts.")
    if any(run.settings.optimizer == "sgd" for run in meta.runs):
        out.append(
            "The pilots ran with SGD: where it was tried on networks, staleness cost reward from a "
            "quarter of the limit on that is assumed here; keep refresh interval and lag as short."
        )
    return out


NOTICED = 0.01
"""Share of the reward range that a freed constraint must give to be named."""


def bound(evaluate: Evaluator, lattice: Lattice, chosen: Evaluation, level: float) -> str:
    """Largest learning rate that keeps the level at the piloted group size and refresh interval."""
    tried = lattice.axes["learning_rate"]
    allowed = [
        rate
        for rate in tried
        if evaluate(chosen.settings.model_copy(update={"learning_rate": rate})).stability.least
        >= level
    ]
    if not allowed:
        return f"no learning rate tried keeps P(stable) at {level_text(level)}"
    here = f"keep P(stable) at {level_text(level)} or more at this group size and refresh interval"
    if max(allowed) == tried[-1]:
        return f"none was found: learning rates up to {tried[-1]:.6g}, the highest tried, {here}"
    above = min(rate for rate in tried if rate > max(allowed))
    return (
        f"learning rates up to {max(allowed):.6g} {here}; the next one tried, {above:.6g}, does not"
    )


def shortfall(evaluate: Evaluator, nearest: Evaluation, level: float, start: float) -> str:
    """Constraint that no configuration meets, and what would free it."""
    if all(evaluate.budget.steps_of(e.settings, evaluate.cost) < 1 for e in evaluate.tried):
        return "the budget, which pays for no step of any configuration. A larger one would free it"
    if evaluate.goal is not None and not any(e.value > float("-inf") for e in evaluate.tried):
        best = max(evaluate.tried, key=lambda e: e.reward)
        return (
            f"the goal: no configuration reaches {evaluate.goal:.3f} within the budget with "
            f"probability {percent(evaluate.objective.confidence)}; the best comes to "
            f"{best.reward:.3f} on average. A longer run, a lower goal or more risk would free it"
        )
    if nearest.is_feasible(level) and nearest.reward <= start:
        return (
            f"the reward: every configuration that is stable enough ends at {nearest.reward:.3f} "
            f"or less, below the {start:.3f} that it starts from. Pilots that gain something, or "
            "another reward, would free it"
        )
    parts = {
        "the learning rate that this task and model tolerate": nearest.stability.tolerance,
        "the refresh interval": nearest.stability.refresh,
        "the fluctuation of the reward": nearest.stability.fluctuation,
    }
    worst = min(parts, key=lambda name: parts[name])
    return (
        f"{worst} (its part is {percent(parts[worst], level)}; the level asks for "
        f"{level_text(level)}). "
        "A lower level, shorter run, or a pilot at a lower learning rate would free it"
    )


def limiting_factor(
    evaluate: Evaluator, lattice: Lattice, chosen: Evaluation, level: float, posterior: Posterior
) -> str:
    """Constraint that the advice stands at, and what freeing it would give."""
    low, high = evaluate.forecaster.outcome_bounds
    better = [
        e
        for e in evaluate.tried
        if e.reward > chosen.reward + NOTICED * (high - low) and e.stability.least < level
    ]
    if better and evaluate.goal is None:
        top = max(better, key=lambda e: e.reward)
        return (
            f"P(stable): learning rate {top.settings.learning_rate:.3g}, group size "
            f"{top.settings.group_size}, K {top.settings.refresh_interval}"
            f"{other_prompts(top.settings, chosen.settings)} would give "
            f"{top.reward:.3f} at P(stable) {percent(top.stability.least, level)}"
        )
    last, surviving = lattice.axes["learning_rate"][-1], largest_surviving_rate(posterior)
    if len(lattice.axes["learning_rate"]) > 1 and chosen.settings.learning_rate == last:
        is_reach = surviving is not None and last == float(f"{surviving * RATE_REACH:.2g}")
        edge = (
            f"{RATE_REACH:g} times the largest that survived a pilot" if is_reach else f"{last:.3g}"
        )
        return (
            f"the learning rate, at the edge of what was offered ({edge}); a pilot there would "
            "tell whether more is better"
        )
    if evaluate.goal is not None:
        return f"the goal of {evaluate.goal:.3f}: nothing feasible reaches it for less"
    return (
        "nothing: higher learning rates gain less than a hundredth of the reward range, and "
        "fewer completions per step would lose more"
    )
