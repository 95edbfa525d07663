"""Search the lattice with Optuna, over posterior draws: no run is launched."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.advice.candidates import AXES, Lattice, place_of
from advisor.advice.evaluate import Evaluation, Evaluator
from advisor.advice.request import Search
from advisor.common import Progress, without_password
from advisor.errors import InputError
from advisor.model import RunSummary
from advisor.runs import Settings

if TYPE_CHECKING:
    import optuna

STABLE = "P(stable)"
REACHED = "goal"  # Names of the constraints in the Optuna study; zero or less is feasible
STARTUP = 32  # Trials drawn at random before a model of them steers


def check_storage(storage: Any) -> None:
    """Let Optuna open a storage, before anything is computed for it."""
    import optuna

    try:
        optuna.get_all_study_names(storage)
    except Exception as error:  # each database driver raises classes of its own
        raise _refused(storage, error) from error


def _refused(storage: Any, error: Exception) -> InputError:
    reason = str(error).strip().partition("\n")[0][:300] or type(error).__name__
    return InputError(
        f"the Optuna study cannot be kept there ({without_password(reason)})",
        path=without_password(str(storage)),
        argument="storage",
        advice="Give one that no other program holds and whose driver is installed, such as "
        "sqlite:///studies.db",
    )


def search(
    evaluate: Evaluator, lattice: Lattice, level: float, how: Search, *, progress: Progress
) -> tuple[Evaluation | None, Evaluation]:
    """Find the best feasible configuration: all are tried, or some and what is near the best."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    tried: list[Evaluation] = []
    axes = lattice.axes
    # Scattered points fill next to nothing of a grid: they too are tried one by one.
    is_small = len(lattice) <= how.trials or len(lattice) < math.prod(map(len, axes.values()))
    number = len(lattice) if is_small else how.trials
    # So many are all evaluated, together, before a search: no dearer than its trials.
    is_prepared = len(lattice) <= 1200 and evaluate.goal is None
    known = evaluate.compared(list(lattice) if is_prepared else [])
    table: dict[Any, Evaluation | None] = {place_of(one.settings): one for one in known}

    def objective(trial: optuna.Trial) -> float:
        place = tuple(
            axes[name][trial.suggest_int(f"{name} (index)", 0, len(axes[name]) - 1)]
            for name in AXES
        )
        if place not in table:
            settings = lattice.at(place)
            table[place] = None if settings is None else evaluate(settings)
        if (evaluation := table[place]) is None:
            raise optuna.TrialPruned("not offered")
        tried.append(evaluation)
        if how.storage is not None:
            _describe(trial, place, evaluation)
        trial.set_constraint(STABLE, level - evaluation.stability.probability)
        trial.set_constraint(REACHED, _missed(evaluation, evaluate.goal))
        if trial.number % 100 == 0:
            share = min(1.0, trial.number / number)
            progress("Searching configurations", share, f"trial {trial.number}")
        return evaluation.value if np.isfinite(evaluation.value) else -evaluation.cost.paid

    memory = optuna.storages.InMemoryStorage()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = _sampler(how.seed, is_small=is_small)
        study = optuna.create_study(storage=memory, direction="maximize", sampler=sampler)
        meta = evaluate.forecaster.posterior.meta
        study.set_user_attr("provenance", meta.provenance.model_dump())
        study.set_user_attr("objective", evaluate.objective.model_dump())
        if is_small:
            _enqueue(study, lattice, lattice)
        study.optimize(objective, n_trials=number)
        seen = {e.settings for e in tried}
        # What was piloted is known to be good or bad: no sampler may pass it by.
        if piloted := _nearest_to_pilots(meta.runs, lattice) - seen:
            study.optimize(objective, n_trials=_enqueue(study, lattice, piloted))
            seen.update(piloted)
        while around := _around(_top(tried, level), lattice, seen):
            study.optimize(objective, n_trials=_enqueue(study, lattice, around))
            seen.update(around)
    for one in tried:
        evaluate(one.settings)  # what was looked up is on offer from here on
    if how.storage is not None:
        _keep(study, memory, how.storage, _name(evaluate))
    return _top(tried, level), _nearest(tried, level)


def _name(evaluate: Evaluator) -> str:
    """Name of a search among those of a storage; another search of the same pilots has another."""
    target = evaluate.forecaster.target
    pilots = evaluate.forecaster.posterior.meta.provenance.data_sha256[:8]
    return f"{target.model} on {target.task}, pilots {pilots}, {secrets.token_hex(4)}"


def _keep(study: optuna.Study, memory: Any, storage: Any, name: str) -> None:
    """Copy a finished study at once: trial by trial a search takes tens of times as long."""
    import optuna

    try:
        optuna.copy_study(
            from_study_name=study.study_name,
            from_storage=memory,
            to_storage=storage,
            to_study_name=name,
        )
    except Exception as error:
        raise _refused(storage, error) from error


def _describe(trial: optuna.Trial, place: Iterable[float], found: Evaluation) -> None:
    """Note what was tried and what came of it, for readers of the study."""
    noted = dict(zip(AXES, place, strict=True), reward=found.reward, price=found.cost.paid)
    for name, value in noted.items():
        trial.set_user_attr(name, value)


def _enqueue(study: optuna.Study, lattice: Lattice, settings: Iterable[Settings]) -> int:
    """Ask that these settings are tried next, and count them."""
    places = [
        {f"{name} (index)": lattice.axes[name].index(getattr(one, name)) for name in AXES}
        for one in settings
    ]
    for place in places:
        study.enqueue_trial(place)
    return len(places)


def _top(tried: Iterable[Evaluation], level: float) -> Evaluation | None:
    feasible = [e for e in tried if e.is_feasible(level)]
    return max(feasible, key=lambda e: e.value, default=None)


def _nearest(tried: Sequence[Evaluation], level: float) -> Evaluation:
    """Nearest to feasible: reaching the goal comes before P(stable), and that before the reward."""
    found = [(np.isfinite(e.value), min(e.stability.probability, level), e.reward) for e in tried]
    return tried[found.index(max(found))]


def _around(best: Evaluation | None, lattice: Lattice, seen: set[Settings]) -> list[Settings]:
    """Offered configurations one place away from the best on any of the axes, not tried yet."""
    if best is None:
        return []
    ladders = []
    for name, choices in lattice.axes.items():
        at = choices.index(getattr(best.settings, name))
        ladders.append(choices[max(0, at - 1) : at + 2])
    near = map(lattice.at, product(*ladders))
    return [one for one in near if one is not None and one not in seen]


def _nearest_to_pilots(runs: Iterable[RunSummary], lattice: Lattice) -> set[Settings]:
    """Offered configurations that are nearest to those piloted on every axis."""
    found = set()
    for run in runs:
        place = []
        for name, choices in lattice.axes.items():
            gaps = np.abs(np.log(choices) - math.log(getattr(run.settings, name)))
            place.append(choices[int(gaps.argmin())])
        found.add(lattice.at(tuple(place)))
    return {one for one in found if one is not None}


def _missed(evaluation: Evaluation, goal: float | None) -> float:
    """By how much a goal is missed; 0 where it is reached with the confidence asked for."""
    if np.isfinite(evaluation.value):
        return 0.0
    # Missed it is also where the budget pays for no step.
    return max(1e-9, 0.0 if goal is None else goal - evaluation.reward)


def _sampler(seed: int, *, is_small: bool) -> optuna.samplers.BaseSampler:
    import optuna

    if is_small:
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=STARTUP)
