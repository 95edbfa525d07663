"""What would come of settings that the user names, one or many at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor.advice.cost import CostModel, learn_cost
from advisor.advice.wording import SUPPORT
from advisor.errors import InputError
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.interval import interval_of
from advisor.forecast.predictive import final_reward
from advisor.forecast.stability import stability
from advisor.forecast.target import largest_target, pilots_of
from advisor.model.posterior import Posterior
from advisor.run.settings import Settings

MOST = 1_000_000
"""No setting is larger: beyond it a number is a mistake of units."""


def base_settings(posterior: Posterior, target: Target) -> Settings:
    """Settings that no advice changes: those of the first pilot of the target, else of any."""
    return pilots_of(posterior, target)[0].settings


def what_if(
    posterior: Posterior | Forecaster,
    *,
    target: Target | None = None,
    learning_rate: npt.ArrayLike | None = None,
    group_size: npt.ArrayLike | None = None,
    minibatches_per_refresh: npt.ArrayLike | None = None,
    epochs_per_refresh: npt.ArrayLike | None = None,
    steps: npt.ArrayLike | None = None,
    cost: CostModel | None = None,
) -> pd.DataFrame:
    """Evaluate settings under the posterior.

    Parameters
    ----------
    posterior : Posterior or Forecaster
        A forecaster that is kept saves its first set-up when asked again and again.
    target : Target, optional
        By default the largest piloted model, on its task.
    learning_rate, group_size, minibatches_per_refresh, epochs_per_refresh, steps : array_like
        Broadcast against each other; what is not given is that of the target's first pilot, and
        three times the longest pilot for the steps.
    cost : CostModel, optional
        By default learned from the pilots.

    Returns
    -------
    table : pandas.DataFrame
        A row per configuration: the settings, mean of the reward at the last step with the 80 %
        interval of one run (the mean of its last tenth, as in the answer), P(stable) with its parts
        and Monte Carlo error, whether so long a run is supported by the pilots (three times the
        longest at most), and the price.

    Raises
    ------
    InputError
        A value is impossible, or the shapes do not broadcast.
    """
    if isinstance(posterior, Forecaster) and target not in (None, posterior.target):
        raise InputError(
            "the forecaster has a target of its own",
            argument="target",
            advice="Leave the target out, or give the posterior",
        )
    forecaster = (
        posterior
        if isinstance(posterior, Forecaster)
        else Forecaster(posterior, target or largest_target(posterior))
    )
    pilots = forecaster.posterior
    base = base_settings(pilots, forecaster.target)
    given = {
        "learning_rate": learning_rate,
        "group_size": group_size,
        "minibatches_per_refresh": minibatches_per_refresh,
        "epochs_per_refresh": epochs_per_refresh,
        "planned_steps": int(SUPPORT * pilots.meta.longest) if steps is None else steps,
    }
    named = {name: np.asarray(value) for name, value in given.items() if value is not None}
    try:
        columns = np.broadcast_arrays(*named.values())
    except ValueError as error:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in named.items())
        raise InputError(
            f"the settings do not broadcast: {shapes}",
            argument=", ".join(named),
            advice="Give one value or as many as the others",
        ) from error
    price = cost or learn_cost(pilots, forecaster.target)
    changes = [
        dict(zip(named, values, strict=True))
        for values in zip(*(column.ravel().tolist() for column in columns), strict=True)
    ]
    return pd.DataFrame(
        [
            _row(forecaster, price, _settings(base, each), int(each["planned_steps"]))
            for each in changes
        ]
    )


def _settings(base: Settings, changes: dict[str, float]) -> Settings:
    for name, value in changes.items():
        is_whole = name == "learning_rate" or float(value).is_integer()
        least = 2 if name == "group_size" else 0 if name == "learning_rate" else 1
        if not (least <= value <= MOST and value > 0 and is_whole):
            asked = "steps" if name == "planned_steps" else name
            wanted = f"whole number from {least}" if least else "positive number"
            raise InputError(
                f"{asked} {value:g} cannot be",
                argument=asked,
                advice=f"Give a {wanted}, at most {MOST:,}",
            )
    whole = {name: int(value) for name, value in changes.items() if name != "learning_rate"}
    return base.model_copy(update={**changes, **whole})


def _row(
    forecaster: Forecaster, price: CostModel, settings: Settings, steps: int
) -> dict[str, object]:
    point = float(forecaster.outcome(settings, [steps]).mean())
    reward = interval_of(final_reward(forecaster, settings, steps), mean=point)
    found = stability(forecaster, settings, steps)
    paid = price(settings, steps)
    return {
        "learning_rate": settings.learning_rate,
        "group_size": settings.group_size,
        "minibatches_per_refresh": settings.minibatches_per_refresh,
        "epochs_per_refresh": settings.epochs_per_refresh,
        "refresh_interval": settings.refresh_interval,
        "steps": steps,
        "reward": reward.mean,
        "reward_low": reward.low,
        "reward_high": reward.high,
        "p_stable": found.probability,
        "p_refresh": found.refresh,
        "p_tolerance": found.tolerance,
        "p_fluctuation": found.fluctuation,
        "p_error": found.error,
        "supported": steps <= SUPPORT * forecaster.posterior.meta.longest,
        "completions": paid.completions,
        "gpu_hours": paid.gpu_hours,
    }
