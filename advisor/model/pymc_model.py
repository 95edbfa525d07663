"""The hierarchical model, in PyMC: pilots in, population and run parameters out.

Task -> (task, model) -> run. What each level has of its own is a standard normal times a learned
spread (non-centred). Plateaus are sampled as a share of the headroom above the start, and stiffness
through the initial slope, which even a short pilot identifies:
``log k = log slope - log headroom share``.

This is the definition. `model.fast` computes the same log density faster; a test holds its value
and its gradient to those of this model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from advisor.model import equations as eq
from advisor.model.cohort import Cohort
from advisor.model.likelihood import (
    draw_run,
    expectation,
    group_summaries,
    observations,
    run_log_density,
)
from advisor.model.parameters import GROUP_LEVELS, LAWS, STACKED, TASK_LEVELS
from advisor.model.priors import SPECTRUM, Priors, family_of, load_priors
from advisor.model.sampling import cohort_of
from advisor.runs import PilotRun


def build_model(
    cohort: Cohort | Sequence[PilotRun],
    priors: Priors | str = "full_finetuning",
    family: str = SPECTRUM.name,
) -> pm.Model:
    """Build the model of a cohort: equations in docs/theory, priors in docs/model.

    The closed form is that of arXiv:2606.30789, averaged over a spectrum of stiffnesses.

    Parameters
    ----------
    cohort : Cohort or sequence of PilotRun
        From `advisor.cohort_of`, as runs too become one; tasks, models and runs label dimensions.
    priors : Priors or str
        A preset or its name.
    family : str
        Of the reward curve: ``spectrum``, or ``oscillator`` for the closed form of one damped mode,
        whose pins take the place of the preset's entries.

    Returns
    -------
    model : pymc.Model
        Dimensions ``task``, ``group`` (task / model), ``run``, ``bin``, ``evaluation``. Free
        variables are vectors of `model.parameters`: ``shared``, ``rate``, ``plateau_loss``,
        ``hazard``. Observed are ``train_reward`` (run, bin; share of the reward range, jointly
        Student t per run), ``held_out_reward`` (evaluation) and ``collapse_exposure`` (run). The
        exposure is steps survived, each weighted by the square of its learning rate over the peak.
        It is censored where the run did not collapse. Deterministic, per group at the
        reference configuration: ``start`` and ``plateau`` (reward units), ``stiffness`` and
        ``collapse_rate`` (per optimizer step).
    """
    cohort = cohort if isinstance(cohort, Cohort) else cohort_of(cohort)
    chosen = family_of(family)
    preset = chosen.priors(load_priors(priors) if isinstance(priors, str) else priors)
    preset = preset.at(cohort.reference)
    seen = observations(cohort)
    with pm.Model(coords=seen.coords) as model:
        data = {
            name: pm.Data(name, values, dims=seen.dims[name])
            for name, values in seen.constant.items()
        }
        parameters = _parameters(preset) | _effects()
        parameters["is_oscillator"] = np.asarray(float(chosen.is_oscillator))
        expected = expectation(parameters, data, seen)
        for name, values in group_summaries(parameters, expected.group, seen).items():
            pm.Deterministic(name, values, dims="group")
        pm.CustomDist(
            "train_reward",
            expected.train_reward,
            expected.sampling_variance + eq.LEAST_VARIANCE,
            expected.residual_variance,
            data["correlation"],
            data["is_logged"],
            logp=run_log_density,
            random=draw_run,
            signature="(b),(b),(),(b,b),(b)->(b)",
            observed=seen.train_reward,
            dims=("run", "bin"),
        )
        if seen.held_out_reward.size:
            pm.StudentT(
                "held_out_reward",
                nu=eq.DEGREES,
                mu=expected.held_out_reward,
                sigma=expected.held_out_scale,
                observed=seen.held_out_reward,
                dims="evaluation",
            )
        pm.Censored(
            "collapse_exposure",
            pm.Exponential.dist(expected.hazard),
            lower=None,
            upper=np.where(seen.collapsed > 0, np.inf, seen.exposure),
            observed=seen.exposure,
            dims="run",
        )
    return model


def _parameters(priors: Priors) -> dict[str, Any]:
    """Every parameter by name; two levels stand at anchors that no pilot moves (`anchor_shift`)."""

    def normal(variable: str) -> dict[str, Any]:
        names, dims = STACKED[variable]
        mean, sd = np.array([(prior.mean, prior.sd) for prior in priors.of(names)]).T
        values = pm.Normal(variable, mean, sd, dims=dims)
        return {name: values[index] for index, name in enumerate(names)}

    parameters = normal("shared")
    for levels, dims in ((TASK_LEVELS, "task"), (GROUP_LEVELS, "group")):
        for name in levels:
            prior = getattr(priors, name)
            parameters[name] = pm.Normal(name, prior.mean, prior.sd, dims=dims)
    stiffness = eq.task_log_stiffness(parameters["headroom_logit"], parameters["log_slope"], pt)
    for law, terms in LAWS.items():
        parameters |= normal(law)
        if "level" in terms:
            prior = getattr(priors, f"{law}_level")
            shift = eq.anchor_shift(f"{law}.level", parameters, stiffness)
            parameters[f"{law}.level"] = pm.Normal(f"{law}_level", prior.mean + shift, prior.sd)
    return parameters


def _effects() -> dict[str, Any]:
    """Effects of groups and runs in standard deviations, by name."""
    effects: dict[str, Any] = {}
    for variable in ("group_offset", "run_offset"):
        names, dims = STACKED[variable]
        values = pm.Normal(variable, 0.0, 1.0, dims=dims)
        effects |= {name: values[index] for index, name in enumerate(names)}
    return effects
