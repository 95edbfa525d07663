"""Stop, go on or change: few rules, each with its reason and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel

from advisor.advice import CostModel, learn_cost, level_text, percent
from advisor.diagnosis import Diagnosis, diagnose
from advisor.errors import InputError, NotConvergedError
from advisor.forecast import LATEST_ROWS, Target, fit, resolve_group
from advisor.model import Posterior
from advisor.monitoring.watcher import Update, Watch
from advisor.runs import PilotRun

Action = Literal["stop", "change", "go on"]

LITTLE = 0.01
"""Share of the reward's range by which the printed interval may still lie above the latest rows
of a run that is stopped because nothing is left to gain."""


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
        kept = "Go on" if self.steps else "Finished"
        verdict = {"stop": "STOP", "change": "CHANGE", "go on": kept}[self.action]
        line = f"{verdict}: {self.reason}." + (f" {self.change}." if self.change else "")
        if self.action != "go on" and self.steps:
            verb = "Stopping saves" if self.action == "stop" else "The rest would take"
            hours = "" if self.gpu_hours is None else f" and {self.gpu_hours:.3g} GPU-hours"
            line += f" {verb} {self.steps:,} steps, {self.completions:,.0f} completions{hours}."
        return line


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
    action, rule, reason, change = _rule(update, diagnosis, level, left)
    return WatchDecision(
        action=action,
        rule=rule,
        reason=reason,
        change=change,
        steps=left,
        completions=price.completions,
        gpu_hours=price.gpu_hours,
        is_alarm=rule not in ("none", "gained"),
    )


def _rule(
    update: Update, diagnosis: Diagnosis, level: float, left: int
) -> tuple[Action, str, str, str]:
    failed = [card for card in diagnosis.cards if card.status == "FAIL"]
    fall = diagnosis.card("collapse")
    if fall.status == "FAIL" or update.fallen_since is not None:
        since = diagnosis.collapse_step if fall.status == "FAIL" else update.fallen_since
        reason = (
            f"the reward fell for good at step {since:.0f} and stands at {update.reward:.3g}; "
            "few such runs come back"
        )
        return "stop", "fallen", reason, _go_back(update, since)
    if update.lost_rows >= LATEST_ROWS:
        reason = f"the latest {update.lost_rows} rewards are not finite"
        return "stop", "not finite", reason, _go_back(update, None)
    # From here on a run is not worth its next step.
    if update.p_unstable >= 0.9:
        reason = f"P(unstable) is {percent(update.p_unstable)}{_moved(update)}"
        return "stop", "doomed", reason, _gentler(update)
    # Chosen on 16 healthy tiny-transformer runs; on 20 others it cried wolf twice in 3,000 looks
    # (case_studies/diagnose).
    if update.surprise is not None and update.surprise < 3e-4:
        reason = (
            f"the latest rows, {update.reward:.3g}, lie below all but {update.surprise:.1g} of "
            "what was forecast from the rows before: something changed"
        )
        return "change", "surprise", reason, _go_back(update, None)
    if update.p_unstable > 1 - level:
        stays = percent(1 - update.p_unstable, level)
        reason = f"P(stable) is {stays}{_moved(update)}, and {level_text(level)} are wanted"
        return "change", "unstable", reason, _gentler(update)
    if failed:
        reason = f"{failed[0].title}: {failed[0].headline.rstrip('.')}"
        return "change", "card", reason, failed[0].change.rstrip(".")
    is_done = update.left_to_gain < LITTLE and not update.is_rising
    if left >= 0.1 * update.planned_steps and is_done:
        reason = (
            f"the latest rows no longer rise, and the upper end of the forecast, "
            f"{update.final.high:.3g}, is less than {LITTLE:.0%} of the reward range above them"
        )
        return "stop", "gained", reason, ""
    reason = f"P(stable) is {percent(1 - update.p_unstable)}{_moved(update)}"
    if fall.status == "WARNING":
        # However slowly it fell: what was gained is lost, and a checkpoint from before is better.
        reason = fall.headline.rstrip(".") + (f"; {reason}" if left else "")
    elif not left:
        reason = "the run stayed stable"
    elif update.share_made < 1:
        reason = f"at least {percent(update.share_made)} of the gain is made, and {reason}"
    return "go on", "none", reason, ""


def _moved(update: Update) -> str:
    """Clause on P(stable) before the run, and on the signal that moved it by a percent and more."""
    before = update.p_unstable_before
    if before is None or abs(update.p_unstable - before) < 0.01:
        return ""
    return f" ({percent(1 - before)} before the run, moved most by {update.moved_by})"


def _gentler(update: Update) -> str:
    rate = update.settings.learning_rate
    if update.gentler_rate is None:
        return f"No tried learning rate below {rate:.3g} keeps the rest of it stable"
    gentler = f"A learning rate of {update.gentler_rate:.2g} instead of {rate:.3g}"
    return f"{gentler} would keep it stable"


def _go_back(update: Update, since: float | None) -> str:
    """Return to a checkpoint from before the fall, with what else is known to help."""
    where = f"before step {since:.0f}" if since is not None else "of some steps ago"
    line = f"Go back to a checkpoint {where} and look at what changed there"
    if update.gentler_rate is not None:
        line += f", with a learning rate of {update.gentler_rate:.2g}"
    return line


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
