"""Stop, go on or change: few rules, each with its reason and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel

from advisor.advice import CostModel, learn_cost, level_text, percent
from advisor.common import Words
from advisor.diagnosis import Card, Diagnosis, diagnose
from advisor.errors import InputError, NotConvergedError
from advisor.forecast import LATEST_ROWS, Target, fit, resolve_group
from advisor.model import Posterior
from advisor.monitoring.watcher import Update, Watch
from advisor.runs import PilotRun

Action = Literal["stop", "change", "go on"]

LITTLE = 0.01
"""Share of the reward's range by which the printed interval may still lie above the latest rows
of a run that is stopped because nothing is left to gain."""

LOST = ("not_finite", "not_finite_at_once")
"""Kinds of warnings after which no update counts, though the reward holds."""


class WatchDecision(BaseModel, frozen=True):
    """What to do with a run now, and what stopping it would save."""

    action: Action
    rule: str  # "fallen", "not finite", "doomed", "surprise", "unstable", "card", "gained", "none"
    reason: str  # one sentence
    change: str  # what to change; empty unless that is the advice
    steps: int  # of the rest of the run
    completions: float  # of the rest of the run
    gpu_hours: float | None  # None where neither the log nor the pilots tell the time of a step
    is_alarm: bool  # whether something is wrong with the run

    @property
    def text(self) -> str:
        """Decision and reason, with what stopping saves."""
        return _say("decision", self)


class WatchReport(BaseModel, frozen=True):
    """One look at a growing log: forecast, cards and decision."""

    update: Update
    diagnosis: Diagnosis
    decision: WatchDecision


def watch_report(watch: Watch, run: PilotRun, *, gpus: int = 1) -> WatchReport:
    """Forecast a run, diagnose it and decide."""
    update = watch.update(run)
    diagnosis = diagnose(run)
    cost = _price(watch.posterior, update, run, gpus)
    decision = watch_decision(update, diagnosis, level=watch.level, cost=cost)
    return WatchReport(update=update, diagnosis=diagnosis, decision=decision)


def watch_decision(
    update: Update, diagnosis: Diagnosis, *, level: float, cost: CostModel
) -> WatchDecision:
    """Apply the rules, the gravest first."""
    left = max(update.planned_steps - update.step, 0)
    price = cost(update.settings, left)
    urgent = (one for one in diagnosis.cards if one.status == "FAIL" or one.kind in LOST)
    failed = next(urgent, None)
    action, rule = _rule(update, diagnosis, failed, level, left)
    fall = diagnosis.card("collapse")
    warning = (card for card in (fall, *diagnosis.cards) if card.status == "WARNING")
    since = None
    if rule == "fallen":
        since = diagnosis.collapse_step if fall.status == "FAIL" else update.fallen_since
    return WatchDecision(
        action=action,
        rule=rule,
        reason=_say("reason", rule, update, next(warning, None), failed, since, level, left),
        change=_say("change", rule, update, failed, since),
        steps=left,
        completions=price.completions,
        gpu_hours=price.gpu_hours,
        is_alarm=rule not in ("none", "gained"),
    )


def _rule(
    update: Update, diagnosis: Diagnosis, failed: Card | None, level: float, left: int
) -> tuple[Action, str]:
    if diagnosis.card("collapse").status == "FAIL" or update.fallen_since is not None:
        return "stop", "fallen"
    if update.lost_rows >= LATEST_ROWS:
        return "stop", "not finite"
    # From here on a run is not worth its next step.
    if update.p_unstable >= 0.9:
        return "stop", "doomed"
    # Chosen on 16 healthy tiny-transformer runs; on 20 others it cried wolf twice in 3,000 looks
    # (case_studies/diagnose).
    if update.surprise is not None and update.surprise < 3e-4:
        return "change", "surprise"
    if update.p_unstable > 1 - level:
        return "change", "unstable"
    if failed is not None:
        return "change", "card"
    is_done = update.left_to_gain < LITTLE and not update.is_rising
    if left >= 0.1 * update.planned_steps and is_done:
        return "stop", "gained"
    return "go on", "none"


_say = Words(
    "advisor.monitoring", "watch.txt.j2", level_text=level_text, little=LITTLE, percent=percent
)


def _price(posterior: Posterior, update: Update, run: PilotRun, gpus: int) -> CostModel:
    """Price of a step: by the run's own log, else by the pilots'."""
    own = run.seconds_per_step
    if own is not None:
        return CostModel(fixed=own, gpus=gpus, source="step times of the run itself")
    size = resolve_group(run, posterior.meta)[0].parameters or 0.0
    return learn_cost(posterior, Target(update.task, update.model, size), gpus=gpus)


class Refitter:
    """Keeps a watch fit for its run."""

    def __init__(self, pilots: Sequence[PilotRun]) -> None:
        self.pilots = list(pilots)
        self._rows = 0.0

    def __call__(self, watch: Watch, run: PilotRun, update: Update) -> tuple[Watch, str] | None:
        """Fit again where it is due and the run has grown enough: the watch, and what to say."""
        # Times the rows of the last fit that a run must have before it is fitted again.
        if not update.refit_due or run.step.size < 1.5 * self._rows:
            return None
        self._rows = float(run.step.size)
        others = [pilot for pilot in self.pilots if pilot.id != run.id]
        own, _ = resolve_group(
            run.with_updates(task=update.task, model=update.model, hyperparameters=update.settings),
            watch.posterior.meta,
        )
        try:
            posterior = fit([*others, own], priors=watch.posterior.meta.priors)
        except (InputError, NotConvergedError) as error:
            return watch, f"the pilots could not be fitted again with this run: {error}"
        fresh = replace(watch, posterior=posterior, fitted=own)
        return fresh, f"fitted again with this run (Pareto k was {update.pareto_k:.2f})"
