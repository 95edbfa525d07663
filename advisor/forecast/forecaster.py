"""Predict a configuration that nobody has run: the laws of the model over posterior draws."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError
from advisor.model import equations as eq
from advisor.model.cohort import Covariates, clock_table, planned_factors
from advisor.model.fast.tables import WANDER_SHARE
from advisor.model.posterior import Posterior
from advisor.run.settings import Settings
from advisor.theory.arrays import FloatArray

NEW_START_SPREAD = 0.75
"""Log-odds spread of a new model's start around that of piloted models on the task."""

PEAK_POINTS = 41
"""Steps at which a run's wander is simulated for its peak; it is correlated over half the run."""

SEARCH_DRAWS = 4000
"""Draws used for a forecast: Monte Carlo error of a probability is at most .008."""


@dataclass(frozen=True)
class Target:
    """What the full run will train.

    Attributes
    ----------
    task, model : str
        A pair that was piloted, or a piloted task with a new model.
    parameters : float
        N of the model.
    start_reward : float, optional
        Mean reward before training, in reward units; needed least when the pair was piloted.
    """

    task: str
    model: str
    parameters: float
    start_reward: float | None = None


class Forecaster:
    """Posterior predictive of any configuration for one target.

    Run-to-run (seed) noise is drawn once and reused, so that two configurations are compared under
    the same luck.

    Parameters
    ----------
    posterior : Posterior
    target : Target
    draws : int
        Thinned evenly out of the posterior.
    seed : int
        Of the seed noise and of a new model's own effects.
    """

    def __init__(
        self, posterior: Posterior, target: Target, *, draws: int = SEARCH_DRAWS, seed: int = 0
    ) -> None:
        self.posterior = posterior
        self.target = target
        total = posterior.convergence.draws
        self._keep = np.unique(np.linspace(0, total - 1, min(draws, total)).astype(int))
        rng = np.random.default_rng(seed)
        size = self._keep.size
        self._run_noise = rng.standard_normal((len(eq.RUN_OFFSETS), size))
        self._new_model = rng.standard_normal((3, size))
        self.log_stiffness_ratio = np.abs(
            rng.standard_normal(size) * posterior.meta.priors.log_stiffness_ratio.sd
        )
        if target.task not in posterior.meta.tasks:
            raise InputError(
                f"no pilot trained task '{target.task}'",
                argument="task",
                advice=f"Choose one of {', '.join(posterior.meta.tasks)}, or pilot the task",
            )

    def with_other_luck(self, seed: int) -> Forecaster:
        """Return the same forecaster for a run of another seed: all but the run's own luck."""
        other = copy(self)
        rng = np.random.default_rng([seed, len(eq.RUN_OFFSETS)])
        other._run_noise = rng.standard_normal(self._run_noise.shape)
        return other

    def draw(self, name: str) -> FloatArray:
        """Thinned draws of one parameter, shape (draws, ...)."""
        return np.asarray(self.posterior.flat(name)[self._keep])

    @property
    def is_piloted(self) -> bool:
        """Whether a pilot ran this model on this task."""
        return (self.target.task, self.target.model) in self.posterior.meta.groups

    @cached_property
    def population(self) -> dict[str, FloatArray]:
        """Population parameters, each of shape (draws,)."""
        return {name: self.draw(name) for name in eq.population_names()}

    @cached_property
    def laws(self) -> dict[str, FloatArray]:
        """Coefficients of each law, shape (draws, terms)."""
        return {
            law: np.stack([self.population[f"{law}.{term}"] for term in terms], axis=1)
            for law, terms in eq.LAWS.items()
        }

    @cached_property
    def group(self) -> eq.GroupLevel:
        """Start, cold plateau and log stiffness of the target at the reference, shape (draws,)."""
        meta, task = self.posterior.meta, self._task
        if self.is_piloted:
            index = meta.groups.index((self.target.task, self.target.model))
            offsets = [
                self.draw(f"group_offset.{name}")[:, index] for name in ("headroom", "stiffness")
            ]
            start = self.draw("start_logit")[:, index]
        else:
            offsets = [self._new_model[0], self._new_model[1]]
            known = [i for i, of in enumerate(meta.task_of_group) if of == task]
            start = self.draw("start_logit")[:, known].mean(axis=1)
            start = start + NEW_START_SPREAD * self._new_model[2]
        if self.target.start_reward is not None:
            share = (self.target.start_reward - meta.floor) / (meta.ceiling - meta.floor)
            if not 0 < share < 1:
                raise InputError(
                    f"start reward {self.target.start_reward:g} lies outside "
                    f"({meta.floor:g}, {meta.ceiling:g})",
                    argument="start_reward",
                    advice="Give the mean reward of the untrained policy",
                )
            start = np.full_like(start, np.log(share / (1 - share)))
        return eq.group_level(
            self.population,
            self.draw("headroom_logit")[:, task],
            self.draw("log_slope")[:, task],
            start,
            offsets[0],
            offsets[1],
            self._log_parameters,
        )

    @property
    def _task(self) -> int:
        return self.posterior.meta.tasks.index(self.target.task)

    @property
    def _log_parameters(self) -> float:
        return float(np.log(self.target.parameters / self.posterior.meta.reference.parameters))

    def covariates(self, settings: Settings) -> Covariates:
        """What the laws see of a configuration."""
        reference = self.posterior.meta.reference
        known = _known(settings)
        return Covariates(
            np.log(known["learning_rate"] / reference.learning_rate),
            np.log(known["group_size"] / reference.group_size),
            np.log(known["prompts_per_step"] / reference.prompts_per_step),
            self._log_parameters,
            np.log(known["minibatches_per_refresh"]),
            np.log(known["epochs_per_refresh"]),
        )

    def run(self, settings: Settings) -> eq.RunLevel:
        """Start, plateau and stiffness per step of a run with its own seed, shape (draws,)."""
        x = self.covariates(settings)
        return eq.run_level(
            self.population,
            self.group,
            self.laws["rate"] @ eq.rate_design(x),
            self.laws["depression"] @ eq.depression_design(x),
            (self._run_noise[0], self._run_noise[1], self._run_noise[2]),
            self.draw("log_onset")[:, self._task],
            float(settings.refresh_interval),
            float(settings.importance_ratio),
        )

    def law_stiffness(self, settings: Settings) -> FloatArray:
        """Stiffness per step before clipping limits it, shape (draws,): stability turns on it."""
        rate = self.laws["rate"] @ eq.rate_design(self.covariates(settings))
        noise = np.exp(self.population["log_run_rate_spread"]) * self._run_noise[1]
        return np.asarray(np.exp(self.group.log_stiffness + rate + noise))

    def uncorrected_share(self, settings: Settings) -> FloatArray:
        """Share s of staleness that no ratio corrects, shape (draws,)."""
        share = eq.uncorrected(self.population, float(settings.importance_ratio))
        return np.broadcast_to(np.asarray(share, dtype=float), self._keep.shape)

    def reward(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """Expected reward of the policy after so many optimizer steps.

        Parameters
        ----------
        settings : Settings
            Completed; its ``planned_steps`` shape a decaying schedule.
        steps : array_like of shape (times,)
            Optimizer steps, whole.

        Returns
        -------
        reward : ndarray of shape (draws, times)
            In reward units, without sampling noise and given that the run stays stable.
        """
        meta = self.posterior.meta
        scaled = self.scaled_reward(settings, steps)
        return np.asarray(meta.floor + (meta.ceiling - meta.floor) * scaled)

    def scaled_reward(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """Return :meth:`reward` as a share of floor to ceiling, shape (draws, times)."""
        times = np.atleast_1d(np.asarray(steps, dtype=int))
        run = self.run(settings)
        polynomial = eq.clock_polynomial(clock_table(settings, int(times.max()))[times])
        exponent = self.population["rate.learning_rate"]
        clock = np.stack([exponent**power for power in range(4)], axis=1) @ polynomial.T
        scaled = eq.expected_reward(
            clock,
            eq.RunLevel(*(value[:, None] for value in run)),
            settings.momentum,
            settings.mean_age,
            self.uncorrected_share(settings)[:, None],
            self.draw("is_oscillator")[:, None],
        )
        return np.asarray(scaled)

    @property
    def is_evaluated(self) -> bool:
        """Whether pilots of the target logged held-out rewards: then it is those that count."""
        if not self.is_piloted:
            return False
        group = self.posterior.meta.groups.index((self.target.task, self.target.model))
        return self.posterior.meta.evaluated[group]

    @property
    def outcome_bounds(self) -> tuple[float, float]:
        """Floor and ceiling of :meth:`outcome`, in its units."""
        meta = self.posterior.meta
        if self.is_evaluated:
            return meta.eval_floor, meta.eval_ceiling
        return meta.floor, meta.ceiling

    def outcome(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """Expected held-out reward where the pilots were evaluated, else train reward.

        Parameters
        ----------
        settings : Settings
        steps : array_like of shape (times,)

        Returns
        -------
        reward : ndarray of shape (draws, times)
            In units of the held-out reward, or of the train reward: as for :meth:`reward`.
        """
        if not self.is_evaluated:
            return self.reward(settings, steps)
        meta = self.posterior.meta
        group = meta.groups.index((self.target.task, self.target.model))
        start = eq.sigmoid(self.draw("eval_start_logit")[:, group])[:, None]
        gain = np.exp(self.draw("log_eval_gain")[:, group])[:, None]
        level = eq.held_out(
            self.scaled_reward(settings, steps), self.group.start[:, None], start, gain
        )
        return np.asarray(meta.eval_floor + (meta.eval_ceiling - meta.eval_floor) * level)

    def peak(self, settings: Settings, steps: int) -> FloatArray:
        """Highest level on the way: the outcome's curve with the slow wander of a run round it.

        Parameters
        ----------
        settings : Settings
        steps : int
            Planned optimizer steps.

        Returns
        -------
        reward : ndarray of shape (draws,)
            Never below the curve's own end; without the noise of single batches.
        """
        times = np.unique(np.linspace(0, steps, PEAK_POINTS).astype(int))
        curve = self.outcome(settings, times)
        floor, ceiling = self.outcome_bounds
        persistence = np.exp(-np.diff(times) / (WANDER_SHARE * max(steps, 1)))
        fresh = np.random.default_rng(0).standard_normal(curve.shape)
        wander = fresh.copy()
        for at, kept in enumerate(persistence, start=1):
            wander[:, at] = kept * wander[:, at - 1] + np.sqrt(1 - kept**2) * fresh[:, at]
        misfit = np.exp(self.population["log_misfit"])[:, None] * (ceiling - floor)
        swept = np.clip(curve + misfit * wander, floor, ceiling).max(axis=1)
        return np.asarray(np.maximum(swept, curve[:, -1]))

    def survival(self, settings: Settings, steps: int) -> FloatArray:
        """Probability of no collapse within ``steps``, given each draw, shape (draws,)."""
        law = self.laws["hazard"] @ eq.hazard_design(self.covariates(settings))
        exposure = float(np.sum(planned_factors(settings, steps) ** 2))
        return np.asarray(np.exp(-eq.hazard(law) * exposure))


def _known(settings: Settings) -> dict[str, float]:
    names = (
        "learning_rate",
        "group_size",
        "prompts_per_step",
        "minibatches_per_refresh",
        "epochs_per_refresh",
    )
    values = {name: getattr(settings, name) for name in names}
    for name, value in values.items():
        if value is None:
            raise InputError(
                "the configuration to forecast is incomplete", key=name, advice=f"Give its {name}"
            )
    return values
