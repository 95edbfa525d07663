"""An Optuna sampler that fits the trials so far and asks what the next one should be."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
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
from optuna.trial import FrozenTrial

from advisor.advice.information import utilities
from advisor.errors import InputError
from advisor.forecast.fit import fitted_or_none
from advisor.forecast.forecaster import Forecaster
from advisor.forecast.stability import stability
from advisor.forecast.target import largest_target, pilots_of
from advisor.model.posterior import Posterior
from advisor.model.priors import Priors
from advisor.model.sampling import Sampling
from advisor.optuna.trials import SETTING_OF, check_run, pilots_of_study, settings_in
from advisor.run.settings import Settings
from advisor.theory.arrays import FloatArray

STARTUP = 3
"""Trials with rewards before the first fit."""

LEVEL = 0.5
"""P(stable) that a trial must have, where any has it: a trial that dies teaches too."""

DRAWS = 400
RATES = 25
MOST_VALUES = 8
"""Learning rates, and values of any other setting, among which a trial is chosen."""


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
            target = largest_target(posterior)
            base = pilots_of(posterior, target)[-1].settings
            offered = [_moved(base, dict(zip(names, place, strict=True))) for place in places]
            forecaster = Forecaster(posterior, target, draws=DRAWS)
            utility = utilities(forecaster, offered, [self.steps] * len(offered))
            draw = int(self._rng.integers(utility.shape[1]))
            ranked = np.argsort(-utility[:, draw])
            for at in ranked:
                planned = offered[at].planned_over(self.steps)
                if stability(forecaster, planned, self.steps).least >= LEVEL:
                    return dict(zip(names, places[at], strict=True))
            return dict(zip(names, places[int(ranked[0])], strict=True))

    def _posterior(self, study: Study) -> Posterior | None:
        """Posterior of the trials that ended; None while they are few or tell nothing."""
        runs = pilots_of_study(study, self.run)
        if len(runs) < STARTUP:
            return None
        known = tuple(run.id for run in runs)
        if self._fitted is None or self._fitted[0] != known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found, why = fitted_or_none(runs, self.priors, self.sampling)
            if found is None:
                other = type(self._independent).__name__
                warnings.warn(f"AdvisorSampler leaves this trial to {other}: {why}", stacklevel=2)
            self._fitted = known, found
        return self._fitted[1]


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
