"""What would come of settings that the user names, one or many at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from advisor.advice.cost import CostModel, learn_cost
from advisor.advice.request import Request
from advisor.advice.support import outside, piloted
from advisor.common import DEFAULT_SEED
from advisor.errors import InputError
from advisor.forecast import (
    SUPPORT,
    Forecaster,
    Target,
    final_reward,
    interval_of,
    named_target,
    pilots_of,
    stability,
)
from advisor.model import Posterior
from advisor.runs import CARRIED, Settings

if TYPE_CHECKING:
    import pandas as pd

MOST = 1_000_000
"""No setting is larger: beyond it a number is a mistake of units."""


def base_settings(posterior: Posterior, target: Target) -> Settings:
    """Settings that no advice changes: those of the first pilot of the target, else of any.

    What it does not tell and nothing is computed from is that of the others where they agree.
    """
    first, *others = (pilot.settings for pilot in pilots_of(posterior, target))
    agreed = {}
    for name in CARRIED:
        told = {getattr(other, name) for other in others} - {None}
        if getattr(first, name) is None and len(told) == 1:
            agreed[name] = told.pop()
    return first.model_copy(update=agreed)


def target_of(posterior: Posterior, request: Request) -> Target:
    """Target that a request names; by default the largest piloted model, on its task."""
    return named_target(
        posterior, request.model, request.task, request.parameters, request.start_reward
    )


def what_if(
    posterior: Posterior,
    request: Request | None = None,
    *,
    learning_rate: npt.ArrayLike | None = None,
    group_size: npt.ArrayLike | None = None,
    minibatches_per_refresh: npt.ArrayLike | None = None,
    epochs_per_refresh: npt.ArrayLike | None = None,
    prompts_per_step: npt.ArrayLike | None = None,
    steps: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Evaluate settings under the posterior.

    Parameters
    ----------
    posterior : Posterior
    request : Request, optional
        Whose target, steps and price count, as in `advise`; `Study.what_if` repeats those of a
        saved answer, and its numbers.
    learning_rate, group_size, minibatches_per_refresh, epochs_per_refresh : array_like
    prompts_per_step, steps : array_like
        Broadcast against each other; what is not given is that of the target's first pilot, and
        three times the longest pilot for the steps.

    Returns
    -------
    table : pandas.DataFrame
        A row per configuration: the settings, mean of the reward at the last step with the 80 %
        interval of one run (the mean of its last tenth, as in the answer), P(stable) with its parts
        and its interval between tables or repositories, whether so long a run is supported by the
        pilots (three times the longest at most), the settings ``outside`` what any pilot ran (names
        with commas between, where the numbers are the prior's word), and the price.

    Raises
    ------
    InputError
        A value is impossible, or the shapes do not broadcast.
    """
    asked = request or Request()
    target = target_of(posterior, asked)
    planned = asked.steps or int(SUPPORT * posterior.meta.longest)
    return evaluated(
        Forecaster(posterior, target, seed=DEFAULT_SEED),
        learn_cost(posterior, target, gpus=asked.gpus, seconds_per_step=asked.seconds_per_step),
        base_settings(posterior, target),
        {
            "learning_rate": learning_rate,
            "group_size": group_size,
            "minibatches_per_refresh": minibatches_per_refresh,
            "epochs_per_refresh": epochs_per_refresh,
            "prompts_per_step": prompts_per_step,
            "steps": planned if steps is None else steps,
        },
    )


def evaluated(
    forecaster: Forecaster,
    cost: CostModel,
    base: Settings,
    changes: Mapping[str, npt.ArrayLike | None],
) -> pd.DataFrame:
    """Table of `what_if` for changes of ``base``, the steps among them, broadcast together."""
    import pandas as pd

    return pd.DataFrame(evaluated_rows(forecaster, cost, base, changes))


def evaluated_rows(
    forecaster: Forecaster,
    cost: CostModel,
    base: Settings,
    changes: Mapping[str, npt.ArrayLike | None],
) -> list[dict[str, Any]]:
    """Rows of that table, for those who would import pandas for nothing else."""
    named = {name: np.asarray(value) for name, value in changes.items() if value is not None}
    try:
        columns = np.broadcast_arrays(*named.values())
    except ValueError as error:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in named.items())
        raise InputError(
            f"the settings do not broadcast: {shapes}",
            argument=", ".join(named),
            advice="Give one value or as many as the others",
        ) from error
    rows = [
        dict(zip(named, values, strict=True))
        for values in zip(*(column.ravel().tolist() for column in columns), strict=True)
    ]
    return [_row(forecaster, cost, _settings(base, each), int(each["steps"])) for each in rows]


def _settings(base: Settings, changes: dict[str, float]) -> Settings:
    """Settings with changes that can be."""
    found: dict[str, float] = {}
    for name, value in changes.items():
        is_counted = name not in ("learning_rate", "prompts_per_step")
        is_whole = not is_counted or float(value).is_integer()
        least = 2 if name == "group_size" else int(is_counted)
        if not (least <= value <= MOST and value > 0 and is_whole):
            wanted = f"whole number from {least}" if least else "positive number"
            raise InputError(
                f"{name} {value:g} cannot be",
                argument=name,
                advice=f"Give a {wanted}, at most {MOST:,}",
            )
        field = "planned_steps" if name == "steps" else name
        found[field] = int(value) if is_counted else value
    return base.model_copy(update=found)


def _row(
    forecaster: Forecaster, price: CostModel, settings: Settings, steps: int
) -> dict[str, Any]:
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
        "prompts_per_step": settings.prompts_per_step,
        "steps": steps,
        "reward": reward.mean,
        "reward_low": reward.low,
        "reward_high": reward.high,
        "p_stable": found.probability,
        "p_refresh": found.refresh,
        "p_tolerance": found.tolerance,
        "p_fluctuation": found.fluctuation,
        "p_stable_low": found.low,
        "p_stable_high": found.high,
        "supported": steps <= SUPPORT * forecaster.posterior.meta.longest,
        "outside": ", ".join(outside(settings.model_dump(), piloted(forecaster.posterior))),
        "completions": paid.completions,
        "gpu_hours": paid.gpu_hours,
    }
