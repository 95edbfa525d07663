"""While pilots run: which to start, continue, stop or extend, and when piloting is over.

Freeze-thaw by expected utility: what can be done next is weighed by one rule
(`advisor.advice.pilot_choice`), and where nothing is worth its price the answer is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from advisor.advice.answer import advise
from advisor.advice.pilot_bench import (
    Bench,
    PlannedLogs,
    bench_of,
    is_finished,
    last_step,
    match_logs,
    preset_of,
    price_of,
    why_not,
)
from advisor.advice.pilot_choice import IDLE, Action, margin, worthwhile
from advisor.advice.pilot_plan import PilotPlan, PlannedPilot
from advisor.advice.recommendation import Recommendation
from advisor.advice.wording import percent, say_of_pilots
from advisor.common import DEFAULT_SEED, Progress, progress_of
from advisor.errors import InputError
from advisor.forecast import fit
from advisor.model import Posterior, Priors, Sampling
from advisor.runs import PartialSettings, PilotRun, Settings


def pilots(
    plan: PilotPlan,
    runs: Sequence[PilotRun],
    *,
    posterior: Posterior | None = None,
    priors: Priors | str | None = None,
    seed: int = DEFAULT_SEED,
    progress: bool | Progress | None = None,
) -> Piloting:
    """Say what to do with the pilots of a plan, or that piloting is over and what to run.

    Parameters
    ----------
    plan : PilotPlan
        From `advisor.plan`, or loaded from its folder.
    runs : sequence of PilotRun
        Logs of the pilots, finished or not; also of pilots that were not planned.
    posterior : Posterior, optional
        Of these runs, from :func:`fit_pilots` [default: they are fitted].
    priors : Priors or str, optional
        Preset [default: that of the plan].
    seed : int
        Of the sampler and of what is simulated.
    progress : bool or callable, optional
        True prints to standard error.

    Returns
    -------
    piloting : Piloting
    """
    report = progress_of(progress)
    logs = match_logs(plan, runs)
    notes: list[str] = []
    spent = _spent(plan, logs, notes)
    if not logs.runs:
        return _before_any_log(plan)
    if posterior is None:
        posterior, why = fit_pilots(plan, runs, priors=priors, seed=seed, progress=report)
        notes += why
    bench = bench_of(plan, logs, posterior, priors, seed, spent)
    report("Weighing the pilots", None, "")
    found = {pilot.name: bench.action(number, pilot) for number, pilot in enumerate(plan.pilots)}
    actions = {name: action for name, action in found.items() if action is not None}
    rest = [one for one in actions.values() if one.kind != "extend"]
    more = [one for one in actions.values() if one.kind == "extend"]
    kept = worthwhile(bench.worth, rest, more)
    advice = None
    if not kept and posterior is not None:  # of a full run, at settings at which no pilot died
        own: dict[str, Any] = {**vars(bench.target), "devices": plan.devices, "seed": seed}
        own |= {"steps": bench.worth.left(), "choose_from": tuple(bench.lattice)}
        advice = advise(bench.posterior, **own, progress=report)
    words = [word_of(bench, pilot, actions.get(pilot.name), kept) for pilot in plan.pilots]
    words += [word_of_unplanned(bench, run) for run in logs.others]
    return Piloting(
        word="go on" if kept else "stop",
        reason=reason_of(bench, kept, actions),
        pilots=tuple(words),
        spent=spent,
        left=bench.worth.left(kept),
        said=(*logs.said, *notes),
        advice=advice,
        settings=None,
    )


def fit_pilots(
    plan: PilotPlan,
    runs: Sequence[PilotRun],
    *,
    priors: Priors | str | None = None,
    seed: int = DEFAULT_SEED,
    progress: bool | Progress | None = None,
) -> tuple[Posterior | None, list[str]]:
    """Fit what there is of the pilots of a plan."""
    preset = preset_of(plan, priors)
    logs = match_logs(plan, runs)
    _spent(plan, logs, [])  # where it refuses a fit would be in vain
    fitted = [run for run in logs.runs if not why_not(run)]
    if not fitted:
        return None, ["no log can be fitted yet: what is said rests on the preset alone"]
    try:
        posterior = fit(fitted, priors=preset, sampling=Sampling(seed=seed), progress=progress)
    except InputError as error:
        return None, [f"{error.problem}: what is said rests on the preset alone"]
    return posterior, []


def _spent(plan: PilotPlan, logs: PlannedLogs, notes: list[str]) -> float:
    """What the pilots have cost, as a share of the full run's price."""
    spent = 0.0
    for run in logs.runs:
        if run.parameters is None or run.hyperparameters.lacking or run.step_unit != "optimizer":
            notes.append(f"what run '{run.id}' cost is not known, and not counted")
            continue
        spent += price_of(plan, run.hyperparameters.completed(), run.parameters, last_step(run))
    if spent >= 1 - 1 / plan.steps:
        raise InputError(
            f"the logs have cost {spent:.0%} of the full run of {plan.steps} steps: none is left",
            argument="runs",
            advice="Leave out logs that are no pilots of this plan, or plan a longer run",
        )
    return spent


def _before_any_log(plan: PilotPlan) -> Piloting:
    """The plan's own word: nothing has begun."""
    is_run = plan.kind == "run"
    words = []
    for pilot in plan.pilots:
        reason = f"{pilot.price:.1%} of the run's price, P(stable) {percent(pilot.stable)}"
        found = {"name": pilot.name, "steps": pilot.steps, "reason": reason}
        words.append(_word(None, pilot.settings, **found, state="not begun", word="start"))
    price = sum(pilot.price for pilot in plan.pilots)
    return Piloting(
        word="run" if is_run else "go on",
        reason="no pilot is worth its price."
        if is_run
        else f"no pilot has begun. All {len(words)} cost {price:.0%} of the run's price.",
        pilots=() if is_run else tuple(words),
        spent=0.0,
        left=plan.steps if is_run else round((1 - price) * plan.steps),
        said=(),
        advice=None,
        settings=plan.settings if is_run else None,
    )


TITLES = {"go on": "GO ON", "stop": "STOP PILOTING", "run": "RUN"}


class PilotWord(BaseModel, frozen=True):
    """The word on one pilot; gain and loss of its next steps are shares of the reward range."""

    name: str  # of the planned pilot, or the id of a run that was not planned
    log: str | None
    is_planned: bool = True
    learning_rate: float | None
    seen: int  # optimizer steps that its log shows
    steps: int | None  # planned ones
    state: Literal["not begun", "running", "finished", "collapsed"]
    word: Literal["start", "skip", "continue", "stop", "extend", "done"]
    gain: float | None = None  # of the full run's reward
    loss: float | None = None  # what their price would have been worth as training
    reason: str

    @property
    def text(self) -> str:
        """The word in a line."""
        return say_of_pilots("word", self)


class Piloting(BaseModel, frozen=True):
    """The word on a plan: ``stop`` where no pilot is worth it now, ``run`` where none was."""

    word: Literal["go on", "stop", "run"]
    reason: str
    pilots: tuple[PilotWord, ...]
    spent: float  # what pilots have cost, as a share of the full run's price
    left: int  # steps that the same money leaves for the full run as it was planned
    said: tuple[str, ...]  # what was assumed, and which logs do not count
    advice: Recommendation | None  # with ``stop``, where the pilots can be fitted
    settings: Settings | None  # of the full run, with ``run``

    @property
    def is_final(self) -> bool:
        """Whether nothing is left to be done before the full run."""
        return self.word != "go on"

    @property
    def cannot_tell(self) -> bool:
        """Whether piloting is over without a recommendation."""
        if self.word != "stop":
            return False
        return self.advice is None or self.advice.kind != "recommendation"

    @property
    def text(self) -> str:
        """The word in full."""
        return say_of_pilots("piloting", self, TITLES[self.word])


def word_of(
    bench: Bench, pilot: PlannedPilot, action: Action | None, kept: Sequence[Action]
) -> PilotWord:
    """The word on a planned pilot, with its reason."""
    run = bench.logs.planned.get(pilot.name)
    settings = pilot.settings if run is None else run.hyperparameters
    died = None if run is None else bench.died_at(run)
    finished = run is not None and is_finished(run, pilot.steps)
    state = "not begun" if run is None else "finished" if finished else "running"
    word = {"not begun": "skip", "finished": "done", "running": "stop"}[state]
    gain = loss = None
    if died is not None:
        state, word, reason = "collapsed", "stop", f"died at step {died:.0f}"
    elif action is None:
        fatal = None if finished else bench.fatal(pilot.settings)
        reason = "all its steps are done"
        if fatal is not None:
            reason = f"'{fatal}' died at no higher learning rate"
    elif action not in kept and not bench.worth.affords([*kept, action]):
        reason = (
            f"its next {action.steps - action.begun} steps would take the pilots beyond the "
            f"{bench.plan.share:.0%} of the run's price that they may cost"
        )
    else:
        gain, loss = margin(bench.worth, kept, action)
        word = action.kind if action in kept else word
        steps = action.steps - action.begun
        reason = say_of_pilots("action", action.kind, steps, gain, action.price, loss)
    found: dict[str, Any] = {"name": pilot.name, "steps": pilot.steps, "state": state}
    return _word(run, settings, **found, word=word, gain=gain, loss=loss, reason=reason)


def word_of_unplanned(bench: Bench, run: PilotRun) -> PilotWord:
    """The word on a run that no plan knows: what it shows counts, and what to do is not asked."""
    died, planned = bench.died_at(run), run.hyperparameters.planned_steps
    finished = planned is None or is_finished(run, planned)
    reason = "not planned; it counts as a pilot all the same"
    found = {"state": "finished" if finished else "running", "word": "done"}
    if died is not None:
        reason = f"died at step {died:.0f}; not planned, it counts as a pilot all the same"
        found = {"state": "collapsed", "word": "stop"}
    own: dict[str, Any] = {"name": run.id, "is_planned": False, "steps": planned, **found}
    return _word(run, run.hyperparameters, **own, reason=reason)


def _word(run: PilotRun | None, settings: Settings | PartialSettings, **found: Any) -> PilotWord:
    """A word with what the log shows."""
    log, seen = (None, 0) if run is None else (run.path, last_step(run))
    return PilotWord(log=log, seen=seen, learning_rate=settings.learning_rate, **found)


def reason_of(bench: Bench, kept: Sequence[Action], actions: dict[str, Action]) -> str:
    """Why the word on the whole is what it is."""
    worth = bench.worth
    if kept:
        gain, loss = worth.gain(kept), worth.decided() - worth.decided(kept)
        price, steps = sum(one.price for one in kept), bench.plan.steps
        return say_of_pilots("kept", kept, price, gain, loss, worth.spent, worth.left(kept), steps)
    tried = [one for one in actions.values() if bench.index and worth.affords([one])]
    best = max(tried, key=lambda one: worth([one]), default=None)
    gain, loss = (0.0, 0.0) if best is None else margin(worth, [], best)
    rest = IDLE, bool(bench.index), worth.spent, worth.left(), bench.plan.steps
    return say_of_pilots("stopped", best, gain, loss, *rest)
