"""The one door to what is predicted: draws of rewards and stability, as a labelled dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from advisor.common import DEFAULT_SEED
from advisor.errors import InputError
from advisor.forecast.begun_run import DRAWS, BegunRun
from advisor.forecast.forecaster import SEARCH_DRAWS, Forecaster
from advisor.forecast.predictive import evaluation, final_reward, final_train_reward, slow_residual
from advisor.forecast.run_likelihood import observe, reweighted
from advisor.forecast.survival import stabilities_and_draws
from advisor.forecast.target import Target, named_target, resolve_group
from advisor.model import Posterior
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, IntArray

if TYPE_CHECKING:
    import xarray as xr

DIMS = ("configuration", "draw", "step")

POINTS = 100  # Steps on the way of a run of which the length alone is given


def predict(
    posterior: Posterior,
    settings: Settings | Sequence[Settings] | None,
    steps: npt.ArrayLike,
    *,
    given: PilotRun | None = None,
    target: Target | None = None,
    draws: int = SEARCH_DRAWS,
    seed: int = DEFAULT_SEED,
) -> xr.Dataset:
    """Draw the rewards of runs, and whether they stay stable; see `Posterior.predict`."""
    if given is not None:
        if settings is not None or target is not None:
            raise InputError(
                "a run that has begun has settings of its own",
                argument="settings, target",
                advice="Give `given` alone, or leave it out",
            )
        return _of_begun(posterior, given, _steps(steps), min(draws, DRAWS), seed)
    if settings is None:
        raise InputError("no settings to predict", argument="settings", advice="Give some")
    each = [settings] if isinstance(settings, Settings) else list(settings)
    forecaster = Forecaster(posterior, target or named_target(posterior), draws=draws, seed=seed)
    times = _steps(steps)
    return _joined([_of_new(forecaster, one, times) for one in each], each, times)


def _of_new(forecaster: Forecaster, settings: Settings, times: IntArray) -> dict[str, FloatArray]:
    """Variables of one run that has not begun, each with the draws first."""
    last = int(times[-1])
    planned = settings.planned_over(last)
    level = forecaster.scaled_reward(planned, times)
    (stability,), lives = stabilities_and_draws(
        forecaster, planned, last, level=forecaster.scaled_reward(planned, last)[..., 0]
    )
    found = {
        "train_reward": forecaster.in_reward_units(slow_residual(forecaster, level)),
        "final_train_reward": final_train_reward(forecaster, planned, last),
        "is_stable": _alive(lives, stability.probability, forecaster.seed),
    }
    if forecaster.is_evaluated:
        expected = forecaster.outcome_of(level)
        columns = [evaluation(forecaster, column) for column in expected.T]
        found["held_out_reward"] = np.stack(columns, axis=1)
        found["final_held_out_reward"] = final_reward(forecaster, planned, last)
    return found


def _of_begun(
    posterior: Posterior, run: PilotRun, times: IntArray, draws: int, seed: int
) -> xr.Dataset:
    """Dataset of a run that has begun, from its latest step on."""
    meta, last = posterior.meta, int(times[-1])
    own, _ = resolve_group(run, meta)
    target = Target(str(own.task), str(own.model), float(own.parameters or 0.0))
    population = Forecaster(posterior, target, draws=draws, seed=seed)
    observed = observe(own, meta, last)
    fell = observed.fall.unstable
    weighed = reweighted(population, observed, has_fallen=fell)
    if run.fingerprint in {pilot.fingerprint for pilot in meta.runs}:
        # Its rows were fitted: they must not count twice.
        counted = weighed.log_marginal
        weighed = reweighted(population, observed, has_fallen=fell, counted=counted)
    begun = BegunRun.of(own, observed, weighed, population)
    ahead = times[times >= observed.last]
    if not ahead.size:
        raise InputError(
            f"run '{run.id}' has done {observed.last} steps",
            argument="steps",
            advice="Ask for later ones",
        )
    known = begun.rest.step
    path = np.stack([np.interp(ahead, known, one) for one in begun.path])
    lives = np.full(len(begun.ends), 1 - begun.p_unstable)
    found = {
        "train_reward": path,
        "final_train_reward": begun.ends,
        "is_stable": _alive(lives, float(lives[0]), seed),
    }
    if (held_out := begun.held_out) is not None:
        found["final_held_out_reward"] = held_out
    return _joined([found], [observed.settings], ahead)


def _alive(lives: FloatArray, probability: float, seed: int) -> FloatArray:
    """Whether each draw stays stable: as many as P(stable) says, those first that are likelier."""
    luck = np.random.default_rng((seed, 3)).random(lives.size)
    alive = np.zeros(lives.size, dtype=bool)
    alive[np.argsort(luck - lives)[: round(probability * lives.size)]] = True
    return alive


def _steps(steps: npt.ArrayLike) -> IntArray:
    """Optimizer steps in order; a whole run, of which the length is given, at a hundred of them."""
    times = np.unique(np.asarray(steps, dtype=np.int64))
    if not times.size or times[0] < 0 or times[-1] < 1:
        raise InputError(
            f"steps {steps!r:.80} are none of a run",
            argument="steps",
            advice="Give whole optimizer steps, the last of them the end of the run",
        )
    if np.ndim(steps) == 0:
        return np.unique(np.linspace(1, times[-1], POINTS).round().astype(np.int64))
    return times


def _joined(
    found: Sequence[dict[str, FloatArray]], settings: Sequence[Settings], times: IntArray
) -> xr.Dataset:
    import xarray as xr

    units = {"is_stable": "by the end of the run"}
    variables: dict[str, Any] = {
        name: (
            DIMS[: 1 + found[0][name].ndim],
            np.stack([one[name] for one in found]),
            {"units": units.get(name, "reward")},
        )
        for name in found[0]
    }
    named = ("learning_rate", "group_size", "minibatches_per_refresh", "epochs_per_refresh")
    coords: dict[str, Any] = {
        name: ("configuration", [getattr(one, name) for one in settings]) for name in named
    }
    return xr.Dataset(variables, coords | {"step": times})
