"""Predict a configuration that nobody has run: the laws of the model over posterior draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor import model
from advisor.errors import InputError
from advisor.forecast.analogues import Corpus, corpus_for, log_odds
from advisor.forecast.new_configuration import CLEAR, NextRun, RunEffect
from advisor.forecast.target import Target, check_task, pilots_of
from advisor.model import Posterior
from advisor.model import equations as eq
from advisor.runs import Settings
from advisor.theory import FloatArray, IntArray, policy_steps, stiffness_limit

SEARCH_DRAWS = 4000
"""Draws used for a forecast: Monte Carlo error of a probability is at most 0.008."""

SUPPORT = 3.0  # Steps of a run over those of the longest pilot beyond which it is extrapolated


@dataclass(frozen=True)
class RunLaws:
    """What the laws give a run under each draw, before its own effects."""

    population: Mapping[str, FloatArray]  # (draws,)
    group: eq.GroupLevel
    log_rate_factor: FloatArray  # (draws,)
    log_loss: FloatArray  # (draws,)
    log_onset: FloatArray  # (draws,)
    is_oscillator: FloatArray  # (draws,)
    uncorrected: FloatArray  # (draws,)
    settings: Settings

    def taken(self, index: IntArray) -> RunLaws:
        """Return the laws of some of the draws."""
        arrays: dict[str, Any] = {
            name: values[index]
            for name, values in vars(self).items()
            if isinstance(values, np.ndarray)
        }
        return replace(
            self,
            population={name: values[index] for name, values in self.population.items()},
            group=eq.GroupLevel(*(values[index] for values in self.group)),
            **arrays,
        )

    def run(self, effect: FloatArray) -> eq.RunLevel:
        """Start, plateau and shape of a run with effects of shape (3, ..., draws)."""
        return eq.run_level(
            self.population,
            self.group,
            self.log_rate_factor,
            self.log_loss,
            (effect[0], effect[1], effect[2]),
            self.log_onset,
            np.asarray(self.settings.refresh_interval)[..., None],
            float(self.settings.importance_ratio),
        )

    def reward(self, effect: FloatArray, polynomial: FloatArray) -> FloatArray:
        """Curve of a run, as a share of floor to ceiling, shape (..., draws, times)."""
        exponent = self.population["rate.learning_rate"]
        clock = np.stack([exponent**power for power in range(4)], axis=1) @ polynomial.T
        return np.asarray(
            eq.expected_reward(
                clock,
                eq.RunLevel(*(np.asarray(value)[..., None] for value in self.run(effect))),
                self.settings.momentum,
                np.asarray(self.settings.mean_age)[..., None, None],
                self.uncorrected[:, None],
                self.is_oscillator[:, None],
            )
        )


def scored_steps(settings: Settings, steps: npt.ArrayLike) -> FloatArray:
    """Optimizer steps behind the policy that each logged row scores: that of the latest refresh.

    Stacked settings must share one refresh interval.
    """
    (interval,) = np.unique(settings.refresh_interval)
    return policy_steps(np.atleast_1d(steps), int(interval), lag=settings.lag)


class Forecaster:
    """Posterior predictive of any configuration for one target.

    The run's own effects are drawn once and reused, so that two configurations are compared under
    the same seed noise; they come from ``run_effect`` [default: fresh ones]. Settings may be
    stacked: arrays of shape (configurations,) in the place of learning rate, group size,
    mini-batches, epochs and prompts per step; results then have that dimension first. ``corpus``
    shows how pilots end beyond their last row [default: the shipped runs, without the pilots'
    repositories; none where all models are small].
    """

    def __init__(
        self,
        posterior: Posterior,
        target: Target,
        *,
        draws: int = SEARCH_DRAWS,
        seed: int = 0,
        run_effect: RunEffect | None = None,
        corpus: Corpus | None = None,
    ) -> None:
        self.posterior = posterior
        self.corpus = corpus
        self.target = target
        self.draws = draws
        self.seed = seed
        self._effect = effect = run_effect or RunEffect.fresh(seed)
        total = posterior.convergence.draws
        kept = np.unique(np.linspace(0, total - 1, min(draws, total)).astype(int))
        # The first half of the stream is that of RunEffect.fresh with the same seed.
        rng = np.random.default_rng(seed)
        _, of_new_model = rng.standard_normal((2, 3, kept.size))
        spread = posterior.meta.priors.log_stiffness_ratio.sd
        ratio = np.abs(rng.standard_normal(kept.size) * spread)
        index = np.arange(kept.size) if effect.draws is None else effect.draws
        self.indices = kept[index]
        self.size = int(self.indices.size)
        self._of_new_model = of_new_model[:, index]
        self.log_stiffness_ratio = ratio[index]
        self.stiffness_ratio = np.exp(ratio[index])
        self.run_effect = effect.values(posterior, self.indices)
        self._is_fresh = effect.is_fresh
        self._drawn: dict[str, FloatArray] = {}
        self.known_shifts: dict[tuple[str, int], tuple[FloatArray, FloatArray]] = {}
        self._uncorrected = np.asarray(eq.uncorrected(self.population, 1.0))
        self._last: tuple[Settings, dict[str, FloatArray], dict[str, FloatArray]] | None = None
        check_task(posterior, target.task)

    @classmethod
    def of_pilot(cls, posterior: Posterior, index: int, *, draws: int = SEARCH_DRAWS) -> Forecaster:
        """Forecaster of a pilot, with the effects that were fitted to it."""
        run = posterior.meta.runs[index]
        target = Target(run.task, run.model, run.parameters)
        return cls(posterior, target, draws=draws, run_effect=RunEffect.of_pilot(index))

    @cached_property
    def residual(self) -> FloatArray:
        """Student t residual of each draw in its standard form, shape (draws,)."""
        rng = np.random.default_rng((self.seed, 2))
        return rng.standard_t(eq.DEGREES, size=self.size)

    @cached_property
    def misfit(self) -> FloatArray:
        """Standard deviation of the slow residual, a share of the reward's range; (draws,)."""
        return np.asarray(np.exp(self.population["log_misfit"]))

    def with_run_effect(self, run_effect: RunEffect) -> Forecaster:
        """Return the same forecaster for another run: all else is drawn the same."""
        return self._again(self.posterior, run_effect)

    def with_longest(self, longest: float) -> Forecaster:
        """Return the same forecaster, as if the longest pilot had so many steps."""
        meta = self.posterior.meta.model_copy(update={"longest": longest})
        return self._again(replace(self.posterior, meta=meta), self._effect)

    def _again(
        self, posterior: Posterior, run_effect: RunEffect, target: Target | None = None
    ) -> Forecaster:
        how: dict[str, Any] = {"draws": self.draws, "seed": self.seed, "corpus": self.corpus}
        return Forecaster(posterior, target or self.target, run_effect=run_effect, **how)

    def draw(self, name: str) -> FloatArray:
        """Thinned draws of one parameter, shape (draws, ...)."""
        if name not in self._drawn:
            self._drawn[name] = self.posterior.flat(name)[self.indices]
        return self._drawn[name]

    @cached_property
    def _group(self) -> int | None:
        """Index of the pilots' group of this model and task."""
        pair, groups = (self.target.task, self.target.model), self.posterior.meta.groups
        return groups.index(pair) if pair in groups else None

    @cached_property
    def is_small(self) -> bool:
        """Whether the target is smaller than the language models of other projects."""
        return self.target.parameters < model.SMALL

    @property
    def is_piloted(self) -> bool:
        """Whether a pilot ran this model on this task."""
        return self._group is not None

    @cached_property
    def population(self) -> dict[str, FloatArray]:
        """Population parameters, each of shape (draws,)."""
        return {name: self.posterior.flat(name)[self.indices] for name in model.POPULATION}

    @cached_property
    def laws(self) -> dict[str, FloatArray]:
        """Coefficients of each law, shape (draws, terms)."""
        return {
            law: np.stack([self.population[f"{law}.{term}"] for term in terms], axis=1)
            for law, terms in model.LAWS.items()
        }

    @cached_property
    def group(self) -> eq.GroupLevel:
        """Start, cold plateau and log stiffness of the target at the reference, shape (draws,)."""
        meta, task = self.posterior.meta, self._task
        if self._group is not None:
            headroom = self.draw("group_offset.headroom")[:, self._group]
            stiffness = self.draw("group_offset.stiffness")[:, self._group]
            start = self.draw("start_logit")[:, self._group]
        else:
            headroom, stiffness, start_offset = self._of_new_model
            known = [i for i, of in enumerate(meta.task_of_group) if of == task]
            start = self.draw("start_logit")[:, known].mean(axis=1)
            # Log-odds by which a new model's start differs from those of piloted ones.
            start = start + 0.75 * start_offset
        if self.target.start_reward is not None:
            share = self.as_share(self.target.start_reward)
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
            headroom,
            stiffness,
            self._log_parameters,
        )

    @cached_property
    def _task(self) -> int:
        return self.posterior.meta.tasks.index(self.target.task)

    @cached_property
    def _log_parameters(self) -> float:
        return float(np.log(self.target.parameters / self.posterior.meta.reference.parameters))

    def _law(self, name: str, settings: Settings) -> FloatArray:
        """Value of a law, shape (..., draws), at one configuration or at stacked ones."""
        if self._last is None or self._last[0] is not settings:
            reference = self.posterior.meta.reference
            x = model.covariates_of(settings, reference, self._log_parameters)
            if self._has_own_rates:
                x = model.Covariates(*(np.asarray(one, dtype=float)[..., None] for one in x))
                x = x._replace(log_rate=x.log_rate + self._log_rate_multiple)
            self._last = settings, eq.designs(x), {}
        _, designs, known = self._last
        if name not in known:
            terms = "...dt,dt->...d" if self._has_own_rates else "...t,dt->...d"
            known[name] = np.einsum(terms, designs[name], self.laws[name])
        return known[name]

    @cached_property
    def _has_own_rates(self) -> bool:
        """Whether each draw has a rate, so a design, of its own: where no pilot ran the model."""
        return not self.is_small and self.target.model not in {
            r.model for r in self.posterior.meta.runs
        }

    @cached_property
    def _log_rate_multiple(self) -> FloatArray:
        """Log of the rate at which piloted models do what this one does at 1; shape (draws,)."""
        meta = self.posterior.meta
        rng = np.random.default_rng((self.seed, 4))
        return meta.priors.discrepancy.model_rate_spread * rng.standard_normal(self.size)

    def laws_of(self, settings: Settings) -> RunLaws:
        """What the laws give a run of a completed configuration, before its own effects."""
        return RunLaws(
            self.population,
            self.group,
            self._law("rate", settings),
            self._law("plateau_loss", settings),
            self.draw("log_onset")[:, self._task],
            self.draw("is_oscillator"),
            self.uncorrected_share(settings),
            settings,
        )

    @cached_property
    def next_run(self) -> NextRun | None:
        """What the pilots of the target predict of its next run; None for a run that has begun."""
        if not self._is_fresh:
            return None
        posterior = self.posterior
        corpus = self.corpus or corpus_for(posterior.meta.runs)
        if corpus is None or not self.is_piloted:
            return None
        places = [
            posterior.meta.runs.index(run)
            for run in pilots_of(posterior, self.target)
            if run.collapse_step is None and run.logged_rewards
        ]
        return NextRun(posterior, places, self.indices, corpus) if places else None

    def effect_of(self, settings: Settings) -> FloatArray:
        """The run's own effects, shape (3, ..., draws), as the pilots show them at its settings."""
        known = self.next_run
        return self.run_effect if known is None else known.effect(settings, self.run_effect)

    def run(self, settings: Settings) -> eq.RunLevel:
        """Start, plateau and shape of the run's curve, each of shape (draws,)."""
        return self.laws_of(settings).run(self.effect_of(settings))

    def law_stiffness(self, settings: Settings) -> FloatArray:
        """Stiffness per step before clipping limits it, (..., draws): stability turns on it."""
        rate = self._law("rate", settings)
        noise = np.exp(self.population["log_run_rate_spread"]) * self.effect_of(settings)[1]
        return np.asarray(np.exp(self.group.log_stiffness + rate + noise))

    def stiffness_limit(self, settings: Settings) -> FloatArray:
        """Largest stiffness that is stable under the refresh schedule, shape (..., draws)."""
        share = self.uncorrected_share(settings)
        intervals, place = np.unique(settings.refresh_interval, return_inverse=True)
        limits = [stiffness_limit(settings.momentum, k, share, settings.lag) for k in intervals]
        return np.stack(limits)[place]

    def uncorrected_share(self, settings: Settings) -> FloatArray:
        """Share s of staleness that no ratio corrects, shape (draws,)."""
        return self._uncorrected if settings.importance_ratio else np.ones(self.size)

    def reward(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """Expected reward after optimizer steps, shape (draws, times), in reward units.

        Without sampling noise, and given that the run stays stable.
        """
        return self.in_reward_units(self.scaled_reward(settings, steps))

    def in_reward_units(self, level: FloatArray) -> FloatArray:
        """Train reward that is this share of floor to ceiling."""
        meta = self.posterior.meta
        return np.asarray(meta.floor + (meta.ceiling - meta.floor) * level)

    def as_share(self, reward: Any) -> Any:
        """Undo :meth:`in_reward_units`."""
        return self.posterior.meta.as_share(reward)

    def scaled_reward(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """Return :meth:`reward` as a share of floor to ceiling, shape (draws, times).

        The last of the steps is the end of the run: the others lie on the way to it.
        """
        times = np.atleast_1d(np.asarray(steps, dtype=int))
        if self.next_run is not None:
            return self.next_run.path(settings, times.astype(float), self.curve)
        level = self._extrapolated(settings, self.curve(settings, times), times)
        if (piloted := self._nearest_piloted) is None:
            return level
        # What pilots show beyond the laws carries over to another model in log-odds.
        ends = piloted.scaled_reward(settings, times), piloted.curve(settings, times)
        beyond = np.subtract(*(log_odds(one, CLEAR) for one in ends))
        return np.asarray(eq.sigmoid(log_odds(level, CLEAR) + beyond))

    @cached_property
    def _nearest_piloted(self) -> Forecaster | None:
        """Forecaster of a piloted model and task, for one that no pilot ran; None of small ones."""
        if self.is_piloted or self.is_small or not self._is_fresh:
            return None
        own = self.target
        runs = sorted(
            (run for run in self.posterior.meta.runs if run.collapse_step is None),
            key=lambda run: (run.task != own.task, run.model != own.model, -run.steps),
        )
        for run in runs:
            beside = Target(run.task, run.model, run.parameters)
            found = self._again(self.posterior, self._effect, beside)
            if found.next_run is not None:
                return found
        return None

    def curve(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """What the laws alone predict for :meth:`scaled_reward`, however long a run is."""
        times = np.atleast_1d(np.asarray(steps, dtype=int))
        polynomial = model.clock_polynomial(model.clock_table(settings, int(times.max()))[times])
        return self.laws_of(settings).reward(self.effect_of(settings), polynomial)

    def _extrapolated(self, settings: Settings, level: FloatArray, times: IntArray) -> FloatArray:
        """Levels as runs came to them that were longer than their pilots support."""
        gain = self.posterior.meta.priors.extrapolation.gain
        if not gain or times.max() <= SUPPORT * self.posterior.meta.longest:
            return level
        beyond = self.beyond(settings, times)[..., None, :]
        start, share = self.group.start[:, None], np.clip(level, 0.0, 1.0)
        gained = np.clip((share - start) / (1 - start), 0.0, 1.0)
        return np.asarray(eq.shifted_share(share, gain * beyond * gained))

    def beyond(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """E-folds of runs beyond what pilots support in steps and show on the clock, the lesser.

        A long run at a low rate may have moved less than a short pilot at a high one.
        """
        times = np.asarray(steps, dtype=float)
        shown = self.posterior.meta.priors.extrapolation.shown
        further = self._speed(settings)[..., None] * times / (shown * self._usual_way)
        ratio = np.minimum(times / (SUPPORT * self.posterior.meta.longest), further)
        beyond = np.log(np.maximum(ratio, 1.0))
        # In full from as far beyond the support as that is: a curve must not bend where it ends.
        grown = np.minimum(beyond / np.log(SUPPORT), 1.0)
        return np.asarray(beyond * grown * (2 - grown))

    def carried_steps(self, settings: Settings, steps: int, other: Settings) -> int:
        """Steps at other settings after which a run is where it is after these."""
        clock = max(1, round(steps * float(self._speed(settings) / self._speed(other))))
        times = np.unique(np.geomspace(1, clock, 200).astype(int))
        stands = self.curve(settings.planned_over(steps), [steps]).mean()
        as_high = times[self.curve(other.planned_over(clock), times).mean(axis=0) >= stands]
        # Where they never come as high, as far on the clock.
        return int(as_high[0]) if as_high.size else clock

    def _speed(self, settings: Settings) -> FloatArray:
        """Stiffness per step against the reference, by the laws: median over draws."""
        return np.asarray(np.exp(np.median(self._law("rate", settings), axis=-1)))

    @cached_property
    def _usual_way(self) -> float:
        """Steps by stiffness of a pilot that lived: their median."""
        runs = self.posterior.meta.runs
        lived = [run for run in runs if run.collapse_step is None] or runs
        return float(np.median([self._speed(run.settings) * run.steps for run in lived]))

    def logged_level(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """Expected reward that rows at one-based steps log, scaled, shape (draws, rows).

        A row scores the policy of the latest refresh, so the curve climbs in stairs of K steps.
        """
        return self.scaled_reward(settings, scored_steps(settings, steps))

    @property
    def is_evaluated(self) -> bool:
        """Whether pilots of the target logged held-out rewards: then it is those that count."""
        return self._group is not None and self.posterior.meta.evaluated[self._group]

    @property
    def outcome_bounds(self) -> tuple[float, float]:
        """Floor and ceiling of :meth:`outcome`, in its units."""
        meta = self.posterior.meta
        if self.is_evaluated:
            return meta.eval_floor, meta.eval_ceiling
        return meta.floor, meta.ceiling

    @property
    def outcome_range(self) -> float:
        """Ceiling of :meth:`outcome` less its floor."""
        return self.outcome_bounds[1] - self.outcome_bounds[0]

    def outcome(self, settings: Settings, steps: npt.ArrayLike) -> FloatArray:
        """Expected held-out reward where pilots were evaluated, else train reward."""
        return self.outcome_of(self.scaled_reward(settings, steps))

    def outcome_of(self, level: FloatArray) -> FloatArray:
        """Outcome that belongs to a scaled train reward of shape (draws, times), in its units."""
        if self.is_evaluated:
            start = eq.sigmoid(self.draw("eval_start_logit")[:, self._group])[:, None]
            gain = np.exp(self.draw("log_eval_gain")[:, self._group])[:, None]
            level = eq.held_out(level, self.group.start[:, None], start, gain)
        return np.asarray(self.outcome_bounds[0] + self.outcome_range * level)

    def hazard(self, settings: Settings) -> FloatArray:
        """Collapse rate per optimizer step at peak learning rate, shape (draws,)."""
        return np.asarray(eq.hazard(self._law("hazard", settings)))

    def survival(self, settings: Settings, steps: int) -> FloatArray:
        """Probability of no collapse within ``steps``, given each draw, shape (draws,)."""
        exposure = float(np.sum(model.planned_factors(settings, steps) ** 2))
        return np.asarray(np.exp(-self.hazard(settings) * exposure))
