"""Effects that are a run's own, and what the pilots of a model say of those of its next run.

A run departs from the laws by what its configuration does, which repeats and neighbours share, and
by its seed: the departures of the pilots are carried to another configuration by a Gaussian process
on the logs of its settings. Beyond the last row of a pilot nothing was fitted: there some of the
draws follow the pooled curve, most what became of runs that stood where the pilot stands, moved by
what the curve says of the *difference* between the configuration and the pilot's. A run that is no
more than twice as long often ends where its pilot stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from advisor.forecast.analogues import Corpus, Description, Kind, describe, end_of_run, log_odds
from advisor.model import RUN_EFFECTS, Posterior, RunSummary, sigmoid
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, IntArray

CONFIGURATION_SHARE = 0.9
"""Share of the variance of a run's departure that its configuration explains; the seed has the
rest. Of 0, 0.5, 0.8 and 0.95 the larger ones forecast best, in public runs and in the six tasks of
case_studies/language_model alike."""

REACH = 2.0
"""Natural logs of a setting over which departures are shared."""

ANALOGUES_SHARE = 0.6
"""Share of the draws that follow the analogues beyond a pilot's last row."""

STANDS_SHARE = 0.4
"""Share of the draws that stay at the last fifth of the pilot's rows at the first of HORIZONS: runs
of one to three times their pilots were forecast 0.020 too high in public, and now by 0.002."""

GAIN = 0.7
"""Log-odds by which a run that rises comes out above curve and analogues, for each e-fold of its
length beyond twice the pilot's and in proportion to the share of its headroom that it gained."""

HORIZONS = 2.0 ** np.arange(1, 11)
"""Lengths of a run, over that of the pilot, at which the analogues are asked."""

UNLIKE, UNLIKE_RISE, UNLIKE_SPREAD = 4e8, 0.3, 1.2
"""Parameters below which a model is smaller than those of public runs; log-odds by which one that
does not fall comes out higher, as GAIN does; and the factor by which ends spread further, in
log-odds, at twice the pilots and in proportion at each doubling: case_studies/language_model."""

CLEAR = 1e-3
"""Share of the reward's range by which a level stays clear of its ends, in log-odds."""


@dataclass(frozen=True)
class RunEffect:
    """Strategy for the seed noise of a run on plateau and stiffness and the shape of its curve."""

    values: Callable[[Posterior, IntArray], FloatArray]
    draws: IntArray | None = None  # (size,)
    is_fresh: bool = False

    @classmethod
    def fresh(cls, seed: int | Sequence[int]) -> RunEffect:
        """Effects of a run that nobody has begun, drawn with this seed."""

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

    log_steps: FloatArray  # (horizons,)
    shift: FloatArray  # (horizons, draws)

    def at(self, steps: FloatArray) -> FloatArray:
        """Departure after so many steps, shape (draws, times)."""
        log_steps = np.log(np.maximum(steps, 1.0))
        place = np.interp(log_steps, self.log_steps, np.arange(self.log_steps.size))
        low = np.minimum(place.astype(int), self.log_steps.size - 2)
        share = place - low
        return np.asarray((self.shift[low].T * (1 - share)) + self.shift[low + 1].T * share)


class NextRun:
    """Departures of the living pilots of one model on one task.

    These stand at ``places`` of ``posterior.meta.runs``; ``indices`` are the draws in use, and
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
        self.points = np.stack([coordinates_of(pilot.settings) for pilot in self.pilots])
        self.covariance = CONFIGURATION_SHARE * nearness(self.points, self.points)
        self.covariance += (1 - CONFIGURATION_SHARE) * np.eye(len(self.points))
        self._is_unlike = self.pilots[0].parameters < UNLIKE
        self._rng = np.random.default_rng(0)
        self._pick = self._rng.random(indices.size)
        self._continued: list[Continued] = []

    def effect(self, settings: Settings, fresh: FloatArray) -> FloatArray:
        """Effects of a run of some settings, shape (3, ..., draws), given those of the pilots."""
        near = CONFIGURATION_SHARE * nearness(coordinates_of(settings), self.points)
        weights = np.linalg.solve(self.covariance, near[..., None])[..., 0]
        left = np.sqrt(np.maximum(1 - (near * weights).sum(-1), 0.0))
        known = np.einsum("edp,...p->e...d", self.known, weights)
        new = fresh.reshape(fresh.shape[0], *(1,) * (known.ndim - 2), fresh.shape[-1])
        return np.asarray(known + left[..., None] * new)

    def shift(
        self,
        settings: Settings,
        steps: FloatArray,
        level: Callable[[Settings, FloatArray], FloatArray],
    ) -> FloatArray:
        """Departure in log-odds from the curve ``level``, shape (..., draws, times)."""
        if not self._continued:
            self._continued = [self._continue(pilot, level) for pilot in self.pilots]
        # By the inverse square of the distance: where a pilot ran, it is the one that is followed.
        near = 1 / (distance(coordinates_of(settings), self.points) + 0.05)
        shares = np.cumsum(near / near.sum(-1, keepdims=True), axis=-1)
        chosen = (self._pick[:, None] > shares[..., None, :-1]).sum(-1)  # (..., draws)
        moved = np.stack([one.at(steps) for one in self._continued])  # (pilots, draws, times)
        return np.asarray(moved[chosen, np.arange(moved.shape[1])])

    def spread(self, share: FloatArray, steps: FloatArray) -> FloatArray:
        """Shares of shape (..., draws, times), spread as ends of models of this size are."""
        if not self._is_unlike:
            return share
        last = max(pilot.steps for pilot in self.pilots)
        doublings = np.maximum(np.log2(np.maximum(steps, 1.0) / last), 0.0)
        odds = log_odds(share, CLEAR)
        median = np.median(odds, axis=-2, keepdims=True)
        return np.asarray(sigmoid(odds + (UNLIKE_SPREAD - 1) * doublings * (odds - median)))

    def _continue(
        self, pilot: RunSummary, level: Callable[[Settings, FloatArray], FloatArray]
    ) -> Continued:
        """Departure of a pilot's own configuration from the curve, at each horizon."""
        last = float(pilot.steps)
        # The end of a run is its last tenth: what it comes to stands in the middle of that.
        steps = np.concatenate([[last], 0.95 * last * HORIZONS])
        # A schedule that decays is over with the pilot, and in a longer run decays over that.
        longer = (pilot.settings.planned_over(int(last * times)) for times in HORIZONS)
        own = pilot.settings.or_planned_over(int(last))
        ends = zip([own, *longer], np.ceil(steps)[:, None], strict=True)
        curve = log_odds(np.concatenate([level(*end) for end in ends], axis=1), CLEAR)
        shift = np.zeros((steps.size, curve.shape[0]))
        step, reward = np.array(pilot.logged_steps), np.array(pilot.logged_rewards)
        if reward.size < PilotRun.LEAST_REWARDS:
            return Continued(np.log(steps), shift)
        is_lora = pilot.settings.adapter == "lora"
        is_share = self.meta.floor >= 0 and self.meta.ceiling <= 1
        kind = Kind(is_share, pilot.parameters, is_lora, pilot.settings.learning_rate)
        seen = describe(step, reward, last, kind, thinned=pilot.thinned)
        stands = float(log_odds(self.meta.as_share(seen.level), CLEAR))
        # Held-out rewards have a curve of their own: how far train rows end off theirs is not it.
        off, last_third = 0.0, np.ceil(step[-max(1, step.size // 3) :])
        if self.meta.evaluated[self.meta.groups.index((pilot.task, pilot.model))]:
            off = stands - float(log_odds(np.median(level(own, last_third).mean(axis=1)), CLEAR))
        # A pilot's own draws: what siblings are missed by hardly goes together.
        order = self._rng.permutation(curve.shape[0])
        follows = self._rng.random(order.size) < ANALOGUES_SHARE
        for place, share in enumerate(1 / HORIZONS, start=1):
            came = end_of_run(self.corpus, seen.of_length(share), size=order.size)[order]
            analogues = log_odds(self.meta.as_share(came), CLEAR) - off
            shift[place] = np.where(follows, analogues - curve[:, place], 0.0)
        last_fifth = reward[-max(PilotRun.LEAST_REWARDS, reward.size // 5) :]
        noise = last_fifth.std(ddof=1) * self._rng.standard_normal(order.size)
        latest = log_odds(self.meta.as_share(last_fifth.mean() + noise), CLEAR) - off
        stays = self._rng.random(order.size) < STANDS_SHARE
        shift[1] = np.where(stays, latest - curve[:, 1], shift[1])
        beyond = np.log(np.maximum(steps / (HORIZONS[0] * last), 1.0))
        rises = UNLIKE_RISE if self._is_unlike and seen.gained >= 0 else 0.0
        shift += (GAIN * self._gained(seen) + rises) * beyond[:, None]
        if seen.gained >= 0:  # it ends no lower than it stands
            lacks = stands - off - np.median(curve.T + shift, axis=1)
            shift += np.maximum(lacks, 0.0)[:, None]
        shift = np.vstack([np.zeros(order.size), shift])
        # Half-way to the last row and before, the curve that was fitted to its rows is followed.
        return Continued(np.log([last / 2, *steps]), shift)

    def _gained(self, seen: Description) -> float:
        """Share of its headroom that a pilot gained, as far as it is more than noise."""
        surely = np.clip(seen.gained / max(2 * seen.error, 1e-9) - 0.5, 0.0, 1.0)
        headroom = self.meta.ceiling - (seen.level - seen.gained)
        return float(np.clip(seen.gained / max(headroom, 1e-9), 0, 1) * surely)


def coordinates_of(settings: Settings) -> FloatArray:
    """Logs of the settings that a run's departure may depend on, shape (..., 4), by their reach."""
    named = (
        settings.learning_rate,
        settings.group_size,
        settings.prompts_per_step,
        settings.refresh_interval,
    )
    return np.stack(np.broadcast_arrays(*(np.log(one) for one in named)), axis=-1) / REACH


def distance(one: FloatArray, others: FloatArray) -> FloatArray:
    """Squared distance of configurations in reaches, shape (..., others)."""
    return np.asarray(((np.expand_dims(one, -2) - others) ** 2).sum(-1))


def nearness(one: FloatArray, others: FloatArray) -> FloatArray:
    """Correlation of configurations, shape (..., others)."""
    return np.asarray(np.exp(-0.5 * distance(one, others)))
