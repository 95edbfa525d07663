"""Effects of one run, and how the pilots of a model inform those of its next run.

A run departs from the laws by its configuration, which repeats and neighbours share, and by its
seed. A Gaussian process on the logs of the settings carries the departures of the pilots to another
configuration. No row was fitted beyond the last one of a pilot. There some of the draws follow the
pooled curve, and most follow the ends of finished runs that were similar at this point. These are
moved by the *difference* between the curve of the configuration and that of the pilot. The paths
pass through the level of the pilot's last rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from advisor.forecast.analogues import (
    FINAL_SHARE,
    Corpus,
    Description,
    RunKind,
    describe,
    end_of_run,
    log_odds,
)
from advisor.model import RUN_EFFECTS, Posterior, RunSummary, sigmoid
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, IntArray

HORIZONS = 2.0 ** np.arange(1, 11)
"""Lengths of a run, over that of the pilot, at which the analogues are asked."""

CLEAR = 1e-3  # Share of the reward's range by which a level stays clear of its ends, in log-odds


@dataclass(frozen=True)
class RunEffect:
    """Strategy for the seed noise of a run on plateau and stiffness and the shape of its curve."""

    values: Callable[[Posterior, IntArray], FloatArray]
    draws: IntArray | None = None  # (size,)
    is_fresh: bool = False

    @classmethod
    def fresh(cls, seed: int | Sequence[int]) -> RunEffect:
        """Effects of a run that has not begun, drawn with this seed."""

        def drawn(_: Posterior, kept: IntArray) -> FloatArray:
            return np.random.default_rng(seed).standard_normal((len(RUN_EFFECTS), kept.size))

        return cls(drawn, is_fresh=True)

    @classmethod
    def of_pilot(cls, index: int) -> RunEffect:
        """Effects that were fitted to a pilot, by its index in ``posterior.meta.runs``."""
        return cls(
            lambda posterior, kept: np.stack(
                [posterior.flat(name)[kept, index] for name in RUN_EFFECTS]
            )
        )

    @classmethod
    def given(cls, effect: FloatArray, draws: IntArray | None = None) -> RunEffect:
        """Effects of shape (3, ..., draws), of all draws or of those with these indices."""
        return cls(lambda _posterior, _kept: effect, draws)


class Continued(NamedTuple):
    """How far the runs of a pilot's configuration depart from the curve, in log-odds."""

    last: float  # optimizer steps of the pilot
    off: float  # of the pilot's own last rows
    log_steps: FloatArray  # (horizons,), lengths of a run
    shift: FloatArray  # (horizons, draws)

    def end(self, steps: float) -> FloatArray:
        """Departure of the end of a run of ``steps`` steps, shape (draws,)."""
        place = np.interp(np.log(max(steps, 1.0)), self.log_steps, np.arange(self.log_steps.size))
        low = min(int(place), self.log_steps.size - 2)
        return np.asarray(self.shift[low] + (place - low) * (self.shift[low + 1] - self.shift[low]))


class NextRun:
    """Departures of the living pilots of one model on one task.

    They are at ``places`` of ``posterior.meta.runs``; ``indices`` are the draws in use, and
    the corpus holds finished runs of other repositories.
    """

    def __init__(
        self, posterior: Posterior, places: Sequence[int], indices: FloatArray, corpus: Corpus
    ) -> None:
        self.pilots = [posterior.meta.runs[place] for place in places]
        self.corpus, self.meta = corpus, posterior.meta
        self.known = np.stack(
            [posterior.flat(name)[indices][:, list(places)] for name in RUN_EFFECTS]
        )  # (effects, draws, pilots)
        self.rules = posterior.meta.priors.discrepancy
        self.points = np.stack([self._point(pilot.settings) for pilot in self.pilots])
        shared = self.rules.configuration_share
        self.covariance = shared * nearness(self.points, self.points)
        self.covariance += (1 - shared) * np.eye(len(self.points))
        self._is_small = self.pilots[0].parameters < self.rules.small_parameters
        self._rng = np.random.default_rng(0)
        self._pick = self._rng.random(indices.size)
        self._continued: list[Continued] = []

    def effect(self, settings: Settings, fresh: FloatArray) -> FloatArray:
        """Effects of a run of some settings, shape (3, ..., draws), given those of the pilots."""
        near = self.rules.configuration_share * nearness(self._point(settings), self.points)
        weights = np.linalg.solve(self.covariance, near[..., None])[..., 0]
        left = np.sqrt(np.maximum(1 - (near * weights).sum(-1), 0.0))
        known = np.einsum("edp,...p->e...d", self.known, weights)
        new = fresh.reshape(fresh.shape[0], *(1,) * (known.ndim - 2), fresh.shape[-1])
        return np.asarray(known + left[..., None] * new)

    def path(
        self, settings: Settings, steps: FloatArray, level: Callable[[Settings, Any], FloatArray]
    ) -> FloatArray:
        """Shares of floor to ceiling on the way to the end of a run, shape (..., draws, times).

        The last of ``steps`` is its end. ``level`` is the curve. A path passes through the level
        of the pilot that it follows, and from there to its end in proportion to the log of the
        steps. High draws end high, so no quantile turns on the way.
        """
        if not self._continued:
            self._continued = [self._continue(pilot, level) for pilot in self.pilots]
        chosen = self._followed(settings)
        shift = np.stack([one.end(steps.max()) for one in self._continued])
        shift = shift[chosen, np.arange(chosen.shape[-1])]
        # What the end, the mean of the last tenth, comes to stands in the middle of that.
        middle = np.ceil([(1 - FINAL_SHARE / 2) * steps.max()])
        if steps.size == 1:
            odds = log_odds(level(settings, middle), CLEAR)[..., 0] + shift
            return np.asarray(sigmoid(self._spread(odds, steps.max())))[..., None]
        lasts = np.array([one.last for one in self._continued])
        asked = np.concatenate([np.ceil(lasts), middle, steps])
        curve = log_odds(level(settings, asked), CLEAR)
        stood = np.take_along_axis(curve[..., : lasts.size], chosen[..., None], -1)
        end = self._spread(curve[..., lasts.size] + shift, steps.max())
        curve = curve[..., lasts.size + 1 :]
        stands = stood[..., 0] + np.array([one.off for one in self._continued])[chosen]
        stands = np.take_along_axis(np.sort(stands, -1), end.argsort(-1).argsort(-1), -1)[..., None]
        last = lasts[chosen][..., None]
        ahead = np.log(np.maximum(middle / last, 1 + 1e-9))
        way = np.clip(np.log(np.maximum(steps / last, 1.0)) / ahead, 0.0, 1.0)
        beyond = stands + way * (end[..., None] - stands)
        before = curve + (stands - stood) * _smooth_step(steps / last)
        # A run that is no longer than its pilot ends among rows that were fitted.
        short = curve + shift[..., None] * _smooth_step(steps / max(steps.max(), 1.0))
        odds = np.where(steps > last, beyond, before)
        return np.asarray(sigmoid(np.where(steps.max() > last, odds, short)))

    def _followed(self, settings: Settings) -> IntArray:
        """Which pilot each draw follows, shape (..., draws)."""
        # By the inverse square of the distance: where a pilot ran, it is the one that is followed.
        near = 1 / (distance(self._point(settings), self.points) + 0.05)
        shares = np.cumsum(near / near.sum(-1, keepdims=True), axis=-1)
        return np.asarray((self._pick[:, None] > shares[..., None, :-1]).sum(-1))

    def _spread(self, odds: FloatArray, steps: float) -> FloatArray:
        """Log-odds of ends, shape (..., draws), spread as those of models of this size are."""
        if not self._is_small:
            return odds
        doublings = max(float(np.log2(steps / max(pilot.steps for pilot in self.pilots))), 0.0)
        further = (self.rules.small_spread - 1) * doublings
        return np.asarray(odds + further * (odds - np.median(odds, axis=-1, keepdims=True)))

    def _continue(
        self, pilot: RunSummary, level: Callable[[Settings, FloatArray], FloatArray]
    ) -> Continued:
        """Departure of a pilot's own configuration from the curve, at each horizon."""
        last = float(pilot.steps)
        steps = np.concatenate([[last], (1 - FINAL_SHARE / 2) * last * HORIZONS])
        # Half-way to the last row and before, the curve that was fitted to its rows is followed.
        log_lengths = np.log(last * np.concatenate([[0.5, 1.0], HORIZONS]))
        # A schedule that decays is over with the pilot, and in a longer run decays over that.
        longer = (pilot.settings.planned_over(int(last * times)) for times in HORIZONS)
        own = pilot.settings.or_planned_over(int(last))
        ends = zip([own, *longer], np.ceil(steps)[:, None], strict=True)
        curve = log_odds(np.concatenate([level(*end) for end in ends], axis=1), CLEAR)
        shift = np.zeros((steps.size, curve.shape[0]))
        step, reward = np.array(pilot.logged_steps), np.array(pilot.logged_rewards)
        if reward.size < PilotRun.LEAST_REWARDS:
            return Continued(last, 0.0, log_lengths[1:], shift)
        is_lora = pilot.settings.adapter == "lora"
        is_share = self.meta.floor >= 0 and self.meta.ceiling <= 1
        kind = RunKind(is_share, pilot.parameters, is_lora, pilot.settings.learning_rate)
        seen = describe(step, reward, last, kind, thinned=pilot.thinned)
        stands = float(log_odds(self.meta.as_share(seen.level), CLEAR))
        # Held-out rewards have a curve of their own: how far train rows end off theirs is not it.
        last_third = np.ceil(step[-max(1, step.size // 3) :])
        fitted = float(log_odds(np.median(level(own, last_third).mean(axis=1)), CLEAR))
        is_tested = self.meta.evaluated[self.meta.groups.index((pilot.task, pilot.model))]
        off, latest_off = (stands - fitted, 0.0) if is_tested else (0.0, stands - fitted)
        # A pilot's own draws: what siblings are missed by hardly goes together.
        order = self._rng.permutation(curve.shape[0])
        follows = self._rng.random(order.size) < self.rules.analogues
        for place, share in enumerate(1 / HORIZONS, start=1):
            came = end_of_run(
                self.corpus,
                seen.of_length(share),
                odds_share=self.rules.odds_share,
                size=order.size,
            )
            analogues = log_odds(self.meta.as_share(came[order]), CLEAR) - off
            shift[place] = np.where(follows, analogues - curve[:, place], 0.0)
        last_fifth = reward[-max(PilotRun.LEAST_REWARDS, reward.size // 5) :]
        noise = last_fifth.std(ddof=1) * self._rng.standard_normal(order.size)
        latest = log_odds(self.meta.as_share(last_fifth.mean() + noise), CLEAR) - off
        stays = self._rng.random(order.size) < self.rules.stands
        shift[1] = np.where(stays, latest - curve[:, 1], shift[1])
        beyond = np.log(np.maximum(steps / (HORIZONS[0] * last), 1.0))
        rises = self.rules.small_rise if self._is_small and seen.gained >= 0 else 0.0
        shift += (self.rules.gain * self._gained(seen) + rises) * beyond[:, None]
        if seen.gained >= 0:  # it ends no lower than it stands
            lacks = stands - off - np.median(curve.T + shift, axis=1)
            shift += np.maximum(lacks, 0.0)[:, None]
        shift = np.vstack([np.zeros(order.size), shift])
        return Continued(last, latest_off, log_lengths, shift)

    def _point(self, settings: Settings) -> FloatArray:
        """Where a configuration stands, in reaches, shape (..., 4)."""
        return coordinates_of(settings) / self.rules.configuration_reach

    def _gained(self, seen: Description) -> float:
        """Share of its headroom that a pilot gained, as far as it is more than noise."""
        surely = np.clip(seen.gained / max(2 * seen.error, 1e-9) - 0.5, 0.0, 1.0)
        headroom = self.meta.ceiling - (seen.level - seen.gained)
        return float(np.clip(seen.gained / max(headroom, 1e-9), 0, 1) * surely)


def _smooth_step(share: FloatArray) -> FloatArray:
    """From 0 to 1 without a kink at either end."""
    kept = np.clip(share, 0.0, 1.0)
    return np.asarray(kept**2 * (3 - 2 * kept))


def coordinates_of(settings: Settings) -> FloatArray:
    """Logs of the settings that a run's departure may depend on, shape (..., 4)."""
    named = (
        settings.learning_rate,
        settings.group_size,
        settings.prompts_per_step,
        settings.refresh_interval,
    )
    return np.stack(np.broadcast_arrays(*(np.log(one) for one in named)), axis=-1)


def distance(one: FloatArray, others: FloatArray) -> FloatArray:
    """Squared distance of configurations in reaches, shape (..., others)."""
    return np.asarray(((np.expand_dims(one, -2) - others) ** 2).sum(-1))


def nearness(one: FloatArray, others: FloatArray) -> FloatArray:
    """Correlation of configurations, shape (..., others)."""
    return np.asarray(np.exp(-0.5 * distance(one, others)))
