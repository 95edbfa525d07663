"""Draws by the names of the parameters, and as the variables of the PyMC model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.model.parameters import (
    GROUP_EFFECTS,
    GROUP_LEVELS,
    LAWS,
    LEVELS,
    RUN_EFFECTS,
    SCALARS,
    TASK_LEVELS,
)
from advisor.theory import FloatArray

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
