"""Forecast a run while it goes on, from the posterior of its pilots."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from advisor import forecast
from advisor.errors import InputError
from advisor.forecast import LATEST_ROWS, BegunRun, Forecaster, Interval, ObservedRun, RestOfRun
from advisor.model import TRUSTED_K, Meta, Posterior, smoothed_weights
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray

DRAWS = 1000  # Population draws that are weighted at each step


class Update(BaseModel, frozen=True):
    """Forecast of a run from its log so far, in reward units; probabilities given that log."""

    run: str
    task: str
    model: str
    step: int  # optimizer steps done
    planned_steps: int
    reward: float  # mean of the latest rows
    start: float  # expected reward before training
    band: forecast.Band  # from now to the end
    # Mean over the last tenth, as a backtest judges it, given that the run stays stable; of a
    # language model pooled with what became of runs like it (`forecast.run_in_progress`).
    final: Interval
    final_eval: Interval | None  # held-out at the end, where pilots of this model were evaluated
    p_reach: float | None  # of reaching the target by the end; None without one
    p_unstable: float  # of being unstable at the end (`forecast.survival`)
    p_unstable_before: float | None = None  # as predicted before the run; None if not updated
    moved_by: str = ""  # signal that moved it most since
    best_step: float | None = None  # of the best checkpoint so far; None of few rows
    best_reward: float | None = None  # smoothed, there
    best_is_held_out: bool = False
    left_to_gain: float  # upper end of what is printed, above the latest rows; share of the range
    is_rising: bool  # whether the latest rows still rise, or are too few to tell
    share_made: float  # of the gain from start to that upper end, in [0, 1]
    surprise: float | None  # of latest rows as low, by those before; None while they are too few
    lost_rows: int  # latest rows in a row without a finite reward
    fallen_since: float | None  # optimizer step since which the reward lies a third below its best
    gentler_rate: float | None  # highest tried learning rate that would keep the rest stable
    pareto_k: float  # of the importance weights
    refit_due: bool  # whether `pareto_k` says that only a new fit can tell
    seconds: float  # wall-clock time of this update
    settings: Settings  # of the run, completed
    notes: tuple[str, ...] = ()  # what was assumed, or differs from the pilots


class _Base(NamedTuple):
    """Draws, and what of the run they have seen."""

    forecaster: Forecaster
    counted: FloatArray | float

    def weighed(self, observed: ObservedRun, *, has_fallen: bool) -> forecast.ReweightedDraws:
        """Weigh the draws by what they have not seen of a run."""
        return forecast.reweighted(
            self.forecaster, observed, has_fallen=has_fallen, counted=self.counted
        )


@dataclass(eq=False, repr=False)
class Watch:
    """Forecasts of one run from its growing log."""

    posterior: Posterior  # Of pilots of the same task and model
    _: KW_ONLY
    target_reward: float | None = None  # Train reward to be reached, in reward units
    planned_steps: int | None = None  # Of the whole run; by default as logged
    level: float = 0.9  # Probability of staying stable that is wanted
    draws: int = DRAWS  # Of the population that are weighted
    seed: int = 0  # Of the run's own effects and its residual
    fitted: PilotRun | None = None  # What was fitted of this run: only later rows count

    def __post_init__(self) -> None:
        """Refuse what no run can be asked, and make the first look as quick as the others."""
        meta = self.posterior.meta
        if self.planned_steps is not None and self.planned_steps < 1:
            problem = f"a run of {self.planned_steps} steps"
            raise InputError(problem, argument="planned_steps", advice="Give at least 1")
        if not 0 < self.level < 1:
            advice = "Give one between 0 and 1"
            raise InputError(f"a level of {self.level:g}", argument="level", advice=advice)
        wanted = self.target_reward
        if wanted is not None and not meta.floor < wanted <= meta.ceiling:
            problem = f"a reward of {wanted:g} lies outside ({meta.floor:g}, {meta.ceiling:g}]"
            advice = "Give a reward on the scale of the pilots"
            raise InputError(problem, argument="target_reward", advice=advice)
        smoothed_weights(np.linspace(0.0, 1.0, 100))  # imports ArviZ now, not at the first step
        self._bases: dict[tuple[str, str], tuple[_Base, _Base]] = {}

    def update(self, run: PilotRun) -> Update:
        """Weigh the posterior by what a run has logged and forecast its rest.

        Long because: it fills one report, field by field.
        """
        started = time.perf_counter()
        run, notes = forecast.resolve_group(run, self.posterior.meta)
        planned = self.planned_steps or run.hyperparameters.planned_steps
        if planned is None:
            raise InputError(
                "the log does not tell how many steps are planned",
                path=run.path,
                argument="planned_steps",
                advice="Give `planned_steps`",
            )
        meta = self.posterior.meta
        observed = forecast.observe(run, meta, planned)
        notes += differences(run, observed, meta, is_fitted=self.fitted is not None)
        base, fewer = self._base(run)
        fall = observed.fall
        weighed = base.weighed(observed, has_fallen=fall.unstable)
        begun = BegunRun.of(run, observed, weighed, base.forecaster)
        forecaster, rest, p_unstable = begun.forecaster, begun.rest, begun.p_unstable
        rewards = run.reward[np.isfinite(run.reward)]
        latest = float(rewards[-LATEST_ROWS:].mean())
        is_risky = not fall.unstable and 1 - p_unstable < self.level
        final = forecast.interval_of(begun.ends)
        tested = begun.held_out
        held_out = None if tested is None else forecast.interval_of(tested)
        start = float(forecaster.in_reward_units(forecaster.group.start.mean()))
        left = _left_to_gain(rewards, final, meta.ceiling - meta.floor)
        if held_out is not None and run.eval_reward.size:
            span = meta.eval_ceiling - meta.eval_floor
            left = max(left, _left_to_gain(run.eval_reward, held_out, span))
        gained = max(latest - start, 0.0) / (meta.ceiling - meta.floor)
        return Update(
            run=run.id,
            task=str(run.task),
            model=str(run.model),
            step=observed.last,
            planned_steps=planned,
            reward=latest,
            start=start,
            band=forecast.band_of(rest.step, begun.path),
            final=final,
            final_eval=held_out,
            p_reach=self._p_reach(rest, observed, forecaster, final),
            p_unstable=p_unstable,
            **self._moved(begun),
            **_best(run),
            left_to_gain=left,
            is_rising=_is_rising(rewards),
            share_made=gained / max(gained + max(left, 0.0), 1e-9),
            surprise=None if fall.unstable else self._surprise(fewer, run, planned),
            lost_rows=_lost_rows(run),
            fallen_since=fall.shown_onset(run),
            gentler_rate=self._gentler(begun) if is_risky else None,
            pareto_k=weighed.pareto_k,
            refit_due=not weighed.pareto_k <= TRUSTED_K,
            seconds=time.perf_counter() - started,
            settings=observed.settings,
            notes=tuple(notes),
        )

    def _base(self, run: PilotRun) -> tuple[_Base, _Base]:
        """Draws of the run's task and model: those that are weighted, and fewer for a surprise."""
        key = str(run.task), str(run.model)
        if key not in self._bases:
            target = forecast.Target(*key, float(run.parameters or 0.0))
            many, few = (
                self._counted(Forecaster(self.posterior, target, draws=draws, seed=self.seed))
                for draws in (self.draws, max(1, self.draws // 3))
            )
            self._bases[key] = many, few
        return self._bases[key]

    def _counted(self, forecaster: Forecaster) -> _Base:
        """Weigh the rows that the posterior was fitted to, which must not count twice."""
        if self.fitted is None:
            return _Base(forecaster, 0.0)
        run, _ = forecast.resolve_group(self.fitted, self.posterior.meta)
        observed = forecast.observe(run, self.posterior.meta, int(run.step[-1]))
        draws = forecast.reweighted(forecaster, observed, has_fallen=observed.fall.unstable)
        return _Base(forecaster, draws.log_marginal)

    def _surprise(self, base: _Base, run: PilotRun, planned: int) -> float | None:
        """Probability of latest rows as low as they are, by the rows before."""
        rows = np.flatnonzero(np.isfinite(run.reward))
        if rows.size < 5 + LATEST_ROWS:
            return None
        latest = rows[-LATEST_ROWS:]
        observed = forecast.observe(run.before(int(latest[0])), self.posterior.meta, planned)
        draws = base.weighed(observed, has_fallen=False)
        mean = float(base.forecaster.as_share(run.reward[latest].mean()))
        return forecast.probability_as_low(draws, observed, run.step[latest], mean)

    def _moved(self, begun: BegunRun) -> dict[str, Any]:
        """P(unstable) as it was predicted before the run, and the signal that moved it most."""
        if begun.moved is None or begun.observed.fall.unstable:
            return {}
        before = begun.p_unstable_before(begun.observed.settings)
        signal = forecast.mover(begun.moved, is_worse=begun.p_unstable > before)
        return {"p_unstable_before": before, "moved_by": signal}

    def _gentler(self, begun: BegunRun) -> float | None:
        settings, now = begun.observed.settings, begun.rest.curve[:, 0]
        rate = settings.learning_rate
        for share in (0.7, 0.5, 0.3, 0.2, 0.1, 0.05):
            gentler = settings.model_copy(update={"learning_rate": share * rate})
            if 1 - begun.p_unstable_at(gentler, now) >= self.level:
                return share * rate
        return None

    def _p_reach(
        self, rest: RestOfRun, observed: ObservedRun, forecaster: Forecaster, final: Interval
    ) -> float | None:
        """Probability of reaching the target before the run ends or collapses."""
        if self.target_reward is None:
            return None
        if observed.last >= observed.end:
            return float(final.mean >= self.target_reward)
        reached = forecaster.in_reward_units(rest.path) >= self.target_reward
        first = rest.step[reached.argmax(axis=1)]
        share = (first - observed.last) / max(observed.end - observed.last, 1)
        rate = forecast.collapse_rate(forecaster, observed.settings)
        alive = np.exp(-rate * observed.exposure_left * share)
        return float(np.mean(reached.any(axis=1) * alive))


def _best(run: PilotRun) -> dict[str, Any]:
    """Best checkpoint so far: of three evaluations in a row where held-out rewards are logged."""
    is_held_out = np.isfinite(run.eval_reward).sum() >= 3
    step, values = (run.eval_step, run.eval_reward) if is_held_out else (run.step, run.reward)
    step, values = step[np.isfinite(values)], values[np.isfinite(values)]
    rows = 3 if is_held_out else max(LATEST_ROWS, values.size // 10)
    if values.size < rows:
        return {}
    means = np.convolve(values, np.ones(rows) / rows, "valid")
    best = int(means.argmax())
    return {
        "best_step": float(step[best + rows // 2]),
        "best_reward": float(means[best]),
        "best_is_held_out": bool(is_held_out),
    }


def _left_to_gain(rows: FloatArray, end: Interval, span: float) -> float:
    """Upper end of a forecast above the latest finite rows, as a share of the reward's range."""
    latest = (rows[-min(LATEST_ROWS, rows.size) :], rows[-max(1, rows.size // 10) :])
    # The lower of two levels: one lucky row must not make a run look as if it were done.
    return float((end.high - min(level.mean() for level in latest)) / span)


def _is_rising(rows: FloatArray) -> bool:
    """Whether the last third of finite rows rises by more than its noise; True of too few."""
    last = rows[-(rows.size // 3) :]
    if last.size < 2 * LATEST_ROWS:
        return True
    time = np.linspace(-0.5, 0.5, last.size)
    slope = float(time @ last / (time @ time))
    left = last - last.mean() - slope * time
    error = float(np.sqrt(left @ left / (last.size - 2) / (time @ time)))
    return slope > error


def _lost_rows(run: PilotRun) -> int:
    """Latest rows in a row without a finite reward; 0 where gaps as long are the log's habit."""
    finite = np.flatnonzero(np.isfinite(run.reward))
    usual = int(np.diff(finite).max()) - 1 if finite.size > 1 else 0
    lost = run.reward.size - 1 - int(finite[-1])
    return lost if lost > usual else 0


def differences(run: PilotRun, observed: ObservedRun, meta: Meta, *, is_fitted: bool) -> list[str]:
    """What the reader of a forecast should know about this run."""
    notes = list(run.warnings)
    given = run.hyperparameters.learning_rate
    highest = forecast.peak_rate(run)
    if given is not None and highest is not None and highest > 1.01 * given:
        notes.append(f"the log shows a learning rate of {highest:g}, the settings {given:g}")
    if not is_fitted and run.id in {pilot.id for pilot in meta.runs}:
        notes.append("a pilot has the same name: if it is this run, its rows count twice")
    if observed.last >= observed.end:
        notes.append("the planned steps are done")
    ends, schedule = run.hyperparameters.planned_steps, observed.settings.schedule
    if schedule != "constant" and ends is not None and ends < observed.end:
        notes.append(f"the {schedule} schedule ends at step {ends}: no learning rate is left then")
    return [*notes, *run.lost_rewards]
