"""What parameters say of a cohort: levels of groups and runs, rewards at every bin, collapse rates.

The PyMC model evaluates these expressions with PyTensor variables, everything that looks at draws
with numpy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from advisor.model import equations as eq
from advisor.model.observations import Observations
from advisor.model.parameters import LAWS
from advisor.theory import namespace


class Expectation(NamedTuple):
    """Rewards in shares of the reward range; ``...`` are draws, or nothing in PyTensor."""

    group: eq.GroupLevel
    train_reward: Any
    sampling_variance: Any
    residual_variance: Any
    held_out_reward: Any
    held_out_scale: Any
    hazard: Any


def expectation(
    parameters: Mapping[str, Any], data: Mapping[str, Any], seen: Observations
) -> Expectation:
    """Evaluate the model's equations for every run of a cohort.

    Long because: these are the equations, one after the other.
    """
    xp = namespace(parameters["log_misfit"])
    task, of = seen.task_of_group, seen.group_of_run
    group = eq.group_level(
        parameters,
        parameters["headroom_logit"][..., task],
        parameters["log_slope"][..., task],
        parameters["start_logit"],
        parameters["group_offset.headroom"],
        parameters["group_offset.stiffness"],
        seen.group_log_parameters,
    )
    run = eq.run_level(
        parameters,
        eq.GroupLevel(*(part[..., of] for part in group)),
        _law("rate", parameters, data),
        _law("plateau_loss", parameters, data),
        (
            parameters["run_offset.plateau"],
            parameters["run_offset.stiffness"],
            parameters["run_offset.shape"],
        ),
        parameters["log_onset"][..., task[of]],
        data["refresh_interval"],
        data["clipped"],
    )
    uncorrected = eq.uncorrected(parameters, data["corrected"])
    exponent = parameters["rate.learning_rate"]
    within = eq.sigmoid(parameters["within_log_odds"])[..., None]
    noise = xp.exp(2 * parameters["log_noise_scale"])[..., None]
    sampling = data["noise_known"] + within * data["noise_within"]
    sampling = sampling + (1 - within) * data["noise_between"]
    evaluated = seen.run_of_evaluation

    single = parameters["is_oscillator"]

    def curve(clock: Any, at: Any, power: Any, is_oscillator: Any) -> Any:
        return eq.expected_reward(
            sum(power**index * clock[..., index] for index in range(seen.clock_powers)),
            eq.RunLevel(*(at(part) for part in run)),
            at(data["momentum"]),
            at(data["mean_age"]),
            at(uncorrected),
            is_oscillator,
        )

    residual = xp.exp(2 * parameters["log_misfit"])
    return Expectation(
        group=group,
        train_reward=curve(
            data["clock"], lambda part: part[..., None], exponent[..., None], single[..., None]
        ),
        sampling_variance=noise * sampling,
        residual_variance=residual,
        held_out_reward=eq.held_out(
            curve(data["eval_clock"], lambda part: part[..., evaluated], exponent, single),
            run.start[..., evaluated],
            eq.sigmoid(parameters["eval_start_logit"])[..., of[evaluated]],
            xp.exp(parameters["log_eval_gain"])[..., of[evaluated]],
        ),
        held_out_scale=xp.sqrt(
            xp.exp(2 * parameters["log_eval_noise"]) + residual + eq.LEAST_VARIANCE
        ),
        hazard=eq.hazard(_law("hazard", parameters, data)),
    )


def _law(law: str, parameters: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    """Value of a linear law for each run, shape (..., runs)."""
    design = data[f"{law}_design"]
    return sum(
        parameters[f"{law}.{term}"] * design[:, index] for index, term in enumerate(LAWS[law])
    )


def group_summaries(
    parameters: Mapping[str, Any], group: eq.GroupLevel, seen: Observations
) -> dict[str, Any]:
    """What users ask of each (task, model), at the reference configuration."""
    xp = namespace(group.log_stiffness, group.start)
    size = seen.group_log_parameters
    span = seen.ceiling - seen.floor
    return {
        "start": seen.floor + span * group.start,
        "plateau": seen.floor + span * eq.reference_plateau(parameters, group, size),
        "stiffness": xp.exp(group.log_stiffness),
        "collapse_rate": eq.hazard(parameters["hazard.level"] + parameters["hazard.size"] * size),
    }
