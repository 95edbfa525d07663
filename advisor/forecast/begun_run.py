"""A run that has begun: the posterior given its rows, its way from now on, and its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from advisor.forecast.analogues import FINAL_SHARE, corpus_for
from advisor.forecast.elsewhere import moved_by, p_dies, signals_of
from advisor.forecast.forecaster import Forecaster
from advisor.forecast.new_configuration import RunEffect
from advisor.forecast.predictive import (
    RestOfRun,
    evaluation,
    final_of_rest,
    final_steps,
    level_of_fallen_run,
    moved_to,
    rest_of_run,
)
from advisor.forecast.run_in_progress import end_of_begun_run, rows_of_pilots
from advisor.forecast.run_likelihood import ObservedRun, ReweightedDraws
from advisor.forecast.survival import rest_stable, stability
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray

DRAWS = 1000  # Draws that are kept of those that were weighed
LATEST_ROWS = 5  # Rows that tell where a run is, as for a collapse, and that may surprise


@dataclass(frozen=True)
class BegunRun:
    """Forecast of the rest of a run, given what it has logged."""

    run: PilotRun
    observed: ObservedRun
    population: Forecaster  # as before the run
    forecaster: Forecaster  # with the run's own effects
    rest: RestOfRun
    ends: FloatArray  # (draws,), means over the last tenth, in reward units

    @classmethod
    def of(
        cls, run: PilotRun, observed: ObservedRun, weighed: ReweightedDraws, population: Forecaster
    ) -> BegunRun:
        """Forecast from the population's draws, weighed by the rows of the run."""
        draws, seed = weighed.resampled(DRAWS), population.seed
        forecaster = population.with_run_effect(RunEffect.given(draws.effect, draws.draw))
        rest = rest_of_run(draws, observed, seed=seed)
        if observed.fall.unstable:
            latest = float(run.reward[np.isfinite(run.reward)][-LATEST_ROWS:].mean())
            stands, rng = forecaster.as_share(latest), np.random.default_rng(seed)
            level = level_of_fallen_run(stands, LATEST_ROWS, observed.settings, forecaster, rng)
            rest = replace(rest, path=np.broadcast_to(level[:, None], rest.path.shape))
        rows = (run.step > (1 - FINAL_SHARE) * observed.end) & np.isfinite(run.reward)
        logged = forecaster.as_share(run.reward[rows])
        share = final_of_rest(rest, observed, forecaster, logged)
        ends = forecaster.in_reward_units(share)
        meta, corpus = forecaster.posterior.meta, corpus_for([run])
        # For a language model, curves are pooled with the ends of similar runs.
        if not (corpus is None or logged.size or observed.fall.unstable):
            bounds = meta.floor, meta.ceiling
            ends = end_of_begun_run(
                run,
                final_steps(observed.end).astype(float),
                corpus=corpus,
                bounds=bounds,
                curve=ends,
                siblings=rows_of_pilots(forecaster.posterior, run, bounds),
                priors=meta.priors,
            ).draws
            rest = moved_to(rest, observed, share, forecaster.as_share(ends))
        return cls(
            run, observed, population, forecaster, rest, np.clip(ends, meta.floor, meta.ceiling)
        )

    @property
    def path(self) -> FloatArray:
        """Reward from now to the end, shape (draws, steps of ``rest``), in its units."""
        meta = self.forecaster.posterior.meta
        paths = self.forecaster.in_reward_units(self.rest.path)
        return np.clip(paths, meta.floor, meta.ceiling)

    @property
    def held_out(self) -> FloatArray | None:
        """Held-out reward at the end, shape (draws,), where pilots of the model were evaluated."""
        if not self.forecaster.is_evaluated or self.observed.fall.unstable:
            return None
        return evaluation(
            self.forecaster, self.forecaster.outcome_of(self.rest.curve[:, -1:])[:, 0]
        )

    @property
    def p_unstable(self) -> float:
        """Probability of being unstable at the end."""
        if self.observed.fall.unstable:
            return self.forecaster.posterior.meta.priors.discrepancy.unstable_fallen
        return self.p_unstable_at(self.observed.settings, self.rest.curve[:, -1])

    def p_unstable_at(self, settings: Settings, level: FloatArray) -> float:
        """The same with other settings for the rest, of a run that lives and ends at a level."""
        if self.moved is None:
            exposure = self.observed.exposure_left
            return float(1 - rest_stable(self.forecaster, settings, exposure, level).mean())
        law = self.forecaster.posterior.meta.priors.elsewhere
        return p_dies(self.p_unstable_before(settings), law, self.moved)

    def p_unstable_before(self, settings: Settings) -> float:
        """What the pilots and runs elsewhere predict of a whole run before it begins."""
        end = self.observed.end
        return 1 - stability(self.population, settings.or_planned_over(end), end).probability

    @cached_property
    def moved(self) -> dict[str, float] | None:
        """Log-odds of death by signal; None of small models and few rewards: the pilots decide."""
        known = np.isfinite(self.run.reward).sum()
        if self.population.is_small or known < PilotRun.LEAST_REWARDS:
            return None
        meta = self.forecaster.posterior.meta
        run = self.run.with_updates(reward_floor=meta.floor)
        return moved_by(meta.priors.elsewhere, signals_of(run, self.observed.end))
