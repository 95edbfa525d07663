"""The hierarchical model, in PyMC: pilots in, population and run parameters out.

Task -> (task, model) -> run. What each level has of its own is a standard normal times a learned
spread (non-centred). Plateaus are sampled as a share of the headroom above the start, and stiffness
through the initial slope, which even a short pilot identifies:
``log k = log slope - log headroom share``.

This is the definition. `model.fast` computes the same log density faster; a test holds its value
and its gradient to those of this model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from advisor.model import equations as eq
from advisor.model.cohort import CLOCK_EXPONENTS, Cohort
from advisor.model.families import SPECTRUM, Family
from advisor.model.observations import Observations, observations
from advisor.model.parameters import GROUP_LEVELS, LAWS, SCALARS, TASK_LEVELS
from advisor.model.priors import Priors, load_priors
from advisor.model.run_density import DEGREES, LEAST_VARIANCE, draw_run, run_log_density


def build_model(
    cohort: Cohort, priors: Priors | str = "full_finetuning", family: Family = SPECTRUM
) -> pm.Model:
    """Build the model of a cohort.

    Parameters
    ----------
    cohort : Cohort
        From `advisor.cohort_of`; its tasks, models and runs label the dimensions.
    priors : Priors or str
        A preset or its name.
    family : Family
        Of the reward curve; its pins take the place of the preset's entries.

    Returns
    -------
    model : pymc.Model
        Dimensions ``task``, ``group`` (task / model), ``run``, ``bin``, ``evaluation``. Free
        variables are vectors of `model.parameters`: ``shared``, ``rate``, ``plateau_loss``,
        ``hazard``. Observed: ``train_reward`` (run, bin; share of the
        reward range, jointly Student t per run), ``held_out_reward`` (evaluation),
        ``collapse_exposure`` (run; steps survived, each weighted by the square of its learning rate
        over the peak; censored where the run did not collapse). Deterministic, per group at the
        reference configuration: ``plateau`` (reward units), ``stiffness`` and ``collapse_rate``
        (per optimizer step).

    Notes
    -----
    Equations: docs/theory; priors: docs/model. The closed form is that of arXiv:2606.30789,
    averaged over a spectrum of stiffnesses.
    """
    preset = family.priors(load_priors(priors) if isinstance(priors, str) else priors)
    seen = observations(cohort)
    with pm.Model(coords=seen.coords) as model:
        data = {
            name: pm.Data(name, values, dims=seen.dims[name])
            for name, values in seen.constant.items()
        }
        parameters = _parameters(preset)
        laws = {
            law: pt.stack([parameters[f"{law}.{term}"] for term in terms])
            for law, terms in LAWS.items()
        }
        group = _groups(cohort, parameters)
        run = _runs(cohort, data, parameters, laws, group)
        _observe_train_rewards(seen, data, parameters, _curve(data, laws, run, parameters, family))
        if seen.held_out_reward.size:
            _observe_held_out(cohort, data, parameters, laws, run, family)
        pm.Censored(
            "collapse_exposure",
            pm.Exponential.dist(eq.hazard(data["hazard_design"] @ laws["hazard"])),
            lower=None,
            upper=np.where(cohort.collapsed > 0, np.inf, cohort.exposure),
            observed=cohort.exposure,
            dims="run",
        )
    return model


def _parameters(priors: Priors) -> dict[str, Any]:
    """Every parameter by its name in `model.parameters`.

    Two levels are known beforehand at anchors that do not depend on the pilots' learning rates:
    the plateau loss at a stiffness of ``ANCHOR_STIFFNESS``, the collapse rate at a plateau loss
    of 1. So their prior means depend on the other parameters (`equations.anchor_shift`).
    """

    def normal(variable: str, names: Sequence[str], dims: str) -> dict[str, Any]:
        entries = [getattr(priors, name.replace(".", "_")) for name in names]
        mean, sd = (np.array([getattr(e, part) for e in entries]) for part in ("mean", "sd"))
        values = pm.Normal(variable, mean, sd, dims=dims)
        return {name: values[index] for index, name in enumerate(names)}

    parameters = normal("shared", SCALARS, "shared_term")
    for levels, dims in ((TASK_LEVELS, "task"), (GROUP_LEVELS, "group")):
        for name in levels:
            prior = getattr(priors, name)
            parameters[name] = pm.Normal(name, prior.mean, prior.sd, dims=dims)
    stiffness = eq.task_log_stiffness(parameters["headroom_logit"], parameters["log_slope"])
    for law, terms in LAWS.items():
        names = [f"{law}.{term}" for term in terms if term != "level"]
        parameters |= normal(law, names, f"{law}_term")
        if "level" in terms:
            prior = getattr(priors, f"{law}_level")
            shift = eq.anchor_shift(f"{law}.level", parameters, stiffness)
            parameters[f"{law}.level"] = pm.Normal(f"{law}_level", prior.mean + shift, prior.sd)
    return parameters


def _groups(cohort: Cohort, parameters: Mapping[str, Any]) -> eq.GroupLevel:
    """Start, cold plateau and stiffness of each (task, model); what users ask for is kept."""
    offsets = pm.Normal("group_offset", 0.0, 1.0, dims=("group_effect", "group"))
    size = cohort.group_log_parameters
    group = eq.group_level(
        parameters,
        parameters["headroom_logit"][cohort.task_of_group],
        parameters["log_slope"][cohort.task_of_group],
        parameters["start_logit"],
        offsets[0],
        offsets[1],
        size,
    )
    plateau = eq.reference_plateau(parameters, group, size)
    span = cohort.ceiling - cohort.floor
    pm.Deterministic("plateau", cohort.floor + span * plateau, dims="group")
    pm.Deterministic("stiffness", pt.exp(group.log_stiffness), dims="group")
    rate = eq.hazard(parameters["hazard.level"] + parameters["hazard.size"] * size)
    pm.Deterministic("collapse_rate", rate, dims="group")
    return group


def _runs(
    cohort: Cohort,
    data: Mapping[str, Any],
    parameters: Mapping[str, Any],
    laws: Mapping[str, Any],
    group: eq.GroupLevel,
) -> eq.RunLevel:
    """Plateau, stiffness and shape of each run, by the laws and its own effects."""
    of = cohort.group_of_run
    effects = pm.Normal("run_offset", 0.0, 1.0, dims=("run_effect", "run"))
    return eq.run_level(
        parameters,
        eq.GroupLevel(*(part[of] for part in group)),
        data["rate_design"] @ laws["rate"],
        data["plateau_loss_design"] @ laws["plateau_loss"],
        (effects[0], effects[1], effects[2]),
        parameters["log_onset"][cohort.task_of_group[of]],
        data["refresh_interval"],
        data["clipped"],
    )


def _curve(
    data: Mapping[str, Any],
    laws: Mapping[str, Any],
    run: eq.RunLevel,
    parameters: Mapping[str, Any],
    family: Family,
    of_evaluation: Any = None,
) -> Any:
    """Expected train reward at each bin of each run, or at each evaluation."""

    def at(values: Any) -> Any:
        return values[:, None] if of_evaluation is None else values[of_evaluation]

    clock = data["clock"] if of_evaluation is None else data["eval_clock"]
    return eq.expected_reward(
        clock @ laws["rate"][0] ** np.arange(CLOCK_EXPONENTS.size),
        eq.RunLevel(*(at(part) for part in run)),
        at(data["momentum"]),
        at(data["mean_age"]),
        at(eq.uncorrected(parameters, data["corrected"])),
        float(family.is_oscillator),
    )


def _observe_train_rewards(
    seen: Observations, data: Mapping[str, Any], parameters: Mapping[str, Any], mean: Any
) -> None:
    """Bins of train reward: one joint density for each run."""
    within = eq.sigmoid(parameters["within_log_odds"])
    sampling = pt.exp(2 * parameters["log_noise_scale"]) * (
        data["noise_known"] + within * data["noise_within"] + (1 - within) * data["noise_between"]
    )
    pm.CustomDist(
        "train_reward",
        mean,
        sampling + LEAST_VARIANCE,
        pt.exp(2 * parameters["log_misfit"]),
        data["correlation"],
        data["is_logged"],
        logp=run_log_density,
        random=draw_run,
        signature="(b),(b),(),(b,b),(b)->(b)",
        observed=seen.train_reward,
        dims=("run", "bin"),
    )


def _observe_held_out(
    cohort: Cohort,
    data: Mapping[str, Any],
    parameters: Mapping[str, Any],
    laws: Mapping[str, Any],
    run: eq.RunLevel,
    family: Family,
) -> None:
    """Held-out rewards: a start of their own and a gain for every gain of train reward."""
    own = cohort.run_of_eval
    group = cohort.group_of_run[own]
    mean = eq.held_out(
        _curve(data, laws, run, parameters, family, own),
        run.start[own],
        eq.sigmoid(parameters["eval_start_logit"])[group],
        pt.exp(parameters["log_eval_gain"])[group],
    )
    variance = pt.exp(2 * parameters["log_eval_noise"]) + pt.exp(2 * parameters["log_misfit"])
    pm.StudentT(
        "held_out_reward",
        nu=DEGREES,
        mu=mean,
        sigma=pt.sqrt(variance + LEAST_VARIANCE),
        observed=cohort.eval_reward,
        dims="evaluation",
    )
