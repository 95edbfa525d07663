"""An Optuna pruner that stops a trial which has collapsed, or will hardly beat the best."""

from __future__ import annotations

import numpy as np
from optuna import Study
from optuna.pruners import BasePruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from advisor.diagnosis.fall import find_final_fall
from advisor.errors import InputError
from advisor.forecast.begun import end_of_begun_run, end_of_run_alone
from advisor.forecast.corpus_file import corpus_beside
from advisor.optuna.trials import pilot_of_trial, rewards_of

CHANCE = 0.1
LEAST_REWARDS = 10
"""Rewards below which nothing is pruned."""

LEAST_SHARE = 0.25
"""Share of a trial before which no forecast ends it: many runs start slowly."""


class AdvisorPruner(BasePruner):
    """Prune trials that fell for good, or whose forecast end hardly reaches the best trial's value.

    Trials report the mean train reward by optimizer step, and their value is that reward at the end
    of the run. The forecast is that of a run of which a part is seen: what became of public runs
    that stood alike, and what a curve and a wandering level fitted to its own rows say.

    Parameters
    ----------
    steps : int
        Optimizer steps at which a trial ends.
    chance : float
        Probability of reaching the best value below which a trial is pruned, in (0, 1).
    least_rewards : int
        Rewards that a trial may report before it is looked at; by its forecast it is not ended
        before a quarter of its steps.
    bounds : (float, float)
        Floor and ceiling of the reward.
    parameters : float, optional
        Of the model; small ones are judged by their own rows alone.

    Raises
    ------
    InputError
        The chance is none, or there is no run to end.
    """

    def __init__(
        self,
        *,
        steps: int,
        chance: float = CHANCE,
        least_rewards: int = LEAST_REWARDS,
        bounds: tuple[float, float] = (0.0, 1.0),
        parameters: float | None = None,
    ) -> None:
        if not 0 < chance < 1:
            raise InputError(f"{chance:g} is no chance", argument="chance", advice="Give 0.1, say")
        if steps < 1 or not bounds[0] < bounds[1]:
            raise InputError(
                f"runs of {steps} steps with rewards from {bounds[0]:g} to {bounds[1]:g}",
                argument="steps, bounds",
                advice="Give the steps of a trial, and floor and ceiling of its reward",
            )
        self.steps, self.chance, self.bounds = steps, chance, bounds
        self.least_rewards = max(3, least_rewards)
        self.parameters = parameters

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether a trial is to end here."""
        step, reward = rewards_of(trial)
        if reward.size < self.least_rewards or study.direction != StudyDirection.MAXIMIZE:
            return False
        if find_final_fall(step, reward, self.bounds[0])[0].unstable:
            return True
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        values = [one.value for one in done if one.value is not None and np.isfinite(one.value)]
        if not values or not LEAST_SHARE * self.steps <= step[-1] < self.steps:
            return False
        run = pilot_of_trial(trial, {"parameters": self.parameters})
        corpus = corpus_beside([run])
        last = np.array([0.9 * self.steps + 1, float(self.steps)])
        if corpus is None:
            draws = end_of_run_alone(run, last, self.bounds)
        else:
            draws = end_of_begun_run(run, last, corpus=corpus, bounds=self.bounds).draws
        return bool(np.mean(np.clip(draws, *self.bounds) >= max(values)) < self.chance)
