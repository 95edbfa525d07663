"""While pilots run: which to start, continue, stop or extend, and when piloting is over.

Freeze-thaw by expected utility: what can be done next is weighed by one rule
(`advisor.advice.pilot_worth`), and where nothing is worth its price the answer is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.advice.answer import advise
from advisor.advice.pilot_bench import Bench, bench_of, last_step, preset_of
from advisor.advice.pilot_plan import PilotPlan, PlannedPilot
from advisor.advice.pilot_words import Piloting, PilotWord, reason_of, word_of, word_of_unplanned
from advisor.advice.pilot_worth import Action, worthwhile
from advisor.advice.planned_logs import PlannedLogs, match_logs, price_of
from advisor.advice.recommendation import Recommendation
from advisor.advice.wording import percent
from advisor.common import DEFAULT_SEED, Progress, progress_of
from advisor.errors import InputError
from advisor.forecast import fit
from advisor.model import Posterior, Priors, Sampling
from advisor.runs import PilotRun


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

    Raises
    ------
    InputError
        The pilots cost more than the full run, or the plan's preset is not known.
    NotConvergedError
        The sampler did not converge.
    """
    tell = progress_of(progress)
    logs = match_logs(plan, runs)
    said: list[str] = []
    spent = _spent(plan, logs, said)
    if not logs.runs:
        return _before_any_log(plan, posterior, priors, seed)
    if posterior is None:
        posterior, why = fit_pilots(plan, runs, priors=priors, seed=seed, progress=tell)
        said += why
    bench = bench_of(plan, logs, posterior, priors, seed, spent)
    tell("Weighing the pilots", None, "")
    actions = {}
    for number, pilot in enumerate(plan.pilots):
        action = bench.action(number, pilot)
        if action is not None:
            actions[pilot.name] = action
    rest = [one for one in actions.values() if one.kind != "extend"]
    more = [one for one in actions.values() if one.kind == "extend"]
    kept = worthwhile(bench.worth, rest, more)
    new = None
    if not kept and posterior is not None:
        new, kept = _best_new(bench)
    advice = None
    if not kept and posterior is not None:
        advice = _advice(bench, tell)
    words = [word_of(bench, pilot, actions.get(pilot.name), kept) for pilot in plan.pilots]
    words += [word_of_unplanned(bench, run) for run in logs.others]
    return Piloting(
        word="go on" if kept else "stop",
        reason=reason_of(bench, kept, actions),
        pilots=tuple(words),
        new=new,
        spent=spent,
        left=bench.worth.left(kept),
        said=(*logs.said, *said),
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
    fitted = match_logs(plan, runs).fitted
    if not fitted:
        return None, ["no log can be fitted yet: what is said rests on the preset alone"]
    try:
        posterior = fit(fitted, priors=preset, sampling=Sampling(seed=seed), progress=progress)
    except InputError as error:
        return None, [f"{error.problem}: what is said rests on the preset alone"]
    return posterior, []


def _spent(plan: PilotPlan, logs: PlannedLogs, said: list[str]) -> float:
    """What the pilots have cost, as a share of the full run's price."""
    spent = 0.0
    for run in logs.runs:
        if run.parameters is None or run.hyperparameters.lacking or run.step_unit != "optimizer":
            said.append(f"what run '{run.id}' cost is not known, and not counted")
            continue
        settings = run.hyperparameters.completed()
        spent += price_of(plan, settings, run.parameters, last_step(run))
    if spent >= 1 - 1 / plan.steps:
        raise InputError(
            f"the logs have cost {spent:.0%} of the full run of {plan.steps} steps: nothing is "
            "left for it",
            argument="runs",
            advice="Leave out logs that are no pilots of this plan, or plan a longer run",
        )
    return spent


def _before_any_log(
    plan: PilotPlan, posterior: Posterior | None, priors: Priors | str | None, seed: int
) -> Piloting:
    """The plan's own word: nothing has begun."""
    is_run = plan.kind == "run"
    words = [
        PilotWord(
            name=pilot.name,
            log=None,
            is_planned=True,
            learning_rate=pilot.settings.learning_rate,
            seen=0,
            steps=pilot.steps,
            state="not begun",
            word="start",
            reason=f"{pilot.price:.1%} of the run's price, P(stable) {percent(pilot.stable)}",
        )
        for pilot in plan.pilots
    ]
    price = sum(pilot.price for pilot in plan.pilots)
    return Piloting(
        word="run" if is_run else "go on",
        reason="no pilot is worth its price."
        if is_run
        else f"no pilot has begun. All {len(words)} cost {price:.0%} of the run's price.",
        pilots=() if is_run else tuple(words),
        new=None,
        spent=0.0,
        left=plan.steps if is_run else round((1 - price) * plan.steps),
        said=(),
        advice=None,
        settings=plan.settings if is_run else None,
    )


def _best_new(bench: Bench) -> tuple[PlannedPilot | None, list[Action]]:
    """Best pilot beyond the plan, where one is worth its price."""
    found = bench.new_pilots()
    actions = worthwhile(bench.worth, [], [action for _, action in found])[:1]
    if not actions:
        return None, []
    return next(pilot for pilot, action in found if action is actions[0]), actions


def _advice(bench: Bench, progress: Progress) -> Recommendation:
    """The advice for a full run of what is left, among settings at which no pilot died."""
    return advise(
        bench.posterior,
        steps=bench.worth.left(),
        model=bench.target.model,
        task=bench.target.task,
        parameters=bench.target.parameters,
        start_reward=bench.target.start_reward,
        devices=bench.plan.devices,
        choose_from=tuple(bench.lattice),
        weigh_pilots=False,
        seed=bench.seed,
        progress=progress,
    )
