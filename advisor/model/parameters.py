"""The parameters of the model: one row each, from which names, vectors, priors and pages follow.

To add one, write its row here, use it in `model.equations`, and give it a number with a source in
`priors/theory.toml` and `priors/uninformative.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from advisor.theory import FloatArray

Level = Literal["population", "task", "group"]
Scale = Literal["as is", "exp", "logistic"]


class Parameter(NamedTuple):
    """One parameter of the model; its prior is normal on the scale on which it is sampled."""

    name: str  # as draws are called; a term of a law is `law.term`
    level: Level  # what has a value of its own: all runs together, a task, or a (task, model)
    scale: Scale  # what turns the sampled value into its natural scale
    label: str  # what it is on the natural scale, with its unit

    @property
    def entry(self) -> str:
        """Name of its entry in a prior preset."""
        return self.name.replace(".", "_")

    @property
    def law(self) -> str | None:
        """Law that it is a term of, if any."""
        return self.name.split(".")[0] if "." in self.name else None


PARAMETERS: tuple[Parameter, ...] = tuple(
    Parameter(*row)
    for row in (
        # log k = log k_ref + sum of exponents times log ratios to the reference
        ("rate.learning_rate", "population", "as is", "exponent of the learning rate"),
        ("rate.group_size", "population", "as is", "exponent of the group size"),
        ("rate.prompts_per_step", "population", "as is", "exponent of the prompts per step"),
        # log D, the relative plateau loss: plateau = cold plateau x exp(-D)
        ("plateau_loss.level", "population", "exp", "plateau loss at stiffness 0.05 per step"),
        ("plateau_loss.learning_rate", "population", "as is", "exponent of the learning rate"),
        ("plateau_loss.batch", "population", "as is", "exponent of 1 / (prompts x group size)"),
        ("plateau_loss.refresh_interval", "population", "as is", "exponent of K"),
        ("plateau_loss.size", "population", "as is", "exponent of the model's parameters"),
        # log collapse rate per optimizer step at peak learning rate
        ("hazard.level", "population", "exp", "collapses per step where the plateau loss is 1"),
        ("hazard.learning_rate", "population", "as is", "exponent of the learning rate"),
        ("hazard.batch", "population", "as is", "exponent of 1 / (prompts x group size)"),
        ("hazard.minibatches", "population", "as is", "exponent of mini-batches per refresh"),
        ("hazard.epochs", "population", "as is", "exponent of epochs per refresh"),
        ("hazard.size", "population", "as is", "exponent of the model's parameters"),
        # what all runs share besides the laws; spreads are standard deviations
        ("log_dispersion", "population", "exp", "squared variation of stiffness over modes"),
        ("curvature_exponent", "population", "as is", "exponent of the model's parameters in k"),
        ("log_progress_limit", "population", "exp", "k K that one clipped refresh can cover"),
        ("log_noise_scale", "population", "exp", "sampling noise over its binomial value"),
        ("log_misfit", "population", "exp", "AR(1) residual round the curve, share of the range"),
        ("log_eval_noise", "population", "exp", "noise of an evaluation, share of the range"),
        ("log_headroom_spread", "population", "exp", "spread of headroom log odds over models"),
        ("log_model_spread", "population", "exp", "spread of log stiffness over models"),
        ("log_run_rate_spread", "population", "exp", "spread of log stiffness over runs"),
        ("log_run_plateau_spread", "population", "exp", "spread of plateau log odds over runs"),
        ("log_run_shape_spread", "population", "exp", "spread of log dispersion over runs"),
        ("log_run_loss_spread", "population", "exp", "spread of log plateau loss over runs"),
        ("uncorrected_log_odds", "population", "logistic", "staleness that no ratio corrects"),
        ("within_log_odds", "population", "logistic", "sampling noise within prompts"),
        ("headroom_logit", "task", "logistic", "share of the headroom gained at the plateau"),
        ("log_slope", "task", "exp", "share of the headroom gained per step at the start"),
        ("log_onset", "task", "exp", "exponent of a slow start; 1 is none"),
        ("start_logit", "group", "logistic", "train reward before training, share of the range"),
        ("eval_start_logit", "group", "logistic", "held-out reward before training"),
        ("log_eval_gain", "group", "exp", "odds of the gain on held-out over train prompts"),
    )
)
"""In the order of the vector that the fast path samples."""


POPULATION = tuple(p.name for p in PARAMETERS if p.level == "population")
TASK_LEVELS = tuple(p.name for p in PARAMETERS if p.level == "task")
GROUP_LEVELS = tuple(p.name for p in PARAMETERS if p.level == "group")
LEVELS = TASK_LEVELS + GROUP_LEVELS
"""Names by level, in the order of the table; levels of tasks and groups are stacked in theirs."""

LAWS: dict[str, tuple[str, ...]] = {
    law: tuple(p.name.removeprefix(f"{law}.") for p in PARAMETERS if p.law == law)
    for law in dict.fromkeys(p.law for p in PARAMETERS if p.law is not None)
}
"""The linear laws and their terms."""

SCALARS = tuple(name for name in POPULATION if "." not in name)
"""What all runs share besides the laws."""

RUN_EFFECTS = ("run_offset.plateau", "run_offset.stiffness", "run_offset.shape")
"""Run effects in standard deviations: seed noise on plateau and stiffness, shape of the curve."""

GROUP_EFFECTS = ("group_offset.headroom", "group_offset.stiffness")
"""Effects of a (task, model) in standard deviations."""


STACKED = {
    "shared": (SCALARS, ("shared_term",)),
    **{
        law: (tuple(f"{law}.{t}" for t in terms if t != "level"), (f"{law}_term",))
        for law, terms in LAWS.items()
    },
    "group_offset": (GROUP_EFFECTS, ("group_effect", "group")),
    "run_offset": (RUN_EFFECTS, ("run_effect", "run")),
}
"""Variables of the model that stack several parameters: those, and the variable's dimensions."""

ALONE = {
    **{f"{law}_level": f"{law}.level" for law, terms in LAWS.items() if "level" in terms},
    **{name: name for name in LEVELS},
}
"""Variables of the model that hold one parameter, and its name."""

DIMS: dict[str, tuple[str, ...]] = {
    **{variable: dims for variable, (_, dims) in STACKED.items()},
    **dict.fromkeys(TASK_LEVELS, ("task",)),
    **dict.fromkeys((*GROUP_LEVELS, "start", "plateau", "stiffness", "collapse_rate"), ("group",)),
}
"""Dimensions of variables and Deterministics besides chain and draw; of others there are none."""


def model_variables(draws: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Draws as the free variables of the PyMC model."""
    out = {variable: draws[name] for variable, name in ALONE.items()}
    for variable, (names, _) in STACKED.items():
        out[variable] = np.stack([draws[name] for name in names], axis=2)
    return out


def named_draws(variables: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Undo :func:`model_variables`; further variables are taken over as they are."""
    out = {name: variables[variable] for variable, name in ALONE.items()}
    for variable, (names, _) in STACKED.items():
        for index, name in enumerate(names):
            out[name] = variables[variable][:, :, index]
    rest = set(variables) - set(ALONE) - set(STACKED)
    return out | {name: variables[name] for name in sorted(rest)}
