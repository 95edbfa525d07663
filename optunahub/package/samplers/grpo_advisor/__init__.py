"""An Optuna sampler that fits the trials so far and asks what the next one should be."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna import Study
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from pydantic import ValidationError

import advisor
from advisor import (
    Forecaster,
    InputError,
    NotConvergedError,
    PartialSettings,
    PilotRun,
    Posterior,
    Priors,
    Sampling,
    Settings,
    Target,
)

__all__ = ["AdvisorSampler", "pilots_of_study"]

FloatArray = NDArray[np.float64]

STARTUP = 3
"""Trials with rewards before the first fit."""

LEVEL = 0.5
"""P(stable) that a trial must have, where any has it: a trial that dies teaches too."""

DRAWS = 400
RATES = 25
MOST_VALUES = 8
"""Learning rates, and values of any other setting, among which a trial is chosen."""

ASKED_AT_ONCE = 8
"""Settings whose P(stable) is asked for together, the best first."""

LEAST_REWARDS = 3
"""Rewards below which a trial tells nothing."""

AXES = (
    "learning_rate",
    "group_size",
    "minibatches_per_refresh",
    "epochs_per_refresh",
    "prompts_per_step",
)
"""Settings that a trial may be given."""

SETTING_OF = {
    **{name: name for name in PartialSettings.model_fields},
    "lr": "learning_rate",
    "num_generations": "group_size",
    "num_iterations": "epochs_per_refresh",
    "ppo_epochs": "epochs_per_refresh",
}
"""Setting that a parameter of a trial stands for: the package's own names, TRL's and verl's."""

OF_A_RUN = ("model", "task", "parameters", "reward_floor", "reward_ceiling")
"""What may be told of a run besides its settings."""

ENDED = (TrialState.COMPLETE, TrialState.PRUNED)


class AdvisorSampler(BaseSampler):
    """Choose learning rate, group size and refresh interval of the next trial by the model.

    The trials that ended are fitted as pilots; a draw of the posterior is taken for the truth, and
    the settings that are best under it are the next trial's (Thompson sampling). Parameters that
    are no setting of a run, and all of them until three trials reported rewards, go to another
    sampler.

    Parameters
    ----------
    run : mapping
        What all trials share, as for :func:`pilots_of_study`; at least what the search space lacks
        of learning rate, group size, prompts per step, and ``parameters`` of the model.
    steps : int
        Optimizer steps of the full run, whose final reward is to be high.
    independent_sampler : optuna.samplers.BaseSampler, optional
        For everything else [default: TPE].
    priors : Priors or str, optional
        As for :func:`advisor.fit`.
    sampling : Sampling, optional
        Chains, draws, seed of a fit.
    seed : int, optional
        Of the draws that are taken for the truth.

    Raises
    ------
    InputError
        ``run`` names something that is no setting, or ``steps`` is not positive.
    """

    def __init__(
        self,
        run: Mapping[str, Any],
        *,
        steps: int,
        independent_sampler: BaseSampler | None = None,
        priors: Priors | str | None = None,
        sampling: Sampling | None = None,
        seed: int | None = None,
    ) -> None:
        check_run(run)
        if steps < 1:
            raise InputError(
                f"a full run of {steps} steps", argument="steps", advice="Give 500, say"
            )
        self.run, self.steps = dict(run), steps
        self.priors, self.sampling = priors, sampling
        self._independent = independent_sampler or TPESampler(seed=seed)
        self._rng = np.random.default_rng(seed)
        self._space = IntersectionSearchSpace()
        self._lock = threading.Lock()
        self._fitted: tuple[tuple[str, ...], Posterior | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock: Ray Tune keeps a searcher's state in a file."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state up, with a lock of one's own."""
        vars(self).update(state)
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        """Take another seed: of two processes, none may repeat the other."""
        self._rng = np.random.default_rng()
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Parameters of all trials so far that are settings of a run."""
        space = self._space.calculate(study)
        return {name: space[name] for name in settings_in(list(space)) if not space[name].single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Settings of the next trial."""
        _check_one_objective(study)
        if not search_space:
            return {}
        chosen = self._chosen(study, search_space)
        for name, distribution in search_space.items():
            if name not in chosen:
                chosen[name] = self.sample_independent(study, trial, name, distribution)
        return chosen

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Leave a parameter to the other sampler."""
        _check_one_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Tell the other sampler."""
        _check_one_objective(study)
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: Any, values: Any) -> None:
        """Tell the other sampler."""
        self._independent.after_trial(study, trial, state, values)

    def _chosen(self, study: Study, space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """Values of the settings by Thompson sampling; empty where nothing can be told yet."""
        names = settings_in(list(space))
        if not names or study.direction != StudyDirection.MAXIMIZE:
            return {}
        with self._lock:
            posterior = self._posterior(study)
            if posterior is None:
                return {}
            places = list(product(*(_values(space[name]) for name in names)))
            last = pilots_of_study(study, self.run)[-1]
            base = last.hyperparameters.completed().planned_over(self.steps)
            offered = [_moved(base, dict(zip(names, place, strict=True))) for place in places]
            reward, lives = self._forecast(posterior, last, offered)
            draw = int(self._rng.integers(reward.shape[1]))
            ranked = np.argsort(-(reward * lives)[:, draw])
            may_live = [int(at) for at in ranked if lives[at].mean() >= LEVEL]
            for first in range(0, len(may_live), ASKED_AT_ONCE):
                asked = may_live[first : first + ASKED_AT_ONCE]
                columns = {name: [getattr(offered[at], name) for at in asked] for name in AXES}
                table = advisor.what_if(posterior, steps=self.steps, **columns)
                for at, stable in zip(asked, table["p_stable"], strict=True):
                    if stable >= LEVEL:
                        return dict(zip(names, places[at], strict=True))
            return dict(zip(names, places[int(ranked[0])], strict=True))

    def _forecast(
        self, posterior: Posterior, run: PilotRun, offered: Sequence[Settings]
    ) -> tuple[FloatArray, FloatArray]:
        """Reward above its floor at the end, and whether a run lives, each (settings, draws)."""
        target = Target(str(run.task), str(run.model), float(run.parameters or 0))
        forecaster = Forecaster(posterior, target, draws=DRAWS)
        reward, lives = [], []
        for one in offered:
            reward.append(forecaster.outcome(one, [self.steps])[:, 0])
            stiffness = forecaster.law_stiffness(one) * forecaster.stiffness_ratio
            contracts = stiffness < forecaster.stiffness_limit(one)
            lives.append(contracts * forecaster.survival(one, self.steps))
        return np.array(reward) - forecaster.outcome_bounds[0], np.array(lives)

    def _posterior(self, study: Study) -> Posterior | None:
        """Posterior of the trials that ended; None while they are few or tell nothing."""
        runs = pilots_of_study(study, self.run)
        if len(runs) < STARTUP:
            return None
        known = tuple(run.id for run in runs)
        if self._fitted is None or self._fitted[0] != known:
            found = None
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = advisor.fit(runs, priors=self.priors, sampling=self.sampling)
            except (InputError, NotConvergedError) as error:
                other = type(self._independent).__name__
                warnings.warn(f"AdvisorSampler leaves this trial to {other}: {error}", stacklevel=2)
            self._fitted = known, found
        return self._fitted[1]


def pilots_of_study(study: Study, run: Mapping[str, Any]) -> list[PilotRun]:
    """Read the trials of a study as pilots.

    Parameters
    ----------
    study : optuna.Study
        Of any storage. Its trials reported the mean train reward by optimizer step, counted from 1.
    run : mapping
        What all trials share: settings by the names of :class:`advisor.Settings`, and
        ``parameters`` (of the model), ``model``, ``task``, ``reward_floor``, ``reward_ceiling``.

    Returns
    -------
    runs : list of PilotRun
        Of trials that ended, also by pruning, and reported three rewards or more.

    Raises
    ------
    InputError
        ``run`` names something that is no setting, or no trial has a parameter that is one.
    """
    check_run(run)
    trials = study.get_trials(deepcopy=False, states=ENDED)
    told = [trial for trial in trials if rewards_of(trial)[1].size >= LEAST_REWARDS]
    if told and not any(name in SETTING_OF for trial in told for name in trial.params):
        raise InputError(
            f"no parameter of study '{study.study_name}' is a setting of a run: "
            + ", ".join(sorted({name for trial in told for name in trial.params})),
            argument="study",
            advice=f"Call them {', '.join(AXES[:-1])} or {AXES[-1]}",
        )
    return [pilot_of_trial(trial, run) for trial in told]


def pilot_of_trial(trial: FrozenTrial, run: Mapping[str, Any]) -> PilotRun:
    """One trial as a pilot."""
    step, reward = rewards_of(trial)
    tuned = {SETTING_OF[k]: v for k, v in trial.params.items() if k in SETTING_OF}
    fixed = {name: value for name, value in run.items() if name not in OF_A_RUN}
    own = {name: run[name] for name in OF_A_RUN if name in run}
    return PilotRun(
        id=f"trial {trial.number}",
        path="optuna",
        **({"model": "model", "task": "task"} | own),
        hyperparameters=PartialSettings.model_validate(fixed | tuned),
        step=step,
        series={"reward": reward},
        logging_steps=max(1, int(np.median(np.diff(step)))) if step.size > 1 else 1,
    )


def rewards_of(trial: FrozenTrial) -> tuple[FloatArray, FloatArray]:
    """Optimizer steps from 1 on, and the finite rewards reported at them."""
    rows = sorted((s, v) for s, v in trial.intermediate_values.items() if s > 0 and np.isfinite(v))
    return np.array([s for s, _ in rows], dtype=float), np.array([v for _, v in rows], dtype=float)


def check_run(run: Mapping[str, Any]) -> None:
    """Refuse what is no setting of a run.

    Raises
    ------
    InputError
        A name or value is none that a run has.
    """
    try:
        PartialSettings.model_validate({k: v for k, v in run.items() if k not in OF_A_RUN})
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"the settings of the run are wrong: {first['msg']}",
            argument="run",
            key=".".join(str(part) for part in first["loc"]),
            advice=f"Known are {', '.join((*PartialSettings.model_fields, *OF_A_RUN))}",
        ) from error


def settings_in(names: Sequence[str]) -> list[str]:
    """Names of parameters that are settings which the model chooses."""
    return [name for name in names if SETTING_OF.get(name) in AXES]


def _check_one_objective(study: Study) -> None:
    """Refuse a study of several objectives, as Optuna's own samplers do: by a `ValueError`."""
    if len(study.directions) > 1:
        raise ValueError("AdvisorSampler maximises one reward, and this study has more objectives")


def _values(distribution: BaseDistribution) -> list[Any]:
    """Values among which one is chosen, as Optuna keeps them."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        if distribution.step is not None:
            grid = np.arange(low, high + distribution.step / 2, distribution.step)
            return [float(v) for v in _thinned(grid[grid <= high], RATES)]
        is_log = distribution.log or (low > 0 and high / low > 10)
        space = np.geomspace if is_log else np.linspace
        return [float(np.clip(v, low, high)) for v in space(low, high, RATES)]
    assert isinstance(distribution, IntDistribution)
    whole = np.arange(distribution.low, distribution.high + 1, distribution.step, dtype=float)
    return [int(v) for v in _thinned(whole, MOST_VALUES, is_log=distribution.log)]


def _thinned(values: FloatArray, most: int, *, is_log: bool = False) -> FloatArray:
    """At most so many of ascending values, evenly by place or by the log of place."""
    if values.size <= most:
        return values
    if is_log:
        place = np.geomspace(1, values.size, most) - 1
    else:
        place = np.linspace(0, values.size - 1, most)
    return np.asarray(values[np.unique(place.round().astype(int))])


def _moved(base: Settings, values: Mapping[str, Any]) -> Settings:
    return base.model_copy(update={SETTING_OF[name]: value for name, value in values.items()})
