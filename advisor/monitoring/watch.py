"""Forecast a run while it goes on, from the posterior of its pilots."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.forecast.begun_run import AFTER_COLLAPSE_SPREAD, JEFFREYS
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.observed_run import Seen, see
from advisor.forecast.rest_of_run import Ahead, look_ahead, surprise
from advisor.forecast.reweighting import Weighed, weigh
from advisor.forecast.summaries import band, held_out, interval, latest_mean, lost_rows
from advisor.forecast.watched_run import RunForecaster
from advisor.model.compat import smoothed_weights
from advisor.model.equations import sigmoid
from advisor.model.posterior import Posterior
from advisor.monitoring.naming import differences, named
from advisor.monitoring.update import REFIT_ABOVE, Update
from advisor.run.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray

DRAWS = 1000
"""Population draws that are weighted at each step."""

RESAMPLED = 1000
"""Equally weighted draws that forecasts are made of."""

FEWER = 3
"""Of the draws so many times fewer tell whether the latest rows are a surprise."""

LATEST_ROWS = 5
"""Rows that tell where a run is, as for a collapse, and that may surprise."""

LEAST_BEFORE = 5
"""Rows before those, below which nothing is called a surprise."""

LITTLE = 0.01
"""Share of the reward range below which a gain is not worth its steps: what is within it counts as
equal in `advice.answer` too."""

STAYS_FALLEN = 0.94
"""Probability that a fallen run ends fallen: of 28 tiny-transformer runs that had collapsed by step
50 of 200 none came back, of 31 in case_studies/watch three did; half a run is added to either."""

GENTLER = (0.7, 0.5, 0.3, 0.2, 0.1, 0.05)
"""Shares of the learning rate that are tried where the present one is too high."""


class _Base(NamedTuple):
    """Draws, and what of the run they have seen."""

    forecaster: Forecaster
    counted: FloatArray | float


class Watch:
    """Forecasts of one run from its growing log.

    Parameters
    ----------
    posterior : Posterior
        Of pilots of the same task and model.
    target_reward : float, optional
        Train reward to be reached, in reward units.
    planned_steps : int, optional
        Optimizer steps of the whole run; by default as logged.
    level : float
        Probability of staying stable that is wanted.
    draws : int
        Population draws that are weighted.
    seed : int
        Of luck and wander.
    fitted : PilotRun, optional
        What the posterior has already seen of this run: only later rows count.
    """

    def __init__(
        self,
        posterior: Posterior,
        *,
        target_reward: float | None = None,
        planned_steps: int | None = None,
        level: float = 0.9,
        draws: int = DRAWS,
        seed: int = 0,
        fitted: PilotRun | None = None,
    ) -> None:
        if planned_steps is not None and planned_steps < 1:
            raise InputError(
                f"a run of {planned_steps} steps",
                argument="planned_steps",
                advice="Give at least 1",
            )
        if not 0 < level < 1:
            raise InputError(
                f"a level of {level:g}", argument="level", advice="Give one between 0 and 1"
            )
        meta = posterior.meta
        if target_reward is not None and not meta.floor < target_reward <= meta.ceiling:
            raise InputError(
                f"a reward of {target_reward:g} lies outside ({meta.floor:g}, {meta.ceiling:g}]",
                argument="target_reward",
                advice="Give a reward on the scale of the pilots",
            )
        self.posterior = posterior
        self.target_reward = target_reward
        self.planned_steps = planned_steps
        self.level = level
        self.draws = draws
        self.seed = seed
        self.fitted = fitted
        smoothed_weights(
            np.linspace(0.0, 1.0, 100)
        )  # ArviZ takes a second to import: not at the first step
        self._bases: dict[tuple[str, str], tuple[_Base, _Base]] = {}

    def update(self, run: PilotRun) -> Update:
        """Weigh the posterior by what a run has logged and forecast its rest.

        Parameters
        ----------
        run : PilotRun
            All that is logged so far.

        Returns
        -------
        update : Update

        Raises
        ------
        InputError
            The posterior holds no such task and model, the rewards are on another scale, or a
            setting or the length of the run is unknown.
        """
        started = time.perf_counter()
        run, notes = named(run, self.posterior.meta)
        planned = self.planned_steps or run.hyperparameters.planned_steps
        if planned is None:
            raise InputError(
                "the log does not tell how many steps are planned",
                path=run.path,
                argument="planned_steps",
                advice="Give `planned_steps`",
            )
        meta = self.posterior.meta
        scale = meta.ceiling - meta.floor
        seen = see(run, meta, planned)
        notes += differences(run, seen, meta, is_fitted=self.fitted is not None)
        base, fewer = self._base(run)
        fall = seen.fall
        weighed = self._weigh(base, seen, has_fallen=fall.unstable)
        draw, luck = weighed.resampled(RESAMPLED)
        forecaster = RunForecaster(base.forecaster, luck, draw)
        ahead = look_ahead(weighed, seen, draw, luck, seed=self.seed)
        latest = latest_mean(run, LATEST_ROWS)
        gentler = None
        if fall.unstable:
            ahead = self._fallen(ahead, (latest - meta.floor) / scale, seen)
            p_stable = np.full(draw.size, 1 - STAYS_FALLEN)
        else:
            end = ahead.curve[:, -1]
            p_stable = forecaster.p_stable(seen.settings, seen.exposure_left, end)
            if p_stable.mean() < self.level:
                gentler = self._gentler(forecaster, seen, ahead.curve[:, 0])
        reward = meta.floor + scale * ahead.path
        start = weighed.laws.taken(draw).group.start
        gained, gain = ahead.curve[:, 0] - start, ahead.curve[:, -1] - start
        return Update(
            run=run.id,
            task=str(run.task),
            model=str(run.model),
            step=seen.last,
            planned_steps=planned,
            reward=latest,
            start=float(meta.floor + scale * start.mean()),
            band=band(ahead.step, reward),
            final=interval(reward[:, -1]),
            final_eval=None if fall.unstable else held_out(forecaster, ahead.curve[:, -1]),
            p_reach=self._p_reach(ahead, seen, forecaster, reward),
            p_unstable=float(1 - p_stable.mean()),
            p_little_left=float(np.mean(gain - gained < LITTLE)),
            share_made=float(np.clip(gained.mean() / max(gain.mean(), 1e-9), 0.0, 1.0)),
            surprise=None if fall.unstable else self._surprise(fewer, run, planned),
            lost_rows=lost_rows(run),
            fallen_since=fall.onset_step,
            gentler_rate=gentler,
            pareto_k=weighed.pareto_k,
            refit_due=not weighed.pareto_k <= REFIT_ABOVE,
            seconds=time.perf_counter() - started,
            settings=seen.settings,
            notes=tuple(notes),
        )

    def _weigh(self, base: _Base, seen: Seen, *, has_fallen: bool) -> Weighed:
        return weigh(
            base.forecaster, seen, has_fallen=has_fallen, seed=self.seed, counted=base.counted
        )

    def _base(self, run: PilotRun) -> tuple[_Base, _Base]:
        """Draws of the run's task and model: those that are weighted, and fewer for a surprise."""
        key = str(run.task), str(run.model)
        if key not in self._bases:
            target = Target(*key, float(run.parameters or 0.0))
            many, few = (
                self._counted(Forecaster(self.posterior, target, draws=draws, seed=self.seed))
                for draws in (self.draws, max(1, self.draws // FEWER))
            )
            self._bases[key] = many, few
        return self._bases[key]

    def _counted(self, forecaster: Forecaster) -> _Base:
        """Weigh the rows that the posterior was fitted to, which must not count twice."""
        if self.fitted is None:
            return _Base(forecaster, 0.0)
        run, _ = named(self.fitted, self.posterior.meta)
        seen = see(run, self.posterior.meta, int(run.step[-1]))
        weighed = weigh(forecaster, seen, has_fallen=seen.fall.unstable, seed=self.seed)
        return _Base(forecaster, weighed.log_marginal)

    def _surprise(self, base: _Base, run: PilotRun, planned: int) -> float | None:
        """Probability of latest rows as low as they are, by the rows before."""
        meta = self.posterior.meta
        rows = np.flatnonzero(np.isfinite(run.reward))
        if rows.size < LEAST_BEFORE + LATEST_ROWS:
            return None
        latest = rows[-LATEST_ROWS:]
        seen = see(run.before(int(latest[0])), meta, planned)
        weighed = self._weigh(base, seen, has_fallen=False)
        mean = (run.reward[latest].mean() - meta.floor) / (meta.ceiling - meta.floor)
        return surprise(weighed, seen, run.step[latest], float(mean))

    def _fallen(self, ahead: Ahead, level: float, seen: Seen) -> Ahead:
        """Paths of a run that has collapsed: where it stands, with a spread."""
        rng = np.random.default_rng(self.seed)
        trials = LATEST_ROWS * seen.settings.prompts_per_step
        trials *= seen.settings.group_size
        share = (np.clip(level, 0, 1) * trials + JEFFREYS) / (trials + 2 * JEFFREYS)
        spread = AFTER_COLLAPSE_SPREAD * rng.standard_normal(ahead.path.shape[0])
        stands = sigmoid(np.log(share / (1 - share)) + spread)[:, None]
        return Ahead(ahead.step, ahead.curve, np.broadcast_to(stands, ahead.path.shape))

    def _gentler(self, forecaster: RunForecaster, seen: Seen, level: FloatArray) -> float | None:
        rate = seen.settings.learning_rate
        for share in GENTLER:
            settings = seen.settings.model_copy(update={"learning_rate": share * rate})
            if forecaster.p_stable(settings, seen.exposure_left, level).mean() >= self.level:
                return share * rate
        return None

    def _p_reach(
        self, ahead: Ahead, seen: Seen, forecaster: RunForecaster, reward: FloatArray
    ) -> float | None:
        """Probability of reaching the target before the run ends or collapses."""
        if self.target_reward is None:
            return None
        reached = reward >= self.target_reward
        first = ahead.step[reached.argmax(axis=1)]
        share = (first - seen.last) / max(seen.end - seen.last, 1)
        rate = forecaster.collapse_rate(seen.settings)
        alive = np.exp(-rate * seen.exposure_left * share)
        return float(np.mean(reached.any(axis=1) * alive))
